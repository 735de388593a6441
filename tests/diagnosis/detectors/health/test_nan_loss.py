"""A loss that is not finite is told with its first step; one the run got over is no emergency."""

from __future__ import annotations

import numpy as np
import pytest
from windows import event, loader, rank, window

from monitor.diagnosis.detectors.health.nan_loss import FEW_UNDER_SCALER, RECOVERED_STEPS, detect

SCALED = {**loader(), "precision": {"autocast": True, "autocast_dtype": "float16", "scaler": True}}


def losses(bad_from: int, bad_to: int, count: int = 100) -> np.ndarray:
    """Losses of 1, unknown where they are not finite (as the tape shows a NaN)."""
    loss = np.ones(count)
    loss[bad_from:bad_to] = np.nan
    return loss


def test_finite_losses_are_fine():
    """Neither finite nor unknown losses are a finding."""
    assert detect(window(rank(100, loss=losses(0, 50)))) is None


def test_the_first_bad_step_is_told():
    """The step of the first event, its place, and the last finite loss before it."""
    bad = event("nan_loss", step=32, location="train.py:50", module="head")
    found = detect(window(rank(100, loss=losses(32, 100)), events=[bad]))
    assert found is not None
    assert (found.severity, found.first_step, found.location) == ("critical", 32, "train.py:50")
    assert (found.evidence["module"], found.evidence["last_finite_loss"]) == ("head", 1.0)


def test_an_infinite_loss_in_the_column_is_enough():
    """Infinity is not mistaken for a value that was not measured."""
    loss = np.where(np.arange(100) >= 40, np.inf, 1.0)
    found = detect(window(rank(100, loss=loss)))
    assert found is not None
    assert (found.first_step, found.evidence["value"]) == (40, "inf")


@pytest.mark.parametrize(
    ("good", "severity"), [(RECOVERED_STEPS - 1, "critical"), (RECOVERED_STEPS, "warning")]
)
def test_a_run_that_recovers_is_told_once(good: int, severity: str):
    """Enough finite losses in a row after the bad ones: over; one fewer: not yet."""
    found = detect(
        window(rank(40 + good, loss=losses(32, 40, 40 + good)), events=[event("nan_loss", step=39)])
    )
    assert found is not None
    assert (found.severity, found.over_at_s is None) == (severity, severity == "critical")


@pytest.mark.parametrize("bad", [FEW_UNDER_SCALER, FEW_UNDER_SCALER + 1])
def test_a_scaler_may_overflow_now_and_then(bad: int):
    """A few bad losses that a scaler got over are its business; more are told."""
    loss = losses(10, 10 + bad)
    events = [event("nan_loss", step=10 + at) for at in range(bad)]
    found = detect(window(rank(100, loss=loss, facts=SCALED), events=events))
    assert (found is None) == (bad <= FEW_UNDER_SCALER)


def test_float16_is_named():
    """Under float16 the advice is about its range."""
    found = detect(window(rank(30, loss=losses(1, 30, 30), facts=SCALED), events=[event("nan_loss", step=1)]))
    assert found is not None
    assert (found.cause, "65,504" in found.advice) == ("not finite under float16", True)


def test_the_earliest_rank_is_told():
    """Several ranks, one finding, with the first bad step of all."""
    ranks = [rank(100, number, loss=losses(50 - number, 100)) for number in range(2)]
    events = [event("nan_loss", step=50 - number, rank=number) for number in range(2)]
    found = detect(window(*ranks, events=events))
    assert found is not None
    assert (found.ranks, found.first_step) == ((0, 1), 49)
