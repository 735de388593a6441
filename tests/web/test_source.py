"""Runs by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from webhub import WatchedPipeline, make_batch

from monitor.runs import NoSuchRunError
from monitor.web.source import Source


@pytest.fixture
def source(tmp_path: Path) -> Source:
    pipeline = WatchedPipeline(tmp_path / "runs")
    pipeline.take(make_batch())
    pipeline.close()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "store.sqlite").touch()
    return Source(pipeline, tmp_path / "runs")


def test_a_run_is_found_by_its_whole_name(source: Source):
    """The name of its folder, no more and no less."""
    assert source.folder("run-1").name == "run-1"
    assert source.has("run-1")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../outside", "run", "run-1/", "run-1/../run-1", "/", "run-1\0", "*"]
)
def test_nothing_else_is_found(source: Source, name: str):
    """A name is compared, never joined to a path."""
    assert not source.has(name)
    with pytest.raises(NoSuchRunError, match="api/runs"):
        source.folder(name)


def test_a_folder_that_is_not_there_keeps_no_runs(tmp_path: Path):
    """A hub may start before the first run."""
    source = Source(WatchedPipeline(tmp_path / "none"), tmp_path / "none")
    assert source.runs() == []
    assert source.snapshot("run-1") is None


def test_state_report_and_store_are_of_the_same_run(source: Source):
    """What is read of a run that ended comes from its store."""
    assert source.snapshot("run-1")["run"] == "run-1"
    assert source.report("run-1")["steps"] == 4
    with source.store("run-1") as store:
        assert store.streams()["rank/0"] == 4
