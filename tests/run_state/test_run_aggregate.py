"""About once a second, one row of the whole run."""

from __future__ import annotations

import math

import pytest
from batches import STEP, Training
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.batch import Batch, Block
from monitor.run_state.columns import Columns
from monitor.run_state.run_aggregate import RunAggregator


class Beating:
    """A pulse over the ranks of a training."""

    def __init__(self, *ranks: int) -> None:
        self.ranks = {rank: Columns(10_000) for rank in ranks or (0,)}
        self.aggregator = RunAggregator()

    def take(self, batch: Batch, *, last: bool = False) -> dict[str, float] | None:
        for block in batch.blocks:
            rank = int(block.stream.removeprefix("rank/"))
            self.ranks[rank].append(block.first, block.t_s, block.columns)
        row = self.aggregator.next_row(batch.sent_s, self.ranks, last=last)
        return None if row is None else {key: column[0] for key, column in row.columns.items()}


def test_a_steady_run() -> None:
    """Rates are the wall's, shares and phases those of the interval."""
    training, beating = Training(), Beating()
    beating.take(training.batch(50))
    row = beating.take(training.batch(50))
    assert row is not None
    assert row["steps_per_s"] == pytest.approx(50)
    assert row["samples_per_s"] == pytest.approx(1600)
    assert math.isnan(row["tokens_per_s"])
    assert row["data_share"] == pytest.approx(0.3)
    assert [row[f"run_{phase}_ms"] for phase in STEP] == pytest.approx(list(STEP.values()))
    assert row["step_p50_ms"] == row["step_p99_ms"] == pytest.approx(20)


def test_once_a_second() -> None:
    """Batches come twice a second, rows about once, numbered one by one."""
    training, beating = Training(), Beating()
    rows = [beating.take(training.batch(25)) is not None for _ in range(8)]
    assert rows == [False, True] * 4
    block = beating.aggregator.next_row(99.0, beating.ranks)
    assert isinstance(block, Block)
    assert (block.stream, block.first, list(block.t_s)) == ("run", 4, [99.0])


def test_batches_cut_steps_unevenly() -> None:
    """Steps of 0.7 s give one and the same rate, though one or two fall into each second."""
    training, beating = Training(phases={"forward": 700.0}), Beating()
    rows = [beating.take(training.batch(n)) for n in (1, 2, 1, 2, 2)]
    assert [row["steps_per_s"] for row in rows if row] == pytest.approx([1 / 0.7] * 3)


def test_a_slow_step_is_no_standstill() -> None:
    """Between the ends of steps of 2.5 s the rate stays, and never claims more than the wait allows."""
    training, beating = Training(phases={"forward": 2500.0}), Beating()
    beating.take(training.batch(3))
    rates = [(beating.take(training.batch(0, idle_s=1.0)) or {})["steps_per_s"] for _ in range(3)]
    assert rates == pytest.approx([0.4, 0.4, 1 / 3])


def test_a_standstill_is_zero() -> None:
    """A run that stands still goes on being told of, with a rate of 0 and no shares."""
    training, beating = Training(), Beating()
    beating.take(training.batch(100))
    rows = [beating.take(training.batch(0, idle_s=1.0)) for _ in range(6)]
    assert rows[-1] is not None
    assert rows[-1]["steps_per_s"] == rows[-1]["samples_per_s"] == 0.0
    assert math.isnan(rows[-1]["data_share"])
    assert math.isnan(rows[-1]["run_forward_ms"])
    back = beating.take(training.batch(100))
    assert back is not None
    assert back["steps_per_s"] == pytest.approx(100 / 8)


def test_several_ranks() -> None:
    """Rates and phases are means over ranks, samples sums, quantiles means as the report has them."""
    fast, slow = Training(ranks=2), Training(ranks=2, phases={**STEP, "forward": 25.0})
    beating = Beating(0, 1)
    one = fast.batch(100).blocks[0]
    other = slow.batch(50).blocks[1]
    row = beating.take(Batch("r", "h", 1, 2.0, (one, other)))
    assert row is not None
    assert row["steps_per_s"] == pytest.approx((50 + 25) / 2)
    assert row["samples_per_s"] == pytest.approx(32 * (50 + 25))
    assert row["run_forward_ms"] == pytest.approx(15)
    assert row["step_p50_ms"] == pytest.approx((20 + 40) / 2)


def test_the_first_step_is_not_in_the_quantiles() -> None:
    """A first step of ten seconds does not colour the quantiles of the next 200."""
    training, beating = Training(phases={"forward": 10_000.0}), Beating()
    beating.take(training.batch(1))
    training.phases = dict(STEP)
    row = beating.take(training.batch(60))
    assert row is not None
    assert row["step_p99_ms"] == pytest.approx(20)


def test_nothing_yet() -> None:
    """Before the first step there is no row."""
    assert Beating().take(Training().batch(0, idle_s=5.0)) is None
    assert RunAggregator().next_row(5.0, {}) is None


def test_the_last_row() -> None:
    """The end of a run is told at once."""
    training, beating = Training(), Beating()
    assert beating.take(training.batch(5), last=True) is not None


def test_going_on_after_a_restart() -> None:
    """Steps that an earlier hub told of are not told again."""
    training, steps = Training(), Columns(1000)
    old = training.batch(100).blocks[0]
    steps.append(old.first, old.t_s, old.columns)
    aggregator = RunAggregator(number=7, last_row_s=1.5)
    aggregator.skip(0, steps)
    new = training.batch(50).blocks[0]
    steps.append(new.first, new.t_s, new.columns)
    row = aggregator.next_row(3.0, {0: steps})
    assert row is not None
    assert row.first == 7
    assert row.columns["steps_per_s"][0] == pytest.approx(50)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 40), st.floats(0, 2)), min_size=1, max_size=30))
def test_rates_add_up(pieces: list[tuple[int, float]]) -> None:
    """However the batches came: rate × time between step ends, added up, is the steps that were taken."""
    training, beating = Training(), Beating()
    steps, counted, told, told_s = beating.ranks[0], 0.0, 0, 0.0
    for count, idle_s in pieces:
        row = beating.take(training.batch(count, idle_s=idle_s))
        if row is not None:
            end_s = float(steps.column("t_s", 1)[0])
            counted += row["steps_per_s"] * (end_s - told_s)
            told, told_s = steps.total, end_s
    assert counted == pytest.approx(told, rel=1e-4)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.floats(0, 20)), min_size=1, max_size=30))
def test_no_row_claims_what_cannot_be(pieces: list[tuple[int, float]]) -> None:
    """Rates are never negative, shares between 0 and 1, a waiting run never faster than its wait."""
    training, beating = Training(), Beating()
    columns, told = beating.ranks[0], 0
    for steps, idle_s in pieces:
        row = beating.take(training.batch(steps, idle_s=idle_s))
        if row is None:
            continue
        assert 0 <= row["steps_per_s"] <= 50.001
        assert math.isnan(row["data_share"]) or 0 <= row["data_share"] <= 1
        if columns.total == told:
            waited_s = training.now_s - float(columns.column("t_s", 1)[0])
            assert row["steps_per_s"] <= 1.001 / waited_s
        told = columns.total
