"""A loss scale that collapses is told; one that settles, or halves and doubles, is not."""

from __future__ import annotations

import numpy as np
import pytest
from windows import rank, window

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.precision.amp_scale_collapse import FALL, LOWEST, detect
from monitor.diagnosis.signals.loss_scale import SETTLING_STEPS


def found(scale: np.ndarray, skipped: np.ndarray | float) -> Finding | None:
    facts = {"precision": {"scaler": True, "scaler_location": "train.py:20"}}
    stepped = 1.0 - np.broadcast_to(skipped, scale.shape)
    return detect(
        window(rank(len(scale), loss_scale=scale, amp_skipped=skipped, optimizer_steps=stepped, facts=facts))
    )


def falling(until: float, count: int = 150) -> np.ndarray:
    """A scale of 65,536 halved in every step down to `until`."""
    return np.maximum(65_536.0 * 0.5 ** np.arange(count), until)


@pytest.mark.parametrize(("lowest", "speaks"), [(LOWEST, False), (LOWEST / 2, True)])
def test_it_speaks_below_one(lowest: float, speaks: bool):
    """A scale of 1 still scales nothing down; below 1 it has collapsed, even within its first streak."""
    scale = falling(lowest)
    assert (found(scale, np.where(scale > lowest, 1.0, 0.0)) is not None) == speaks


def test_it_tells_where_and_when():
    """First step below 1, and the line of the scaler."""
    one = found(falling(0.0), 1.0)
    assert one is not None
    assert (one.cause, one.first_step, one.location) == ("below 1", 17, "train.py:20")


def test_a_scale_that_settles_is_fine():
    """Twelve halvings from 2**30 at the start are how a scaler finds its scale (ok_fp16_scaler_warmup)."""
    scale = np.maximum(2.0**30 * 0.5 ** np.arange(150), 2.0**18)
    assert found(scale, np.where(np.arange(150) < 12, 1.0, 0.0)) is None


@pytest.mark.parametrize(("halvings", "speaks"), [(np.log2(FALL) - 1, False), (np.log2(FALL), True)])
def test_a_scale_that_keeps_falling_is_told(halvings: float, speaks: bool):
    """After it has settled, one halving fewer than counts is silent, that many are told."""
    at = np.arange(400)
    done = np.minimum(np.maximum(at - SETTLING_STEPS - 10, 0) // 20, halvings)
    skipped = np.diff(done, prepend=0.0)
    assert (found(2.0**20 * 0.5**done, skipped) is not None) == speaks


def test_halving_and_doubling_is_fine():
    """A scale that swings about its value does not collapse."""
    assert found(np.where(np.arange(4000) // 500 % 2, 65_536.0, 32_768.0), 0.0) is None


def test_without_a_scale_nothing_is_said():
    """A scale that could not be read is not taken for 0."""
    assert found(np.full(100, np.nan), 0.0) is None
