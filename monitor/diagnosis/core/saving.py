"""Saving: what is left of a run, and what removing a finding would save of it, where that is known."""

from __future__ import annotations

from monitor.diagnosis.core.finding import Gain
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.quantities import duration
from monitor.diagnosis.signals.training_steps import MIN_STEPS

#: Less than this is not worth a sentence (own: a minute).
LEAST_S = 60.0


def remaining_s(steps: int, planned: int | None, now_s: float) -> float | None:
    """Seconds until the last of `planned` steps at the rate of the whole run so far.

    None where the number of steps is not known, and before `MIN_STEPS`: so early the rate is the start-up's.
    """
    if planned is None or steps < MIN_STEPS:
        return None
    return max(0, planned - steps) * now_s / steps


def saving(gain: Gain | None, left_s: float | None, now_s: float) -> str:
    """One sentence on the time that a finding costs; empty where it is not known, or not worth it.

    Args:
        gain: the finding's.
        left_s: what is left of the run, None where nobody knows.
        now_s: seconds since the run began.
    """
    if gain is None:
        return ""
    saved_s, lost_s = (left_s or 0.0) * gain.share_of_step, now_s * gain.share_of_step
    if saved_s >= LEAST_S:
        return message(
            "That saves {saved} of the remaining {left}.", saved=duration(saved_s), left=duration(left_s)
        )
    if left_s is not None or lost_s < LEAST_S:
        return ""
    return message("It has cost {lost} of {spent} so far.", lost=duration(lost_s), spent=duration(now_s))
