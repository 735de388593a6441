"""Hosts that joined a run at different moments, by clocks that differ, are on one time."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from batches import RUN, Training

from monitor.batch import Batch
from monitor.pipeline import Pipeline
from monitor.run_state.clock_alignment import BELIEVED_S, ClockAlignment
from monitor.store import FILE_NAME, Store

BEGAN = 1.8e9


def host(name: str, rank: int, joined_s: float = 0.0) -> Training:
    """A host with one rank, which joined so long after the run began."""
    return _Host(name, rank, joined_s)


class _Host(Training):
    def __init__(self, name: str, rank: int, joined_s: float) -> None:
        super().__init__(host=name, ranks=1, phases={"backward": 12.0, "comm": 8.0})
        self.number, self.joined_s = rank, joined_s

    def start(self, **about: object) -> Batch:
        batch = super().start(world_size=2, started_unix_s=BEGAN + self.joined_s, **about)
        return self._as(batch)

    def batch(self, *args: object, **kwargs: object) -> Batch:
        return self._as(super().batch(*args, **kwargs))  # type: ignore[arg-type]

    def _as(self, batch: Batch) -> Batch:
        blocks = tuple(replace(block, stream=f"rank/{self.number}") for block in batch.blocks)
        events = tuple({**e, "rank": self.number} if "rank" in e else e for e in batch.events)
        return replace(batch, blocks=blocks, events=events)


def test_a_host_that_joins_later_begins_later(tmp_path: Path) -> None:
    """Its first second is the run's eleventh, in memory and in the store."""
    first, second = host("a", 0), host("b", 1, joined_s=10.0)
    pipeline = Pipeline(tmp_path)
    for batch in (first.start(), second.start(), first.batch(600), second.batch(50)):
        pipeline.take(batch)
    seen = pipeline.band(RUN, metric="step_ms", begin_s=0.0, end_s=9.5, points=1)
    both = pipeline.band(RUN, metric="step_ms", begin_s=10.3, end_s=10.9, points=1)
    pipeline.close()
    assert seen is not None
    assert both is not None
    assert (seen["ranks"], both["ranks"]) == ([1], [2])
    with Store(tmp_path / RUN / FILE_NAME) as store:
        assert store.span("rank/1")["first_t_s"] == pytest.approx(10.02)  # type: ignore[index]
        assert store.span("rank/0")["first_t_s"] == pytest.approx(0.02)  # type: ignore[index]


def test_a_hub_that_starts_anew_knows_it_still(tmp_path: Path) -> None:
    """Rows that come after a restart follow those before it."""
    first, second = host("a", 0), host("b", 1, joined_s=10.0)
    for batches in ((first.start(), second.start(), second.batch(50)), (second.batch(50),)):
        pipeline = Pipeline(tmp_path)
        for batch in batches:
            pipeline.take(batch)
        pipeline.close()
    with Store(tmp_path / RUN / FILE_NAME) as store:
        assert store.span("rank/1")["last_t_s"] == pytest.approx(12.0)  # type: ignore[index]


def test_the_first_to_die_is_told_though_its_clock_is_ahead(tmp_path: Path) -> None:
    """Its host's wall clock is three seconds wrong; the collectives before say so."""
    first, second = host("a", 0), host("b", 1, joined_s=3.0)  # in truth they began together
    pipeline = Pipeline(tmp_path)
    for batch in (first.start(), second.start(), first.batch(200), second.batch(200)):
        pipeline.take(batch)
    pipeline.take(
        second.batch(0, second.end(code=1, clean=False, reason="ValueError: bad", t_s=second.now_s))
    )
    pipeline.take(first.batch(0, first.end(code=1, clean=False, reason="gone", t_s=first.now_s + 1.0)))
    told = pipeline.snapshot(RUN)
    pipeline.close()
    assert told is not None
    assert (told["exit"]["rank"], told["exit"]["reason"]) == (1, "ValueError: bad")


@pytest.mark.parametrize("started", [None, "yesterday", math.inf, BEGAN + 2 * BELIEVED_S, True])
def test_a_clock_that_cannot_be_believed_moves_nothing(started: object) -> None:
    """A machine that thinks it is 1970 does not begin decades before the run."""
    clocks = ClockAlignment()
    told = host("b", 1).batch(5, {"kind": "run", "t_s": 0.0, "started_unix_s": started})
    assert clocks.align(told, BEGAN) == told
    assert clocks.align(told, None) == told


def test_all_times_of_a_batch_move_together() -> None:
    """Rows, events and the moment of sending; what is no time stays."""
    clocks = ClockAlignment()
    run = {"kind": "run", "t_s": 0.0, "started_unix_s": BEGAN + 5.0}
    stall = {"kind": "stall", "t_s": 2.0, "since_s": 1.0, "for_s": 1.0}
    told = clocks.align(host("b", 1).batch(2, run, stall), BEGAN)
    assert told.sent_s == pytest.approx(5.04)
    assert list(told.blocks[0].t_s) == pytest.approx([5.02, 5.04])
    assert told.events[1] == {"kind": "stall", "t_s": 7.0, "since_s": 6.0, "for_s": 1.0}
