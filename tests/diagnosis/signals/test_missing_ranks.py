"""Who the others wait for: named by what its tape says, else by torch's flight recorder."""

from __future__ import annotations

from typing import Any

import pytest
from windows import event, rank, window

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.window import Window
from monitor.diagnosis.detectors.health.stall import detect
from monitor.diagnosis.signals.missing_ranks import missing

WAITS = event("stall", rank=0, t_s=20.0, since_s=14.0, step=60, phase="backward", cause_code="collective")
LEFT = event("exhausted", rank=1, step=60, t_s=4.0)


def two(*events: dict[str, Any], **second: Any) -> Window:
    """Rank 0 waits in a collective at step 60; of rank 1 is said what `events` and `second` say."""
    return window(rank(60), rank(60, number=1, **second), events=[WAITS, *events], now_s=30.0)


def told(seen: Window) -> tuple[tuple[int, ...], str] | None:
    found = missing(seen, seen.events_of("stall"))
    return None if found is None else (found.ranks, found.text)


def test_a_rank_whose_loader_is_exhausted_is_missing():
    """It left the loop, and the others wait for its gradients."""
    seen = two(LEFT)
    assert told(seen) == ((1,), "rank 1 without a further batch")


def test_an_epochs_end_is_no_leaving():
    """The next epoch began, or a step was taken since."""
    again = LEFT, event("epoch", rank=1, t_s=4.1)
    assert told(two(*again)) is None
    assert told(two(event("exhausted", rank=1, t_s=1.5))) is None


def test_what_came_after_the_stall_changes_nothing():
    """A stall that is over keeps its cause, so that it stays one finding."""
    later = event("epoch", rank=1, t_s=25.0), event("rank_end", rank=1, t_s=29.0)
    assert told(two(LEFT, *later)) == ((1,), "rank 1 without a further batch")
    assert told(two(ended={"code": 0, "t_s": 28.0})) is None


def test_where_all_are_at_the_end_the_batches_are_equally_many():
    """Something else keeps them."""
    seen = two(LEFT, event("exhausted", rank=0, t_s=4.0))
    assert told(seen) is None


def test_a_rank_that_has_ended_is_missing():
    """However it ended."""
    assert told(two(ended={"code": 0})) == ((1,), "rank 1 ended")


def test_else_torchs_flight_recorder_is_asked():
    """Rank 0 waits in number 5, to which rank 1 has not come."""
    entry = {
        "process_group": ["0", "default_pg"],
        "collective_seq_id": 5,
        "profiling_name": "nccl:all_reduce",
    }
    config = {"0": {"ranks": "[0, 1]"}}
    dumps = [
        event("flight", rank=number, dump={"pg_config": config, "entries": [entry] * (1 - number)})
        for number in range(2)
    ]
    assert told(two(*dumps)) == ((1,), "rank 1 missing in all_reduce of default_pg")


def test_nothing_is_said_where_nothing_is_known():
    """Rank 1 may be anywhere."""
    assert told(two()) is None


def test_a_stall_that_is_none_in_a_collective_needs_nobody():
    """A loader that hangs is not waiting for a rank."""
    alone = event("stall", t_s=20.0, phase="data", cause_code="worker_hung")
    assert missing(window(rank(), rank(number=1), events=[alone]), [alone]) is None


def found(seen: Window) -> Finding:
    finding = detect(seen)
    assert finding is not None
    return finding


def test_the_finding_names_the_missing_one_first():
    """Rank 1 is the cause; rank 0, which waits, comes after it."""
    finding = found(two(LEFT))
    assert (finding.ranks, finding.cause) == ((1, 0), "rank 1 without a further batch (step 60)")
    assert "equally many batches" in finding.advice


def test_it_stays_the_same_finding_when_the_waiting_rank_gives_up():
    """Its group's timeout ended rank 0's wait; rank 1 still stands where it left the loop."""
    sleeps = event("stall", rank=1, t_s=21.0, since_s=15.0, step=60, phase="other", cause_code="sleep")
    over = event("stall_over", rank=0, t_s=25.0)
    causes = {found(two(LEFT, sleeps, *more)).cause for more in ([], [over])}
    assert causes == {"rank 1 without a further batch (step 60)"}


@pytest.mark.parametrize("stalled", [True, False])
def test_what_the_missing_one_does_instead_is_secondary(stalled: bool):
    """It sleeps at the script's end: the batches are still the cause."""
    sleeps = event("stall", rank=1, t_s=21.0, since_s=15.0, step=60, phase="other", cause_code="sleep")
    more = [sleeps] if stalled else []
    assert found(two(LEFT, *more)).ranks == (1, 0)
