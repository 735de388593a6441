"""A run told to a target, as it goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from batches import Training

from monitor.bridges import follow as following
from monitor.bridges.follow import follow
from monitor.store import Store


def never(_: float) -> bool:
    raise AssertionError("a finished run is not waited for")


def test_a_finished_run_is_told_whole_and_once(store: Store, target: Any):
    """Numbers of the run under their names, others under what they were measured at."""
    follow(store, target, never)
    named = {name for _, _, values in target.rows for name in values}
    assert {"steps_per_s", "run_loss", "proc/0/rss_mb", "accuracy"} <= named
    assert not [name for name in named if name.startswith("rank/")]
    assert [found["status"] for found in target.closed] == ["finished"]


def test_each_row_has_the_step_and_the_time_it_belongs_to(store: Store, target: Any):
    """The first rank's newest step then, to a quarter of a second; unix time from the run's start."""
    follow(store, target, never)
    [(step, unix_s, values)] = [row for row in target.rows if "proc/0/rss_mb" in row[2]]
    assert 250 - 13 <= step <= 249
    assert (unix_s, values) == (pytest.approx(1.8e9 + 5.0), {"proc/0/rss_mb": 500.0})


def test_findings_are_told_when_raised_and_when_over(tmp_path: Path, target: Any):
    """And not again while nothing changes; what comes between two looks is told at the next."""
    training, finding = Training(), {"code": "c", "cause": "x", "raised_at_s": 0.5, "cleared_at_s": None}
    with Store(tmp_path / "store.sqlite", create=True) as store:
        store.append(training.start(), meta={"status": "running", "started_unix_s": 1.0})
        store.append(training.batch(100))
        looks = iter(range(4))

        def wait(_: float) -> bool:
            look = next(looks)
            if look == 0:
                store.save_finding(finding)
            if look == 2:
                store.save_findings([{**finding, "cleared_at_s": 1.0}], status="finished")
            return False

        follow(store, target, wait)
    assert [(step, found["cleared_at_s"]) for step, found in target.findings] == [(24, None), (49, 1.0)]
    assert next(looks) == 3


def test_rows_come_once_however_often_it_looks(tmp_path: Path, target: Any, monkeypatch: pytest.MonkeyPatch):
    """In blocks of bounded size, through several looks."""
    monkeypatch.setattr(following, "ROWS", 3)
    training, looks = Training(), []
    with Store(tmp_path / "store.sqlite", create=True) as store:
        store.append(training.start(), meta={"status": "running"})

        def wait(seconds: float) -> bool:
            looks.append(seconds)
            for _ in range(4):
                store.append(training.sample("proc/0", rss_mb=float(training.samples)))
            return len(looks) > 3

        follow(store, target, wait)
    assert [values["proc/0/rss_mb"] for _, _, values in target.rows] == [float(i) for i in range(12)]
    assert looks == [following.POLL_S] * 4


def test_what_was_not_measured_is_not_told(tmp_path: Path, target: Any):
    """A NaN would be drawn as a number by some and break others."""
    training = Training()
    with Store(tmp_path / "store.sqlite", create=True) as store:
        store.append(training.start(), meta={"status": "finished"})
        store.append(training.sample("proc/0", rss_mb=float("nan"), threads=2.0))
        store.append(training.sample("proc/0", rss_mb=float("nan")))
        follow(store, target, never)
    assert [values for _, _, values in target.rows] == [{"proc/0/threads": 2.0}]


def test_the_target_is_closed_whatever_happens(store: Store, target: Any):
    """A run at a tool elsewhere must not stay open for ever."""
    target.row = lambda *_: 1 / 0
    with pytest.raises(ZeroDivisionError):
        follow(store, target, never)
    assert len(target.closed) == 1
