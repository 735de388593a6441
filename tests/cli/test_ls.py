"""`torchvitals ls`."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from batches import Training
from kept import finding, keep

from monitor.cli import main
from monitor.pipeline import Pipeline


def test_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a run, newest first, columns aligned, with the gravest finding or the verdict."""
    pipeline = Pipeline(tmp_path / "runs")
    for name, started, killed in (("digits", 1.8e9, True), ("resnet", 1.9e9, False)):
        training = Training(run=f"20261130-000000-{name}-aaaa")
        pipeline.take(training.start(name=name, started_unix_s=started))
        pipeline.take(training.batch(1500, training.killed() if killed else training.end()))
    pipeline.close()
    assert main(["ls"]) == 0
    head, one, other = capsys.readouterr().out.splitlines()
    assert head.split() == ["run", "status", "steps", "steps/s", "began", "finding", "or", "verdict"]
    assert one.startswith("20261130-000000-resnet-aaaa  finished  1,500       50")
    assert other.endswith("process_died")
    assert one.index("finished") == other.index("killed") == head.index("status")


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A script gets the same as JSON."""
    pipeline, training = Pipeline(tmp_path / "other"), Training()
    pipeline.take(training.start())
    pipeline.take(training.batch(50, training.end()))
    pipeline.close()
    assert main(["ls", "--json", "--run-dir", str(tmp_path / "other")]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["run"], found["steps"], found["status"]) == (training.run, 50, "finished")


def test_no_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a run there is a hint, and that is no error."""
    assert main(["ls"]) == 0
    assert "torchvitals run train.py" in capsys.readouterr().out


#: Sets the window's title, clears the screen, forges a line, turns letters around.
STEERS = "\x1b]0;pwn\x07\x1b[2J\x9b2J\rforged\u202e"


def test_no_run_steers_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run of somebody else's in the same folder is told as text, by every command."""
    told = finding(
        code=STEERS, cause=STEERS, title=STEERS, advice=STEERS, snippet=STEERS, evidence={"x": STEERS}
    )
    meta = {"name": STEERS, "config": {STEERS: STEERS}, "argv": [STEERS], "verdict": {"text": STEERS}}
    one, other = keep(tmp_path, "one", findings=[told], meta=meta), keep(tmp_path, "other", meta=meta)
    for command in (
        ["ls", "--run-dir", str(tmp_path)],
        ["report", str(one)],
        ["compare", str(one), str(other)],
    ):
        assert main(command) == 0
        said = capsys.readouterr().out
        assert "forged" in said
        assert not set(said) & set("\x1b\x07\x9b\r\u202e")


@pytest.mark.parametrize("began", ["'\"NaN\"'", "'\"long ago\"'", "'-1'", f"'{'9' * 400}'", "'[]'"])
def test_a_beginning_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str], began: str) -> None:
    """Of a damaged store: it is listed, without one."""
    file = keep(tmp_path, "one") / "store.sqlite"
    connection = sqlite3.connect(file)
    connection.execute(f"UPDATE meta SET value = {began} WHERE name = 'started_unix_s'")
    connection.commit()
    connection.close()
    assert main(["ls", "--run-dir", str(tmp_path)]) == 0
    assert "–" in capsys.readouterr().out
    assert main(["ls", "--json", "--run-dir", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)[0]["started_unix_s"] is None
