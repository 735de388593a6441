"""A host's ranks in averages: as much is known of them as was told, and no more."""

from __future__ import annotations

import math
from array import array
from pathlib import Path

import numpy as np
import pytest
from batches import RUN, Training

from monitor.agent.batcher import Batcher
from monitor.agent.reduce import Row
from monitor.batch import Batch
from monitor.diagnosis.signals.communication import exchange, last_shares
from monitor.run_state import RunState
from monitor.run_state.briefs import newest, unfolded
from monitor.run_state.restore import restore
from monitor.schema import BRIEF_STEP_BASE, PHASES
from monitor.store import FILE_NAME, Store


def row(rank: int, end: int, steps: int = 8, comm_ms: float = 20.0, **more: float) -> Row:
    """A stretch of steps of 100 ms."""
    high, low = divmod(end, BRIEF_STEP_BASE)
    phases = {f"{phase}_ms": 0.0 for phase in PHASES}
    phases |= {"comm_ms": comm_ms, "backward_ms": 100.0 - comm_ms, "step_ms": 100.0}
    known = {"rank": rank, "end_high": high, "end_low": low, "steps": steps, "ago_s": 0.1}
    return {**known, **phases, "all_samples": 32.0 * steps, "rss_mb": 100.0 + rank, **more}


class Host:
    """One host's agent in a large run: its first rank in full, and all in briefs."""

    def __init__(self, name: str, first: int, count: int = 8, late: int | None = None) -> None:
        self.name, self.ranks, self.late = name, range(first, first + count), late
        self._batcher = Batcher(RUN, name)
        self._full = Training(host=name, ranks=1, phases={"backward": 80.0, "comm": 20.0})

    def start(self, world_size: int) -> list[Batch]:
        about = {"kind": "run", "name": "many", "started_unix_s": 1.8e9, "world_size": world_size}
        self._batcher.event({**about, "t_s": 0.0, "host": self.name})
        for rank in self.ranks:
            self._batcher.event({"kind": "attach", "t_s": 0.0, "rank": rank, "pid": rank})
        return self._batcher.close(0.0)

    def second(self, number: int, comm: float = 20.0) -> list[Batch]:
        """Eight steps of each rank."""
        now_s = 0.8 * (number + 1)
        steps = self._full.rows(f"rank/{self.ranks[0]}", 8, {})
        self._full.steps += 8
        self._full.now_s = now_s
        self._batcher.block(steps)
        for rank in self.ranks:
            mine = 2.0 if rank == self.late else comm
            told = row(rank, 8 * (number + 1), comm_ms=mine, phase=PHASES.index("comm"), phase_for_s=0.05)
            self._batcher.sample(f"brief/{self.name}", now_s, told)
        return self._batcher.close(now_s)


def played(seconds: int = 40, hosts: int = 4, late: int | None = None) -> tuple[RunState, list[Batch]]:
    """A run of eight ranks a host, at ten steps a second."""
    state, batches = RunState(RUN), []
    made = [Host(f"h{i}", 8 * i, late=late) for i in range(hosts)]
    for host in made:
        batches += host.start(8 * hosts)
    for number in range(seconds):
        for host in made:
            batches += host.second(number)
    for batch in batches:
        block = state.take(batch)
        assert block is None or block.stream == "run"
    return state, batches


def test_ranks_are_known_with_their_steps_and_where_they_are() -> None:
    """Each rank's step, phase and host; those without rows of their own are marked as reduced."""
    state, _ = played(3)
    assert (len(state.ranks), state.steps) == (32, 24)
    assert [rank.step for rank in state.ranks.values()] == [23] * 32
    assert sum(rank.reduced for rank in state.ranks.values()) == 28
    assert not state.ranks[8].reduced
    assert state.ranks[9].phase == ("comm", pytest.approx(2.35))
    assert state.ranks[31].process["host"] == "h3"


def test_rates_are_of_all_ranks() -> None:
    """Samples per second count those that are told in averages, too."""
    state, _ = played(20)
    rates = state.own.column("samples_per_s")
    assert np.median(rates) == pytest.approx(32 * 320.0, rel=0.15)


def test_the_picture_has_every_rank_once() -> None:
    """Whether a rank is told step by step or in averages makes no difference to it."""
    state, _ = played(10)
    seen = state.timeline.between(0.0, 8.0, 4)
    assert len(seen.ranks) == 32
    assert set(seen.steps.sum(axis=1).tolist()) == {80.0}
    assert seen.over("comm_ms") == pytest.approx([20.0] * 32)


def test_the_late_rank_is_found_among_averages() -> None:
    """It has the least communication in every stretch, and comes last in all of them."""
    state, _ = played(40, late=13)
    seen = exchange(state.window())
    assert seen is not None
    assert len(seen.ranks) == 32
    assert seen.ranks[13].rank == 13
    assert last_shares(state.window())[13] == 1.0
    assert np.median(seen.comm_ms[13]) == pytest.approx(2.0)


def test_a_rank_that_is_gone_takes_nothing_from_the_others() -> None:
    """The others are compared over what came after it."""
    state, _ = played(40)
    for name, columns in state.briefs.items():
        if name == "h0":
            columns.limit(16)
    seen = exchange(state.window())
    assert seen is not None
    assert {rank.rank for rank in seen.ranks} == set(range(8, 32))


def test_a_restored_run_is_as_it_was(tmp_path: Path) -> None:
    """A hub that starts anew goes on with the same ranks and the same picture."""
    state, batches = played(12)
    with Store(tmp_path / FILE_NAME, create=True) as store:
        for batch in batches:
            store.append(batch, meta=state.meta())
        again = restore(RUN, store)
    assert [rank.step for rank in again.ranks.values()] == [rank.step for rank in state.ranks.values()]
    assert sum(rank.reduced for rank in again.ranks.values()) == 28
    assert again.timeline.between(0.0, 9.6, 4).steps.sum() == state.timeline.between(0.0, 9.6, 4).steps.sum()


def test_memory_is_a_sum_of_newest_values() -> None:
    """Of each rank the newest sample counts; a rank that told none counts nothing."""
    state, _ = played(3)
    assert newest(state.briefs["h0"], ["rss_mb"])["rss_mb"] == sum(100.0 + rank for rank in range(8))
    assert math.isnan(newest(state.briefs["h0"], ["workers_cpu"])["workers_cpu"])


def test_step_numbers_beyond_single_precision() -> None:
    """A run of a hundred million steps is still told to the step."""
    high, low = divmod(100_000_001, BRIEF_STEP_BASE)
    one = {"rank": 3.0, "steps": 1.0, "end_high": float(high), "end_low": float(low)}
    table = unfolded([5.0], {key: array("f", [value]) for key, value in one.items()})
    assert table["end"].tolist() == [100_000_001]


def test_rows_that_are_no_briefs_are_none() -> None:
    """What does not say its rank and steps, or says nonsense, is passed over."""
    assert unfolded([1.0], {"step_ms": array("f", [1.0])}) == {}
    odd = {
        "rank": array("f", [math.nan, 1.0]),
        **{k: array("f", [1.0, 1.0]) for k in ("steps", "end_high", "end_low")},
    }
    assert unfolded([1.0, 1.0], odd)["rank"].tolist() == [1]
