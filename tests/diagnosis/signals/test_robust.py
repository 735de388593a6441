"""Statistics that one odd value does not move, and that say NaN instead of inventing a number."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.diagnosis.signals.robust import (
    change_point,
    local_median,
    mean,
    median,
    quantile,
    quarters,
    runs,
    total,
)

NOTHING = np.array([np.nan, np.nan])
SOME = np.array([1.0, np.nan, 3.0, 100.0])


def test_what_was_not_measured_counts_for_nothing():
    """NaN is left out of every statistic."""
    assert (median(SOME), total(SOME), quantile(SOME, 0.5)) == (3.0, 104.0, 3.0)
    assert mean(SOME) == pytest.approx(104 / 3)


def test_nothing_measured_is_nan():
    """Without values there is no median, mean or quantile, and the sum is nothing."""
    assert all(math.isnan(value) for value in (median(NOTHING), mean(NOTHING), quantile(NOTHING, 0.9)))
    assert total(NOTHING) == 0


def test_quarters_are_consecutive():
    """The medians of four stretches, in order."""
    assert quarters(np.repeat([1.0, 2.0, 3.0, 4.0], 5)) == (1.0, 2.0, 3.0, 4.0)


def test_few_values_have_quarters_too():
    """Fewer than four values leave quarters unknown, and raise nothing."""
    first, _, _, last = quarters(np.array([5.0]))
    assert first == 5.0
    assert math.isnan(last)


def test_a_single_value_does_not_move_its_baseline():
    """One slow value among neighbours leaves their median where it was."""
    values = np.ones(310)
    values[100] = 50
    assert (local_median(values, 31) == 1).all()


def test_a_lasting_change_moves_the_baseline():
    """After a change of level the baseline follows."""
    base = local_median(np.repeat([1.0, 9.0], 310), 31)
    assert (base[0], base[-1], len(base)) == (1.0, 9.0, 620)


@given(st.lists(st.booleans(), max_size=40))
def test_runs_are_the_stretches_of_true(flags: list[bool]):
    """Their rows are exactly the True ones, and no two stretches touch."""
    mask = np.array(flags, dtype=bool)
    found = runs(mask)
    rows = [row for first, after in found for row in range(first, after)]
    assert rows == np.flatnonzero(mask).tolist()
    assert all(after < first for (_, after), (first, _) in itertools.pairwise(found))


@given(at=st.integers(30, 170), seed=st.integers(0, 99))
def test_a_change_is_dated(at: int, seed: int):
    """The step at which a level changed is found within a few, whatever the noise."""
    noise = np.random.default_rng(seed).normal(0, 0.2, 200)
    assert change_point(np.where(np.arange(200) < at, 1.0, 3.0) + noise) == pytest.approx(at, abs=6)


def test_a_clean_change_is_dated_exactly():
    """Without noise the date is exact, however uneven the sides."""
    assert change_point(np.repeat([1.0, 2.0], [150, 50])) == 150


def test_outliers_do_not_date_a_change():
    """A few huge values weigh no more than others."""
    values = np.repeat([1.0, 2.0], 100) + np.random.default_rng(0).normal(0, 0.1, 200)
    values[[10, 30]] = 1e6
    assert change_point(values) == pytest.approx(100, abs=5)


def test_few_values_have_no_change():
    """Three values are no history."""
    assert change_point(np.array([1.0, 2.0, 9.0])) is None
