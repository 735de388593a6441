"""Many ranks of one host as few rows: what is left out is averaged, never invented."""

from __future__ import annotations

import math
from array import array
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.agent.follow import Follower
from monitor.agent.reduce import MOST_RANKS, STILL_S, STRETCH_S, Reducer
from monitor.batch import Block
from monitor.schema import BRIEF_STEP_BASE, PHASES, TAPE_METRICS
from monitor.tape.reader import Live
from monitor.tape.writer import TapeWriter


def tape(rank: int = 0, world_size: int = 1024, local_rank: int | None = None) -> Any:
    """A rank as the follower knows it, without its files."""
    local = rank if local_rank is None else local_rank
    return SimpleNamespace(rank=rank, world_size=world_size, local_rank=local, live=None, ended=False)


def block(first: int, count: int, rank: int = 0, step_ms: float = 100.0, **columns: float) -> Block:
    """`count` equal steps."""
    ends = array("d", [(first + i + 1) * step_ms / 1e3 for i in range(count)])
    values = {"step_ms": step_ms, "comm_ms": 10.0, "samples": 32.0, **columns}
    return Block(f"rank/{rank}", first, ends, {k: array("f", [v] * count) for k, v in values.items()})


def told(reducer: Reducer, now_s: float = 100.0) -> list[dict[str, float]]:
    return [row for row in reducer.rows(now_s, 0) if row["steps"]]


def end_of(row: dict[str, float]) -> int:
    return int(row["end_high"]) * BRIEF_STEP_BASE + int(row["end_low"])


def test_a_small_run_is_left_as_it_is() -> None:
    """Every step of every rank goes to the hub."""
    reducer, one = Reducer("h"), tape(world_size=MOST_RANKS)
    assert reducer.watch([one]) == []
    assert not reducer.block(one, block(0, 5))
    assert not reducer.sample("proc/0", {"rss_mb": 1.0})
    assert (reducer.active, reducer.rows(9.0, 0)) == (False, [])


def test_the_first_rank_of_a_host_is_told_step_by_step_as_well() -> None:
    """Detectors need one rank in full; the event says which."""
    reducer, ranks = Reducer("h"), [tape(rank) for rank in range(3)]
    (event,) = reducer.watch(ranks)
    assert (event["kind"], event["ranks"], event["full"]) == ("reduced", [0, 1, 2], [0])
    assert [reducer.block(one, block(0, 8)) for one in ranks] == [False, True, True]
    assert [row["rank"] for row in told(reducer)] == [0, 1, 2]


def test_a_stretch_lasts_about_a_second_and_ends_at_a_power_of_two() -> None:
    """At ten steps a second it is eight steps; a row has their means, and where they end."""
    reducer, one = Reducer("h"), tape(1)
    reducer.watch([one])
    reducer.block(one, block(0, 20, comm_ms=7.0))
    rows = told(reducer, 2.0)
    assert [(end_of(row), row["steps"]) for row in rows] == [(8, 8), (16, 8)]
    assert rows[0]["step_ms"] == pytest.approx(100.0)
    assert rows[0]["comm_ms"] == pytest.approx(7.0)
    assert rows[0]["all_samples"] == pytest.approx(256.0)
    assert [row["ago_s"] for row in rows] == pytest.approx([1.2, 0.4])


