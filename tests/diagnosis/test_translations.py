"""Whatever the hub says of a run can be read in every language: nothing is said that a catalogue lacks.

A text without parameters is its own template; one with parameters goes through `message`. What the page says
is held by tests/js/i18n.test.js, what the report says by tests/exports/test_language.py: here both only count
as used.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
from sources import ROOT, Module, modules
from texts import page_texts, report_texts

from monitor.diagnosis.core.confidence import Level
from monitor.diagnosis.core.quantities import quantity
from monitor.diagnosis.core.verdict import TEXTS
from monitor.exports import FORMATS
from monitor.panels import PANELS, drawn_by
from monitor.schema import BY_KEY, PHASES

LOCALES = sorted((ROOT / "static/locale").glob("*.json"))

#: What the page is refused with, besides.
REFUSING = {"monitor.runs.trash", "monitor.runs.marks", "monitor.web.actions", "monitor.web.compare"}

#: Code and names, not sentences.
CODE = re.compile(r"\n|^#|^[\w.]+\(.*\)|^with torch|^DataLoader|^group |^rank \d|^reduce $|^data dependent$")
#: Calls that hold no sentences.
SILENT = {"re.compile", "frozenset", "loader_call"}


@cache
def catalogue(path: Path) -> dict[str, str]:
    return dict(json.loads(path.read_text())["messages"])


@cache
def speaking() -> tuple[Module, ...]:
    """Modules whose strings reach a page."""
    silent = {
        "messages",
        "verdict",
        "window",
        "snippet",
        "logging_names",
        "stack_attribution",
        "training_steps",
    }
    found = [one for one in modules().values() if one.room == "diagnosis" or one.name in REFUSING]
    return tuple(one for one in found if one.name.rpartition(".")[2] not in silent)


def sentences(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """String constants and f-strings that may be read by a person: (node, text or template)."""
    silent = set(docstrings(module.tree))
    for node in ast.walk(module.tree):
        if isinstance(node, ast.keyword) and node.arg == "snippet":
            silent.update(map(id, ast.walk(node.value)))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in SILENT:
            silent.update(map(id, ast.walk(node)))
        if isinstance(node, ast.JoinedStr):
            silent.update(id(part) for part in ast.walk(node) if part is not node)
    for node in ast.walk(module.tree):
        if id(node) in silent:
            continue
        if isinstance(node, ast.JoinedStr):
            yield node, "".join(part.value for part in node.values if isinstance(part, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node, node.value


def docstrings(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield id(node.value)


def is_sentence(text: str) -> bool:
    return bool(re.search(r"[A-Za-z]{2}", text) and " " in text.strip() and not CODE.search(text))


def said_templates() -> Iterator[tuple[str, ast.expr]]:
    """What is handed to `message`: (place, first argument)."""
    for module in speaking():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "message":
                yield f"{module.path.name}:{node.lineno}", node.args[0]


def short_causes() -> Iterator[str]:
    """Titles and causes of one plain word; `num_workers=0` is code and stays as it is."""
    for module in speaking():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("Finding", "Cause"):
                first = 2 if ast.unparse(node.func) == "Finding" else 0
                for argument in node.args[first : first + 2]:
                    if isinstance(argument, ast.Constant) and str(argument.value).isalpha():
                        yield argument.value


def labels() -> Iterator[str]:
    """Names of evidence, as the page shows them."""
    for module in speaking():
        for node in evidence_of(module.tree):
            for key in keys_of(node):
                yield quantity(key, 0.0).name.replace("_", " ")


def evidence_of(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Finding" and len(node.args) > 4:
            yield node.args[4]
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(ast.unparse(target).split("[")[0] in ("evidence", "known") for target in targets):
                yield node
        if isinstance(node, ast.FunctionDef) and node.name == "_evidence":
            yield from (part for part in ast.walk(node) if isinstance(part, ast.Return))


def keys_of(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Dict):
            yield from (key.value for key in part.keys if isinstance(key, ast.Constant))
        if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant) and is_evidence(part):
            yield str(part.slice.value)


def is_evidence(part: ast.Subscript) -> bool:
    return ast.unparse(part.value) == "evidence"


@cache
def wanted() -> frozenset[str]:
    texts = (
        {text for _, text in TEXTS.values()}
        | set(PHASES)
        | {panel.title for panel in PANELS}
        | {one.label or BY_KEY[one.key].title for panel in drawn_by("page") for one in panel.series}
        | {BY_KEY[one.key].title for panel in drawn_by("report") for one in panel.series}
    )
    texts |= {first.value for _, first in said_templates() if isinstance(first, ast.Constant)}
    texts |= (
        {"yes", "no", "cores", *get_args(Level)}
        | set(short_causes())
        | set(labels())
        | {form.what for form in FORMATS.values()}
    )
    for module in speaking():
        texts |= {t for node, t in sentences(module) if isinstance(node, ast.Constant) and is_sentence(t)}
    return frozenset(texts)


@pytest.mark.parametrize("path", LOCALES, ids=lambda path: path.stem)
def test_everything_said_is_translated(path: Path):
    """Verdicts, titles, causes, advice, reasons, names of evidence, phases and metrics."""
    assert sorted(wanted() - set(catalogue(path))) == []


@pytest.mark.parametrize("path", LOCALES, ids=lambda path: path.stem)
def test_nothing_is_translated_in_vain(path: Path):
    """What is no longer said, by the hub, the page or the report, leaves the catalogue."""
    constants = {t for module in speaking() for _, t in sentences(module)}
    assert sorted(set(catalogue(path)) - wanted() - constants - page_texts() - report_texts()) == []


def test_there_is_a_catalogue():
    """And the page and the report are seen: the rules above hold something."""
    assert ROOT / "static/locale/zh-CN.json" in LOCALES
    assert {"Runs", "Configuration and facts"} <= page_texts() | report_texts()


@pytest.mark.parametrize("path", LOCALES, ids=lambda path: path.stem)
def test_no_text_stands_in_a_catalogue_twice(path: Path):
    """JSON would keep the last one in silence. Entries are sorted, so that two branches seldom meet."""

    def checked(pairs: list[tuple[str, object]]) -> dict[str, object]:
        names = [name for name, _ in pairs]
        assert sorted(set(names)) == sorted(names)
        return dict(pairs)

    told = json.loads(path.read_text(), object_pairs_hook=checked)
    assert list(told["messages"]) == sorted(told["messages"])


def test_templates_are_literals():
    """`message` takes one literal: what is put together cannot be looked up."""
    wrong = [place for place, first in said_templates() if not isinstance(first, ast.Constant)]
    assert wrong == []


def test_no_sentence_is_put_together_by_hand():
    """A sentence with parameters goes through `message`; an f-string would reach the page in English only."""
    wrong = [
        f"{module.path.name}:{node.lineno} {text!r}"
        for module in speaking()
        for node, text in sentences(module)
        if isinstance(node, ast.JoinedStr) and is_sentence(text)
    ]
    assert wrong == []


@pytest.mark.parametrize("text", ["Training waits for data", "of {whole:.1f} ms"])
def test_sentences_are_told_from_code(text: str):
    """The rule above sees sentences, and takes no code for one."""
    assert is_sentence(text)
    for code in ("DataLoader(x, num_workers=2)", "if step % 2 == 0:\n    save()", "num_workers=0", ", "):
        assert not is_sentence(code)


@pytest.mark.parametrize("path", LOCALES, ids=lambda path: path.stem)
def test_a_translation_keeps_the_parameters(path: Path):
    """Each has exactly the fields of its template; which format they have is the template's business."""
    for english, translated in catalogue(path).items():
        fields = set(re.findall(r"\{(\w+)", english))
        assert set(re.findall(r"\{(\w+)\}", translated)) == fields, english
