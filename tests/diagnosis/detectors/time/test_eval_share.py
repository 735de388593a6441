"""Evaluation that takes the larger part of the time is told; one long one, or a tenth, is not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from windows import every, rank, window

from monitor.diagnosis.detectors.time.eval_share import SHARE, detect

STEP_MS = 16.0


@pytest.mark.parametrize(("factor", "speaks"), [(0.99, False), (1.01, True)])
def test_it_speaks_from_its_threshold_on(factor: float, speaks: bool):
    """Just below the share that counts it is silent, just above it speaks."""
    share = SHARE * factor
    assert (detect(window(eval=every(10, 10 * STEP_MS * share / (1 - share), 0.0))) is not None) == speaks


def test_it_promises_what_evaluation_costs():
    """58 % of the time (eval_heavy): 2.4 times as many steps a second of wall time without it."""
    share = 0.579
    found = detect(window(rank(60, eval=every(10, 160 * share / (1 - share), 0.0, 60))))
    assert found is not None
    assert found.gain is not None
    assert found.gain.speedup == pytest.approx(1 / (1 - share), rel=0.01)
    assert (found.evidence["evaluations"], found.evidence["steps_per_evaluation"]) == (5, 10.0)


@pytest.mark.parametrize("at", [[100], [60, 199]])
def test_one_long_evaluation_is_fine(at: list[int]):
    """Once or twice, however long, is no period."""
    evaluating = np.zeros(200)
    evaluating[at] = 30_000
    assert detect(window(eval=evaluating)) is None


def test_a_tenth_is_fine():
    """A validation pass every 40 steps (ok_eval_every_n)."""
    assert detect(window(eval=every(40, 60.0, 0.0))) is None


def test_an_evaluation_may_reach_into_the_next_step():
    """Its time may be booked in two rows; it is one evaluation."""
    evaluating = every(20, 200.0, 0.0) + np.roll(every(20, 100.0, 0.0), 1)
    found = detect(window(eval=evaluating))
    assert found is not None
    assert found.evidence["steps_per_evaluation"] == pytest.approx(20, rel=0.02)


def test_evaluating_every_step_is_found():
    """One long stretch of rows that all evaluate."""
    assert detect(window(eval=20.0)) is not None


@given(when=st.integers(100, 200))
@settings(deadline=None, max_examples=20)
def test_it_does_not_matter_when_it_looks(when: int):
    """Right after an evaluation the same share is found as right before one."""
    found = detect(window(rank(when, eval=every(25, 300.0, 0.0, when))))
    assert found is not None
    assert found.evidence["eval_share"] == pytest.approx(300 / 700, abs=0.001)


@given(scale=st.floats(0.05, 50))
@settings(deadline=None, max_examples=20)
def test_scaling_time_changes_nothing(scale: float):
    """The rule is relative."""
    times = {"data": 2 * scale, "forward": 5 * scale, "backward": 8 * scale, "optimizer": scale}
    assert detect(window(eval=every(10, 80 * scale, 0.0), **times)) is not None
    assert detect(window(eval=every(10, 60 * scale, 0.0), **times)) is None