@pytest.mark.parametrize("step_ms", [0.5, 3.0, 30.0, 100.0, 900.0, 5000.0])
def test_hosts_of_unlike_pace_share_ends(step_ms: float) -> None:
    """Another host whose steps last a little longer ends its stretches at steps where this one does, too."""
    ends = []
    for pace in (step_ms, step_ms * 1.3):
        reducer, one = Reducer("h"), tape(1)
        reducer.watch([one])
        count = max(int(20e3 / step_ms), 8)
        for first in range(0, count, max(count // 10, 1)):
            reducer.block(one, block(first, max(count // 10, 1), step_ms=pace))
        rows = told(reducer)
        ends.append({end_of(row) for row in rows})
        lasted_s = rows[-1]["steps"] * pace / 1e3
        assert lasted_s == pytest.approx(2 * STRETCH_S, rel=0.75) or rows[-1]["steps"] == 1
    assert len(ends[0] & ends[1]) >= 3


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 400), min_size=1, max_size=12), st.sampled_from([1.0, 20.0, 100.0, 2000.0]))
def test_no_step_is_lost_or_told_twice(counts: list[int], step_ms: float) -> None:
    """However the steps come, stretches follow one another without gap, up to the rank's end."""
    reducer, one, first = Reducer("h"), tape(1), 0
    reducer.watch([one])
    rows = []
    for count in counts:
        reducer.block(one, block(first, count, step_ms=step_ms))
        first += count
        rows += told(reducer)
    reducer.end(one)
    rows += told(reducer)
    assert [end_of(row) - row["steps"] for row in rows] == [0, *[end_of(row) for row in rows[:-1]]]
    assert end_of(rows[-1]) == first


def test_steps_that_were_lost_leave_a_gap() -> None:
    """A stretch never covers steps that nobody read."""
    reducer, one = Reducer("h"), tape(1)
    reducer.watch([one])
    reducer.block(one, block(0, 4))
    reducer.block(one, block(6, 2))
    assert [(end_of(row), row["steps"]) for row in told(reducer)] == [(4, 4), (8, 2)]


def test_what_was_not_measured_stays_unknown() -> None:
    """A mean is over what was measured, and absent where nothing was."""
    reducer, one = Reducer("h"), tape(1)
    reducer.watch([one])
    steps = block(0, 8, loss=math.nan)
    steps.columns["loss_scale"] = array("f", [math.nan, 2.0, 4.0] + [math.nan] * 5)  # type: ignore[index]
    reducer.block(one, steps)
    (row,) = told(reducer)
    assert "loss" not in row
    assert row["loss_scale"] == 3.0


def test_a_still_rank_says_where_it_is() -> None:
    """A rank that hangs ends no stretch, and is told of all the same: its phase, and since when."""
    reducer, one = Reducer("h"), tape(1)
    one.live = Live("comm", 1_000_000_000, 8, 0, False, 0)
    reducer.watch([one])
    reducer.block(one, block(0, 8))
    assert [row["steps"] for row in reducer.rows(2.0, 3_000_000_000)] == [8]
    assert reducer.rows(2.0 + STILL_S / 2, 4_000_000_000) == []
    (row,) = reducer.rows(2.0 + STILL_S, 5_000_000_000)
    assert (row["steps"], end_of(row), PHASES[int(row["phase"])]) == (0, 8, "comm")
    assert row["phase_for_s"] == pytest.approx(4.0)


def test_a_rank_that_ended_is_told_to_its_last_step() -> None:
    """And then no more."""
    reducer, one = Reducer("h"), tape(1)
    reducer.watch([one])
    reducer.block(one, block(0, 11))
    reducer.end(one)
    one.ended = True
    assert [end_of(row) for row in told(reducer)] == [8, 11]
    assert reducer.rows(1e6, 0) == []


def test_samples_ride_along() -> None:
    """A process's newest numbers stand in the next row; counts of a device add up until then."""
    reducer, ranks = Reducer("h"), [tape(0), tape(1)]
    reducer.watch(ranks)
    assert not reducer.sample("proc/0", {"rss_mb": 5.0})
    assert not reducer.sample("host/h", {"cpu_used": 1.0})
    for ooms in (1.0, 2.0):
        assert reducer.sample("proc/1", {"rss_mb": 700.0 + ooms})
        assert reducer.sample("cuda/1", {"cuda_ooms": ooms, "cuda_reserved_mb": ooms})
    reducer.block(ranks[1], block(0, 8))
    (row,) = told(reducer)
    assert (row["rss_mb"], row["cuda_ooms"], row["cuda_reserved_mb"]) == (702.0, 3.0, 2.0)
    reducer.block(ranks[1], block(8, 8))
    (row,) = told(reducer)
    assert (row["rss_mb"], "cuda_ooms" in row) == (702.0, False)


def test_real_tapes_are_reduced(tmp_path: Path) -> None:
    """What the follower reads of a tape comes out as means of what was written."""
    writer = TapeWriter(str(tmp_path / "rank-5-1.tape"), rank=5, world_size=64, local_rank=1, slots=64)
    for step in range(16):
        values: list[float] = [0 if m.tape == "ns" else math.nan for m in TAPE_METRICS]
        values[PHASES.index("backward")] = 100_000_000
        values[PHASES.index("comm")] = step * 1_000_000
        writer.append((step + 1) * 100_000_000, values)
    follower, reducer = Follower(tmp_path, 0), Reducer("h")
    (found,) = follower.scan()
    reducer.watch([found])
    blocks, _ = follower.poll(found)
    assert [reducer.block(found, one) for one in blocks] == [True]
    rows = told(reducer)
    assert [row["comm_ms"] for row in rows] == pytest.approx([3.5, 11.5])
    assert [row["longest_step_ms"] for row in rows] == pytest.approx([107.0, 115.0])
    follower.close()
    writer.close()


def test_a_rank_that_is_started_anew_loses_nothing() -> None:
    """What its earlier process did is told, though the next one came before that was sent."""
    reducer, earlier, later = Reducer("h"), tape(1), tape(1)
    reducer.watch([earlier])
    reducer.block(earlier, block(0, 11))
    reducer.end(earlier)
    reducer.watch([later])
    reducer.block(later, block(11, 13))
    assert [(end_of(row), row["steps"]) for row in told(reducer)] == [(8, 8), (11, 3), (16, 5), (24, 8)]
