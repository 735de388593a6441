"""Every threshold says where it comes from, and what it cites exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from sources import ROOT, Module, modules

PAGE = (ROOT / "docs/measurements.md").read_text()
SECTIONS = {
    re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-")
    for title in re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
}
TOOLS = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)
CITED = re.compile(r"measurements\.md#([\w-]+)")
SOURCE = re.compile(rf"{CITED.pattern}|\bown\b|\b({'|'.join(TOOLS)})\b")
#: Documents that only their authors have.
ABSENT = re.compile(r"\b(RULES|HOOKS|STYLE)\.md|\bzoo\b")


def thresholds(module: Module) -> Iterator[tuple[str, str]]:
    """Public numbers of a module, each with the comment above it: (name, comment).

    Lines that follow one another share a comment, and one that begins with "…" goes on with the one before.
    """
    lines, comment, reached = module.path.read_text().splitlines(), "", 0
    for node in module.tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        above = []
        while lines[node.lineno - 2 - len(above)].startswith("#"):
            above.insert(0, lines[node.lineno - 2 - len(above)].lstrip("#: "))
        new = " ".join(above)
        if new:
            comment = f"{comment} {new}" if new.startswith("…") else new
        elif node.lineno > reached + 1:
            comment = ""
        reached = node.end_lineno or node.lineno
        target = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        if target.isupper() and not target.startswith("_") and is_number(node.value):
            yield target, comment


def is_number(value: ast.expr | None) -> bool:
    parts = list(ast.walk(value)) if value is not None else []
    return any(isinstance(p, ast.Constant) and type(p.value) in (int, float) for p in parts) and not any(
        isinstance(p, ast.Constant) and isinstance(p.value, str) for p in parts
    )


DIAGNOSIS = [module for module in modules().values() if module.room == "diagnosis"]


def test_every_threshold_names_its_source():
    """A section of docs/measurements.md, a public tool of its table, or `own` with the reason."""
    found = [(module, *one) for module in DIAGNOSIS for one in thresholds(module)]
    assert len(found) > 150
    wrong = [f"{module.path.name}: {name}: {text}" for module, name, text in found if not SOURCE.search(text)]
    assert not wrong, "\n".join(wrong)


def test_what_is_cited_exists():
    """Each cited section is one of docs/measurements.md, and none stands there in vain."""
    cited = {name for module in modules().values() for name in CITED.findall(module.path.read_text())}
    assert cited - SECTIONS == set()
    assert SECTIONS - cited - {"kinds-of-sources", "how-it-was-measured"} == set()


@pytest.mark.parametrize("room", sorted({module.room for module in modules().values()}))
def test_nothing_absent_is_cited(room: str):
    """No module sends its reader to a document that the repository does not have."""
    wrong = [
        f"{module.path.name}: {found[0]}"
        for module in modules().values()
        if module.room == room and (found := ABSENT.search(module.path.read_text()))
    ]
    assert wrong == []


def test_every_tool_of_the_table_is_a_source():
    """A tool that no threshold comes from leaves the page."""
    texts = " ".join(text for module in DIAGNOSIS for _, text in thresholds(module))
    assert [tool for tool in TOOLS if not re.search(rf"\b{tool}\b", texts)] == []
