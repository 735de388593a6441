"""The settling of a loss scale is the run's first streak of skips, and a while after it."""

from __future__ import annotations

import numpy as np
from windows import rank

from monitor.diagnosis.core.window import Rank
from monitor.diagnosis.signals.loss_scale import SETTLING_STEPS, after_settling, optimizer_rows


def scaled(skipped: np.ndarray, first: int = 0) -> Rank:
    return rank(len(skipped), first=first, amp_skipped=skipped, optimizer_steps=1.0 - skipped)


def test_the_first_streak_is_settling():
    """Twelve skips, then as many steps as it takes."""
    one = scaled(np.where(np.arange(100) < 12, 1.0, 0.0))
    assert after_settling(one, optimizer_rows(one))[0] == 12 + SETTLING_STEPS


def test_a_run_that_only_skips_never_settles():
    """Without one clean step nothing may be judged."""
    one = scaled(np.ones(100))
    assert len(after_settling(one, optimizer_rows(one))) == 0


def test_later_windows_have_settled():
    """A window that begins in the middle of a run is judged whole."""
    one = scaled(np.ones(100), first=1000)
    assert len(after_settling(one, optimizer_rows(one))) == 100


def test_rows_without_an_optimizer_do_not_count():
    """Under accumulation only the rows that step, or were kept from it."""
    due = np.arange(100) % 4 == 3
    one = rank(100, optimizer_steps=np.where(due, 1.0, 0.0))
    assert optimizer_rows(one).tolist() == list(range(3, 100, 4))
