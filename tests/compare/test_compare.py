"""Runs beside each other: everything at once, and in a form that JSON takes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from finished_runs import FACTS, changed, finding, keep, steps

from monitor.compare import compare, side_by_side
from monitor.schema import PHASES
from monitor.store import StoreError


def test_two_runs(tmp_path: Path) -> None:
    """All that the contract promises of a comparison."""
    first = keep(tmp_path, "first", findings=[finding()], data_ms=25.0)
    second = keep(tmp_path, "second", steps(ms=25.0, seed=1), facts=changed("loader/1", num_workers=2))
    found = json.loads(json.dumps(compare(first, second), allow_nan=False))
    assert (found["baseline"]["run"], found["candidate"]["run"]) == ("first", "second")
    assert [change["name"] for change in found["changed"]] == ["loader/1.num_workers"]
    assert found["speed"]["verdict"] == "faster"
    assert set(found["phases"]) == set(PHASES)
    assert found["phases"]["data"] == [pytest.approx(25.0), 0.0]
    assert set(found["memory"]) >= {"rss_mb", "cuda_allocated_mb", "gpu_memory_used_mb"}
    assert found["predictions"][0]["verdict"] == "confirmed"


def test_three_runs(tmp_path: Path) -> None:
    """The first is the baseline of each other one; all curves share an axis."""
    folders = [keep(tmp_path, name, steps(ms=ms, seed=ms)) for name, ms in (("a", 50), ("b", 25), ("c", 100))]
    found = side_by_side(folders, "time")
    assert [run["run"] for run in found["runs"]] == ["a", "b", "c"]
    assert [pair["speed"]["verdict"] for pair in found["comparisons"]] == ["faster", "slower"]
    assert [curve["run"] for curve in found["curves"]] == ["a", "b", "c"]
    assert found["align"] == "time"


def test_runs_that_hardly_are_any(tmp_path: Path) -> None:
    """Without steps, facts or findings nothing is known, and nothing raised."""
    first = keep(tmp_path, "first", np.empty(0), facts={})
    found = json.loads(json.dumps(compare(first, keep(tmp_path, "second", facts=FACTS)), allow_nan=False))
    assert found["speed"]["speedup"] is None
    assert found["phases"]["data"][0] is None


def test_no_such_run(tmp_path: Path) -> None:
    """A folder without a run is said."""
    with pytest.raises(StoreError):
        compare(tmp_path / "none", keep(tmp_path, "second"))
