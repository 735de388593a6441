"""A stall is critical while it lasts, a warning once over, and blames no rank that merely waits."""

from __future__ import annotations

from typing import Any

from windows import event, rank, window

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.health.stall import detect


def stall(**fields: Any) -> dict[str, Any]:
    return event("stall", **{"t_s": 20.0, "since_s": 14.0, "step": 70, "phase": "data", **fields})


def over(**fields: Any) -> dict[str, Any]:
    return event("stall_over", **{"t_s": 23.0, **fields})


def found(*events: dict[str, Any], now_s: float = 30.0) -> Finding:
    finding = detect(window(rank(number=0), rank(number=1), events=events, now_s=now_s))
    assert finding is not None
    return finding


def test_progress_is_no_stall():
    """Without a word from the agent nothing is told."""
    assert detect(window()) is None


def test_it_is_critical_while_it_lasts():
    """Phase, step, place, and how long it has lasted by now."""
    one = found(stall(location="train.py:12"))
    assert (one.severity, one.cause, one.location) == ("critical", "stalled in data (step 70)", "train.py:12")
    assert (one.evidence["stalled_s"], one.over_at_s) == (16.0, None)


def test_it_stays_as_a_warning():
    """Once over it says for how long, and when it ended."""
    one = found(stall(), over())
    assert (one.severity, one.over_at_s, one.evidence["stalled_s"]) == ("warning", 23.0, 9.0)


def test_another_ranks_progress_ends_nothing():
    """Rank 1 going on does not end rank 0's stall."""
    assert found(stall(rank=0), over(rank=1)).severity == "critical"


def test_the_stall_that_goes_on_is_told_first():
    """An old stall that is over does not hide the one that lasts."""
    one = found(stall(), over(), stall(t_s=40.0, since_s=34.0, step=120, phase="other"), now_s=50.0)
    assert (one.severity, one.first_step) == ("critical", 120)


def test_the_newest_of_those_that_are_over_is_told():
    """Of several past stalls the last one stands."""
    again = {"t_s": 40.0, "since_s": 34.0, "step": 120}
    assert found(stall(), over(), stall(**again), over(t_s=44.0), now_s=50.0).first_step == 120


def test_the_last_to_go_on_stands_for_a_stall_of_several_ranks():
    """Rank 1 began later and ended earlier: rank 0's, which was told of to the end, is told of afterwards."""
    later = {"rank": 1, "t_s": 21.0, "since_s": 16.0}
    ends = over(rank=1, t_s=25.0), over(rank=0, t_s=28.0)
    one = found(stall(rank=0), stall(**later), *ends)
    assert (one.evidence["rank"], one.over_at_s) == (0, 28.0)


def test_repeated_words_on_one_stall_are_one_stall():
    """The agent tells of a long stall again and again; it began when it first began."""
    one = found(stall(), stall(t_s=25.0), stall(t_s=29.0))
    assert (one.severity, one.evidence["stalled_s"]) == ("critical", 16.0)


def test_the_rank_that_waits_is_not_blamed():
    """Rank 0 waits in a collective for rank 1, which hangs elsewhere: rank 1 is the cause."""
    waiting = stall(rank=0, phase="comm", since_s=13.0, cause_code="collective")
    one = found(waiting, stall(rank=1, phase="other"))
    assert (one.ranks, one.evidence["phase"]) == ((1, 0), "other")


def test_the_missing_ranks_are_named():
    """A rank that waits, with nobody else stalled, says for whom it waits."""
    one = found(stall(phase="backward", cause_code="collective", waits_for=[1, 3]))
    assert (one.evidence["waits_for_ranks"], "which one is missing" in one.advice) == ("1, 3", True)


def test_advice_fits_the_phase():
    """A hung loader and a hung line of the user's own get different advice."""
    assert "workers" in found(stall()).advice
    assert "innermost line" in found(stall(phase="other")).advice


def test_a_stall_before_the_first_step_has_no_step():
    """A run that never starts is told without inventing a step."""
    one = found(stall(step=None, phase=None))
    assert (one.first_step, one.cause) == (None, "stalled in unknown")
