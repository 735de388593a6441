"""Too many skipped steps are told, those in which the scale settles never count."""

from __future__ import annotations

import numpy as np
import pytest
from windows import rank, window

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.precision.amp_skipped_steps import ENOUGH, SKIPPED_SHARE, detect
from monitor.diagnosis.signals.loss_scale import SETTLING_STEPS
from monitor.diagnosis.signals.training_steps import WARMUP_STEPS


def found(skipped: np.ndarray, stepped: np.ndarray | None = None) -> Finding | None:
    steps = 1.0 - skipped if stepped is None else stepped
    facts = {"precision": {"scaler": True}}
    one = rank(len(skipped), amp_skipped=skipped, optimizer_steps=steps, loss_scale=65536.0, facts=facts)
    return detect(window(one))


def skips(every: int, count: int = 400) -> np.ndarray:
    return np.where(np.arange(count) % every == every - 1, 1.0, 0.0)


@pytest.mark.parametrize(("more", "speaks"), [(1, False), (-1, True)])
def test_it_speaks_from_its_threshold_on(more: int, speaks: bool):
    """One skip in a step more than counts is silent, one in a step fewer is told."""
    assert (found(skips(round(1 / SKIPPED_SHARE) + more, 1000)) is not None) == speaks


def test_skips_while_the_scale_settles_are_fine():
    """A first streak of skips, and a few more in the steps after it, are the settling."""
    skipped = np.zeros(400)
    skipped[:30] = 1
    skipped[32 : 30 + SETTLING_STEPS : 3] = 1
    assert found(skipped) is None


@pytest.mark.parametrize(("count", "speaks"), [(ENOUGH - 1, False), (ENOUGH, True)])
def test_enough_steps_must_have_followed(count: int, speaks: bool):
    """Too few steps after the settling prove nothing."""
    assert (found(skips(5, WARMUP_STEPS + SETTLING_STEPS + count)) is not None) == speaks


def test_only_optimizer_steps_count():
    """Under accumulation most rows step no optimizer; a skip in half of those that do is a half."""
    at = np.arange(800)
    due = at % 4 == 3
    one = found(np.where(due & (at % 8 == 3), 1.0, 0.0), np.where(due & (at % 8 == 7), 1.0, 0.0))
    assert one is not None
    assert one.evidence["skipped_share"] == pytest.approx(0.5, abs=0.02)


def test_it_tells_from_when_to_when():
    """First and last skipped step after the settling."""
    one = found(skips(10))
    assert one is not None
    assert (one.first_step, one.last_step) == (29, 399)
