"""What a judgement rests on: neither warm-up nor distant past, whole periods, the training loader."""

from __future__ import annotations

import numpy as np
import pytest
from windows import event, loader, rank, window

from monitor.diagnosis.core.window import Rank
from monitor.diagnosis.signals.training_steps import (
    MOST_STEPS,
    RECENT_S,
    RECENT_STEPS,
    WARMUP_STEPS,
    after_warmup,
    complete_periods,
    epoch_starts,
    phase_ms,
    recent_steps,
    share,
    slice_steps,
    step_ms,
    step_range,
    train_loader,
)


def test_the_warm_up_is_cut_off():
    """The first steps of the run are gone, all others are there."""
    assert step_range(recent_steps(rank(60))) == (WARMUP_STEPS, 59)


def test_the_warm_up_is_the_runs_not_the_windows():
    """A window that begins later has none."""
    assert step_range(recent_steps(rank(60, first=1000))) == (1000, 1059)


def test_the_distant_past_is_cut_off():
    """Only the last minutes count, in steps of a second as many as fit."""
    long = rank(2000, forward=984.0)
    assert recent_steps(long).count == pytest.approx(RECENT_S, abs=2)


def test_long_steps_are_judged_too():
    """Steps of a minute: more than the last minutes are needed to see enough of them."""
    assert recent_steps(rank(2000, forward=60_000.0)).count == RECENT_STEPS


def test_short_steps_are_judged_by_the_newest():
    """A hundred thousand short steps cost no more than the most that count."""
    assert recent_steps(rank(100_000, data=0, forward=0.1, backward=0, optimizer=0)).count == MOST_STEPS


def test_what_lasts_is_judged_from_the_beginning():
    """For rare things the whole window counts, but not the warm-up."""
    assert step_range(after_warmup(rank(100_000))) == (WARMUP_STEPS, 99_999)


@pytest.mark.parametrize("one", [Rank(0), rank(3), rank(WARMUP_STEPS)])
def test_before_the_warm_up_is_over_nothing_is_left(one: Rank):
    """No step at all is no trouble."""
    assert (recent_steps(one).count, step_range(recent_steps(one))) == (0, (None, None))


def test_cutting_keeps_columns_alike():
    """All columns of a cut rank have the same rows."""
    part = slice_steps(rank(50, loss=np.arange(50)), 10, 20)
    assert {len(values) for values in part.steps.values()} == {10}
    assert part.column("loss")[0] == 10


def test_step_times_are_phases_added_up():
    """Where the whole is missing it is the sum of the parts."""
    whole = rank(30)
    parts = Rank(0, steps={key: values for key, values in whole.steps.items() if key != "step_ms"})
    assert step_ms(parts) == pytest.approx(step_ms(whole))


def test_a_phase_that_was_not_measured_took_nothing():
    """An unmeasured phase is 0 in sums, not NaN."""
    assert (phase_ms(rank(10, comm=np.nan), "comm") == 0).all()


def test_shares_are_of_wall_time():
    """2 of 16 ms; nothing of nothing is nothing."""
    one = rank(10)
    assert share(phase_ms(one, "data"), one) == pytest.approx(2 / 16)
    assert share(np.empty(0), Rank(0)) == 0.0


def test_epochs_begin_where_their_number_grows():
    """The first row of each epoch but the window's first."""
    one = rank(60, epoch=np.repeat([1, 2, 3], 20))
    assert epoch_starts(window(one), one).tolist() == [20, 40]


def test_epochs_are_told_by_events_too():
    """Without a column the probe's events tell; those outside the window are left out."""
    one = rank(60, first=100)
    events = [event("epoch", step=step) for step in (50, 100, 120, 140, 200)]
    assert epoch_starts(window(one, events=events), one).tolist() == [20, 40]


@pytest.mark.parametrize(("rows", "whole"), [([], None), ([9, 19], None), ([9, 19, 29], slice(10, 30))])
def test_periods_are_whole(rows: list[int], whole: slice | None):
    """From after the first to the last; below two periods there is none."""
    assert complete_periods(np.array(rows, dtype=np.int64)) == whole


def test_the_training_loader_is_the_newest():
    """Of several the one made last, and none that only evaluation draws from."""
    loaders = {**loader(), "loader/2": {"num_workers": 4}, "loader/10": {"num_workers": 8, "role": "eval"}}
    found = train_loader(rank(facts=loaders))
    assert found is not None
    assert found[0] == "2"
