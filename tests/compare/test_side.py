"""One run, read for comparing: warm-up left out, the machine's other work known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from finished_runs import keep, steps

from monitor.compare import read
from monitor.compare.side import LEAST_WARM_UP, MOST_LOST, MOST_WARM_UP
from monitor.store import StoreError

#: A host of two CPUs whose processes use both.
FULL = {"cpu_used": 2.0, "cpu_usable": 2.0}


@pytest.mark.parametrize(
    ("count", "left_out"), [(8, 4), (60, LEAST_WARM_UP), (400, 19), (5000, MOST_WARM_UP)]
)
def test_warm_up_is_left_out(tmp_path: Path, count: int, left_out: int) -> None:
    """The first five steps at least, five in a hundred, fifty at most, never more than half."""
    side = read(keep(tmp_path, "a", np.full(count, 10.0)))
    assert side.steps("step_ms").size == count - left_out


def test_a_slow_start_does_not_count(tmp_path: Path) -> None:
    """A first step of two seconds changes no mean."""
    times = np.full(100, 10.0)
    times[0] = 2000.0
    assert read(keep(tmp_path, "a", times)).mean("step_ms") == pytest.approx(10.0)


def test_what_was_not_measured_is_left_out(tmp_path: Path) -> None:
    """Values that are missing are no zeros; a metric without any has no mean."""
    loss = np.where(np.arange(100) % 2, 1.0, np.nan)
    side = read(keep(tmp_path, "a", steps(100), loss=loss))
    assert side.mean("loss") == 1.0
    assert side.mean("tokens") is None


def test_a_run_without_steps(tmp_path: Path) -> None:
    """One that died at once is read like any other."""
    side = read(keep(tmp_path, "a", np.empty(0)))
    assert side.steps("step_ms").size == 0
    assert side.mean("step_ms") is None
    assert side.lost_share == 0.0


def test_no_run(tmp_path: Path) -> None:
    """What is no run is said."""
    with pytest.raises(StoreError):
        read(tmp_path)


@pytest.mark.parametrize(
    ("proc", "host", "least", "most"),
    [
        # alone on the machine: what it waits for is its own doing
        ({"runq_share": 0.5, "main_cpu": 1.0, "workers_cpu": 1.0}, FULL, 0.0, 0.0),
        # idle neighbours
        (
            {"runq_share": 0.0, "main_cpu": 1.0, "workers_cpu": 0.0},
            {"cpu_used": 1.2, "cpu_usable": 2.0},
            0.0,
            0.01,
        ),
        # neighbours that take half of the CPUs, and half of the waiting
        ({"runq_share": 0.4, "main_cpu": 1.0, "workers_cpu": 0.0}, FULL, 0.3, 0.5),
        # neighbours that take everything
        ({"runq_share": 1.0, "main_cpu": 0.0, "workers_cpu": 0.0}, FULL, 0.6, MOST_LOST),
        # nobody knows how long it waited, but the machine was full of others
        ({"main_cpu": 0.5}, FULL, 0.2, 0.6),
    ],
)
def test_time_lost_to_others(
    tmp_path: Path, proc: dict[str, float], host: dict[str, float], least: float, most: float
) -> None:
    """Of the waiting for a CPU others are to blame for their share of all use, the run itself for its own."""
    side = read(keep(tmp_path, "a", sampled=[("proc/0", proc), ("host/box", host)]))
    assert least <= side.lost_share <= most


def test_nobody_sampled(tmp_path: Path) -> None:
    """Without samples nothing is known to be lost."""
    assert read(keep(tmp_path, "a")).lost_share == 0.0


def test_gpu_memory(tmp_path: Path) -> None:
    """The most that any device had in use; None without one."""
    samples = [("gpu/box/0", {"gpu_memory_used_mb": 900.0}), ("gpu/box/1", {"gpu_memory_used_mb": 1200.0})]
    assert read(keep(tmp_path, "a", sampled=samples)).gpu_mb == 1200.0
    assert read(keep(tmp_path, "b")).gpu_mb is None
