"""`torchvitals ls`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from batches import Training

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
