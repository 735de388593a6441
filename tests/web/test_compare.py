"""Runs beside each other, over HTTP; and a run's distance to its baseline."""

from __future__ import annotations

import pytest
from finished_runs import changed, finding, keep, steps
from webhub import Hub

from monitor.runs.baselines import set_baseline


@pytest.fixture
def two(hub: Hub) -> Hub:
    """A slow run and a quick one."""
    keep(hub.pipeline.run_dir, "slow", steps(600, 50.0), findings=[finding()])
    keep(hub.pipeline.run_dir, "fast", steps(600, 25.0, seed=1), facts=changed("loader/1", num_workers=4))
    return hub


def test_two_runs(two: Hub) -> None:
    """What differs, what it brought, what was promised, and curves to draw."""
    body = two.get("/api/compare?runs=slow,fast").json()
    (pair,) = body["comparisons"]
    assert [change["label"] for change in pair["changed"]] == ["num_workers"]
    assert pair["speed"]["verdict"] == "faster"
    assert pair["predictions"][0]["verdict"] == "confirmed"
    assert [curve["run"] for curve in body["curves"]] == ["slow", "fast"]
    assert body["align"] == "step"


def test_by_time_and_three(two: Hub) -> None:
    """The first is the baseline of the others; a run named twice is one."""
    body = two.get("/api/compare?runs=slow,fast,run-1,fast&align=time").json()
    assert [run["run"] for run in body["runs"]] == ["slow", "fast", "run-1"]
    assert body["align"] == "time"
    assert body["comparisons"][1]["speed"]["speedup"] is not None


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 400), ("runs=slow", 400), ("runs=slow,slow", 400), ("runs=a,b,c,d,e,f,g", 400),
        ("runs=slow,fast&align=colour", 400), ("runs=slow,nobody", 404), ("runs=slow,../run-1", 404),
    ],
)  # fmt: skip
def test_what_cannot_be_compared(two: Hub, query: str, status: int) -> None:
    """An answer in JSON that says why."""
    answer = two.get(f"/api/compare?{query}")
    assert answer.status_code == status
    assert answer.json()["error"]


def test_a_refusal_can_be_said_in_another_language(two: Hub) -> None:
    """Its template comes with it."""
    told = two.get("/api/compare?runs=slow").json()
    assert told["i18n"] == ["runs are 2 to {most} ids of runs, separated by commas", {"most": "6"}]


def test_distance_to_the_baseline(two: Hub) -> None:
    """How much faster than the project's baseline, with its interval."""
    set_baseline(two.pipeline.run_dir, "train", "slow")
    body = two.get("/api/runs/fast/baseline").json()
    assert body["baseline"] == {"run": "slow", "name": "slow"}
    assert body["speed"]["speedup"] == pytest.approx(2.0, rel=0.03)
    assert body["speed"]["low"] < body["speed"]["speedup"] < body["speed"]["high"]


@pytest.mark.parametrize(
    ("chosen", "expected"), [(None, None), ("gone", None), ("fast", {"run": "fast", "name": "fast"})]
)
def test_no_distance(two: Hub, chosen: str | None, expected: dict[str, str] | None) -> None:
    """No baseline, one that was deleted, or the run itself."""
    set_baseline(two.pipeline.run_dir, "train", chosen)
    assert two.get("/api/runs/fast/baseline").json() == {"baseline": expected, "speed": None}


def test_strangers_see_nothing(two: Hub) -> None:
    """403 without a token."""
    assert two.get("/api/compare?runs=slow,fast", token=None).status_code == 403
    assert two.get("/api/runs/fast/baseline", token=None).status_code == 403
