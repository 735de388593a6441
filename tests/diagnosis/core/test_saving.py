"""What is left of a run, and what the verdict's finding costs of it."""

from __future__ import annotations

import pytest

from monitor.diagnosis.core.finding import gain_from_share
from monitor.diagnosis.core.saving import remaining_s, saving

QUARTER = gain_from_share(0.25, "")


def test_time_left_follows_the_run_s_own_rate():
    """None is left after the last planned step."""
    assert remaining_s(1000, 4000, 3600.0) == 10_800
    assert remaining_s(5000, 4000, 3600.0) == 0


@pytest.mark.parametrize(("steps", "planned"), [(1000, None), (3, 4000), (0, 4000)])
def test_nothing_is_guessed(steps: int, planned: int | None):
    """Without a known number of steps, and while the rate is the start-up's, there is no time left."""
    assert remaining_s(steps, planned, 3600.0) is None


def test_the_saving_is_a_share_of_what_is_left():
    """It looks forward where it can."""
    assert saving(QUARTER, 10_800.0, 3600.0) == "That saves 45 min of the remaining 3 h."


def test_where_nobody_knows_what_is_left_it_is_what_was_lost():
    """It looks back."""
    assert saving(QUARTER, None, 3600.0) == "It has cost 15 min of 1 h so far."


@pytest.mark.parametrize(
    ("gain", "left_s", "now_s"),
    [(None, 10_800.0, 3600.0), (QUARTER, None, 30.0), (QUARTER, 120.0, 3600.0), (QUARTER, 0.0, 3600.0)],
)
def test_no_saving_without_a_promise_and_none_of_a_moment(gain: object, left_s: float | None, now_s: float):
    """A sentence that helps nobody is not said."""
    assert saving(gain, left_s, now_s) == ""  # type: ignore[arg-type]
