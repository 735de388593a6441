"""The documentation is tested: what exists is documented, what is documented exists, and examples run."""

from __future__ import annotations

import argparse
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sources import ROOT, modules

from monitor.cli import COMMANDS
from monitor.events import KINDS
from monitor.options import Options
from monitor.panels import PANELS
from monitor.schema import PHASES

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
CONFIGURATION = (ROOT / "docs/configuration.md").read_text()
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text()
#: What an example may take for granted: the things that every training script has.
PRELUDE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
model, loss_fn = nn.Linear(4, 2), nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(24, 4), torch.randint(0, 2, (24,))), batch_size=4)
"""


def sources() -> str:
    return "\n".join(module.path.read_text() for module in modules().values())


def options_of(command: str) -> dict[str, set[str]]:
    """Option -> its other spellings, of a command's parser; those without a help text are not for people."""
    parser = argparse.ArgumentParser(add_help=False)
    importlib.import_module(f"monitor.cli.{command.replace('-', '_')}").configure(parser)
    return {
        action.option_strings[-1]: set(action.option_strings)
        for action in parser._actions
        if action.option_strings and action.help is not argparse.SUPPRESS
    }


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def shell_lines() -> list[tuple[str, list[str]]]:
    """(page, words) of every line of every shell example, comments left out."""
    lines = [(p.name, line) for p in PAGES for block in blocks(p, "sh") for line in block.splitlines()]
    return [(page, line.split("#")[0].split()) for page, line in lines if line.split("#")[0].strip()]


def test_every_variable_is_documented():
    """Every MONITOR_… that the sources read stands in docs/configuration.md, and so does every option."""
    read = set(re.findall(r"\bMONITOR_[A-Z][A-Z_]+\b", sources()))
    read |= {f"MONITOR_{name.upper()}" for name in Options.__dataclass_fields__} - {"MONITOR_CONFIG"}
    assert {name for name in read if f"`{name}`" not in CONFIGURATION} == set()
    assert {n for n in Options.__dataclass_fields__ if f"| `{n}` |" not in CONFIGURATION} == set()


def test_every_documented_variable_is_read():
    """docs/ name no variable that does nothing."""
    named = {name for page in PAGES for name in re.findall(r"\bMONITOR_[A-Z][A-Z_]+\b", page.read_text())}
    options = {f"MONITOR_{name.upper()}" for name in Options.__dataclass_fields__}
    assert {name for name in named - options if name not in sources()} == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_option_is_documented(command: str):
    """docs/configuration.md has a heading for each command, and names each of its options below it."""
    section = re.search(
        rf"^### torchvitals {command}\b.*?(?=^##|\Z)", CONFIGURATION, re.MULTILINE | re.DOTALL
    )
    assert section, f"no heading for {command}"
    missing = [option for option in options_of(command) if not re.search(rf"{option}\b", section[0])]
    assert not missing


def test_every_command_in_the_docs_exists():
    """Commands, their options and scripts that a page shows exist as shown."""
    wrong = []
    for page, words in shell_lines():
        if words[0].startswith("scripts/") and not (ROOT / words[0]).exists():
            wrong.append(f"{page}: {words[0]}")
        if words[0] == "python" and not (ROOT / words[1]).exists():
            wrong.append(f"{page}: {words[1]}")
        if words[0] == "torchvitals":
            known = {s for spellings in options_of(words[1]).values() for s in spellings}
            script = next((i for i, word in enumerate(words) if word.endswith(".py")), len(words))
            wrong += [f"{page}: {w}" for w in words[2:script] if w.startswith("-") and w not in known]
    assert not wrong


def test_every_finding_is_documented():
    """docs/findings.md has an entry for the code of every detector."""
    text = (ROOT / "docs/findings.md").read_text()
    codes = [path.stem for path in (ROOT / "monitor/diagnosis/detectors").rglob("[!_]*.py")]
    assert [code for code in codes if f"`{code}`" not in text] == []


def test_every_panel_and_phase_is_documented():
    """docs/architecture.md lists each chart, and each phase of a step."""
    assert [panel.id for panel in PANELS if f"| `{panel.id}` |" not in ARCHITECTURE] == []
    assert {phase for phase in PHASES if f"`{phase}`" not in ARCHITECTURE} == set()


def test_every_kind_of_event_is_documented():
    """docs/architecture.md and `monitor.events` name every kind of event that probe and agent write."""
    written = set(re.findall(r"""["']kind["']: ["'](\w+)["']""", sources()))
    written |= set(re.findall(r"""\bevent\(\s*["'](\w+)["']""", sources()))
    assert written <= set(KINDS)
    assert {kind for kind in KINDS if f"`{kind}`" not in ARCHITECTURE} == set()


def test_every_room_is_documented():
    """docs/architecture.md names every room of the source tree."""
    rooms = {module.room for module in modules().values() if not module.room.startswith("_")} - {"monitor"}
    assert {room for room in rooms if not re.search(rf"`{room}(\.py|/)`", ARCHITECTURE)} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path):
    """Every relative link points to a file that exists."""
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


# Those of docs/frameworks.md need more than a model: tests/test_frameworks_page.py runs them.
@pytest.mark.parametrize(
    ("page", "code"),
    [(page.name, code) for page in PAGES if page.stem != "frameworks" for code in blocks(page, "python")],
)
def test_examples_run(page: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Every Python example runs as it stands, given a model, a loss, an optimizer and a loader."""
    monkeypatch.setenv("MONITOR_DASHBOARD", "off")
    (tmp_path / "example.py").write_text(PRELUDE + code)
    done = subprocess.run(
        [sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_no_page_is_unfinished():
    """No page holds a placeholder."""
    assert [
        page.name for page in PAGES if re.search(r"^[A-Z]{5,}$|\bTODO\b|\bTBD\b", page.read_text(), re.M)
    ] == []
