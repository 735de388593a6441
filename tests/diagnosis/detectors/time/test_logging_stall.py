"""Logging that holds up the loop is told by the stacks that show it."""

from __future__ import annotations

from typing import Any

import pytest
from devices import on_gpu
from windows import event, rank, window

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.time.logging_stall import LOST_SHARE, detect
from monitor.diagnosis.signals.stack_attribution import SAMPLES

LOG = {
    "file": "/home/me/train.py", "line": 39, "func": "main",
    "source": "tracker.log(step=i, loss=loss.item())", "count": 2000,
    "leaf_func": "log", "leaf_file": "/home/me/train.py",
}  # fmt: skip
MODEL = {
    "file": "/home/me/train.py",
    "line": 30,
    "func": "main",
    "source": "loss = loss_fn(out, y)",
    "count": 2000,
}


def found(*frames: dict[str, Any], other: float = 40.0, total: int | None = None) -> Finding | None:
    seen = sum(frame["count"] for frame in frames)
    told = event("other_stack", total=seen if total is None else total, frames=list(frames))
    return detect(window(rank(other=other), events=[told]))


def test_a_slow_sink_is_found():
    """40 ms of logging a step beside 16 of training: line, promise, and how often to log instead."""
    one = found(LOG)
    assert one is not None
    assert one.gain is not None
    assert (one.location, one.evidence["function"]) == ("train.py:39", "log")
    assert one.gain.speedup == pytest.approx(56 / 16, rel=0.01)
    assert one.snippet == "if step % 130 == 0:\n    tracker.log(step=i, loss=loss.item())"


@pytest.mark.parametrize(("factor", "speaks"), [(0.99, False), (1.01, True)])
def test_it_speaks_from_its_threshold_on(factor: float, speaks: bool):
    """Just below the share that counts it is silent, just above it speaks."""
    share = LOST_SHARE * factor
    assert (found(LOG, other=16 * share / (1 - share)) is not None) == speaks


def test_only_its_part_of_the_stacks_counts():
    """Half of the stacks show logging: half of the time is its."""
    one = found(LOG, MODEL)
    assert one is not None
    assert one.evidence["logging_ms_per_step"] == pytest.approx(20, rel=0.01)


def test_stacks_that_could_not_be_told_are_not_its():
    """Of 8,000 samples only 2,000 were told, all logging: a quarter of the time at most."""
    one = found(LOG, total=8000)
    assert one is not None
    assert one.evidence["logging_ms_per_step"] == pytest.approx(10, rel=0.01)


@pytest.mark.parametrize(("count", "speaks"), [(SAMPLES - 1, False), (SAMPLES, True)])
def test_few_stacks_prove_nothing(count: int, speaks: bool):
    """One stack fewer than it takes."""
    assert (found({**LOG, "count": count}) is not None) == speaks


def test_other_work_is_left_alone():
    """A loop that computes outside every known phase is slow by design (a simulator, a second model)."""
    assert (
        found(MODEL, {**MODEL, "source": "obs, reward = env.step(action)", "func": "step"}, other=400.0)
        is None
    )


def test_garbage_collection_is_not_logging():
    """Time spent collecting garbage is taken off before it is divided."""
    told = event("other_stack", total=2000, frames=[LOG])
    assert detect(window(rank(other=40.0, gc_ms=39.5), events=[told])) is None


@pytest.mark.parametrize(("gap", "share"), [(1.0, None), (15.0, 0.3), (40.0, 0.6)])
def test_what_a_host_logs_ahead_of_its_gpu_costs_nothing(gap: float, share: float | None):
    """It counts only as far as the device had nothing left to do."""
    told = event("other_stack", total=LOG["count"], frames=[LOG])
    one = detect(on_gpu(rows={"gpu_gap_ms": gap}, events=[told]))
    assert (one and one.evidence["logging_share"]) == (share and pytest.approx(share))
