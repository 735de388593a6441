"""Which code trains."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.probe.script import script_facts


def test_an_edit_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest is the file's: the same for the same text wherever it lies, another after an edit."""
    script = tmp_path / "train.py"
    script.write_text("lr = 0.1\n")
    (tmp_path / "elsewhere.py").write_text("lr = 0.1\n")
    monkeypatch.setattr("sys.argv", [str(script), "--lr", "0.1"])
    first = script_facts()
    monkeypatch.setattr("sys.argv", [str(tmp_path / "elsewhere.py")])
    copy = script_facts()
    script.write_text("lr = 0.2\n")
    monkeypatch.setattr("sys.argv", [str(script)])
    edited = script_facts()
    assert first is not None
    assert copy is not None
    assert edited is not None
    assert first["name"] == "train.py"
    assert first["digest"] == copy["digest"] != edited["digest"]


@pytest.mark.parametrize("argv", [[], [""], ["-c"], ["/no/such/file.py"], ["/"], ["nul\0byte"]])
def test_no_script(argv: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook, an interactive session, a file that is gone: nothing is said, nothing raised."""
    monkeypatch.setattr("sys.argv", argv)
    assert script_facts() is None


def test_no_script_of_that_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A huge file is not read: attach must return at once."""
    huge = tmp_path / "packed.pyz"
    with huge.open("wb") as file:
        file.truncate(64_000_000)
    monkeypatch.setattr("sys.argv", [str(huge)])
    assert script_facts() is None
