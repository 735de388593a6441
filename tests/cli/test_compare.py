"""`torchvitals compare`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from finished_runs import changed, finding, keep, steps

from monitor.cli import main


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A slow run and a fast one, half a minute each."""
    keep(tmp_path, "slow", steps(600, 50.0), findings=[finding()])
    keep(tmp_path, "fast", steps(600, 25.0, seed=1), facts=changed("loader/1", num_workers=4))
    return tmp_path


def test_text(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What changed, what it brought, and which promise came true, on the standard output."""
    assert main(["compare", "slow", "fast", "--run-dir", str(kept)]) == 0
    out = capsys.readouterr().out
    assert "exactly one thing differs: num_workers 0 → 4" in out
    assert "confirmed" in out


def test_json(kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same for programs, to a file or to the standard output."""
    target = tmp_path / "found.json"
    assert main(["compare", "slow", "fast", "--run-dir", str(kept), "--json", str(target)]) == 0
    assert main(["compare", "slow", "fast", "--run-dir", str(kept), "--json", "-"]) == 0
    found = json.loads(target.read_text())
    assert found == json.loads(capsys.readouterr().out)
    assert found["speed"]["verdict"] == "faster"


@pytest.mark.parametrize(
    ("baseline", "candidate", "percent", "status"),
    [
        ("fast", "slow", "20", 1),
        ("fast", "slow", "80", 0),
        ("slow", "fast", "0", 0),
        ("slow", "slow", "0", 0),
    ],
)
def test_fail_if_slower(kept: Path, baseline: str, candidate: str, percent: str, status: int) -> None:
    """Exit status 1 only when the candidate is surely slower by more than that."""
    words = ["compare", baseline, candidate, "--run-dir", str(kept), "--fail-if-slower", percent]
    assert main(words) == status


def test_several_candidates(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is compared with the baseline, in text and in JSON."""
    assert main(["compare", "slow", "fast", "slow", "--run-dir", str(kept)]) == 0
    assert capsys.readouterr().out.count("slow → ") == 2
    assert main(["compare", "slow", "fast", "slow", "--run-dir", str(kept), "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [pair["candidate"]["run"] for pair in found["comparisons"]] == ["fast", "slow"]


def test_no_such_run(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line that says what to do, exit status 2."""
    assert main(["compare", "slow", "nobody", "--run-dir", str(kept)]) == 2
    assert "torchvitals ls" in capsys.readouterr().err


def test_a_file_that_cannot_be_written(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, exit status 2."""
    words = ["compare", "slow", "fast", "--run-dir", str(kept), "--json", str(kept / "no" / "such.json")]
    assert main(words) == 2
    assert "give another file" in capsys.readouterr().err
