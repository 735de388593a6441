"""Intervals of means that respect how much neighbouring steps resemble each other."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.compare.statistics import (
    LEAST_STEPS,
    WIDEST,
    correlation_time,
    mean_of,
    period_of,
    ratio_of,
    t_95,
)

#: Pairs of rows on which coverage is counted; 95 % of 300 is within 2.5 points, two times out of three.
PAIRS = 300
#: Least share of intervals that must hold the truth, where 0.95 is promised.
COVERS = 0.91


def correlated(rng: np.random.Generator, n: int, phi: float) -> np.ndarray:
    """Rows of an autoregression of first order about 50, standard deviation 5; shape [PAIRS, n]."""
    noise = rng.normal(size=(PAIRS, n + 300)) * 5 * math.sqrt(1 - phi**2)
    rows = np.zeros_like(noise)
    for i in range(1, noise.shape[1]):
        rows[:, i] = phi * rows[:, i - 1] + noise[:, i]
    return 50 + rows[:, 300:]


def coverage(make: Callable[[], np.ndarray]) -> float:
    """Share of intervals (of the ratio of two rows of one kind) that hold 1; those not given count as one."""
    held = 0
    for one, other in zip(make(), make(), strict=True):
        first, second = mean_of(one), mean_of(other)
        assert first is not None
        assert second is not None
        ratio = ratio_of(first, second)
        held += ratio.low is None or ratio.high is None or ratio.low <= 1 <= ratio.high
    return held / PAIRS


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9, 0.97])
@pytest.mark.parametrize("n", [60, 1000])
def test_the_interval_covers_correlated_steps(phi: float, n: int) -> None:
    """A 95 % interval holds the truth about 95 times of 100, however much neighbours resemble each other."""
    rng = np.random.default_rng(7)
    assert coverage(lambda: correlated(rng, n, phi)) >= COVERS


def test_independence_taken_for_granted_would_not_cover() -> None:
    """The test above can fail: the textbook error of a mean misses the truth far too often."""
    rng = np.random.default_rng(7)
    pairs = zip(correlated(rng, 1000, 0.9), correlated(rng, 1000, 0.9), strict=True)
    missed = sum(abs(a.mean() - b.mean()) > 1.96 * math.hypot(a.std(), b.std()) / 1000**0.5 for a, b in pairs)
    assert missed / PAIRS > 0.3


def test_the_interval_covers_heavy_tails() -> None:
    """Steps of which some take fifty times as long."""
    rng = np.random.default_rng(3)
    assert coverage(lambda: np.exp(rng.normal(3, 1, (PAIRS, 300)))) >= COVERS


def test_independent_steps_get_a_narrow_interval() -> None:
    """Respecting correlation costs little where there is none: within a third of the textbook width."""
    rng = np.random.default_rng(5)
    errors = [mean_of(row).error for row in rng.normal(50, 5, (50, 1000))]  # type: ignore[union-attr]
    textbook = 0.1 / math.sqrt(1000)
    assert textbook * 0.9 < float(np.mean([e for e in errors if e is not None])) < textbook * 4 / 3


def test_slow_drift_widens_the_interval() -> None:
    """A machine that grows slower over the run is seen, though neighbours hardly resemble each other."""
    rng = np.random.default_rng(5)
    flat = rng.normal(50, 5, 2000)
    drifting = flat + np.linspace(0, 10, 2000)
    still, moving = mean_of(flat), mean_of(drifting)
    assert still is not None
    assert moving is not None
    assert still.error is not None
    assert moving.error is not None
    assert moving.error > 3 * still.error


def test_what_recurs_is_no_chance() -> None:
    """A step of 500 ms every tenth is known exactly after a few periods, wherever the row begins."""
    rng = np.random.default_rng(1)
    row = np.where(np.arange(95) % 10 == 3, 500.0, 20.0) + rng.normal(0, 1, 95)
    assert period_of(row) == 10
    for start in range(10):
        mean = mean_of(row[start:])
        assert mean is not None
        assert mean.error is not None
        assert mean.value == pytest.approx(68.0, rel=0.01)
        assert mean.error < 0.02


@pytest.mark.parametrize("phi", [0.0, 0.9])
def test_chance_is_no_period(phi: float) -> None:
    """In rows without a period hardly one is found."""
    rows = correlated(np.random.default_rng(2), 80, phi)
    assert sum(period_of(row) > 1 for row in rows) <= 0.03 * PAIRS


def test_correlation_time_of_known_rows() -> None:
    """τ of an autoregression is (1 + φ) ÷ (1 − φ)."""
    row = correlated(np.random.default_rng(4), 20_000, 0.8)[0]
    assert correlation_time(row) == pytest.approx(9.0, rel=0.2)
    assert correlation_time(np.full(100, 3.0)) == 1.0


def test_too_few_steps_have_a_mean_and_no_error() -> None:
    """What cannot be known is None, never zero."""
    mean = mean_of(np.full(LEAST_STEPS - 1, 10.0))
    assert mean is not None
    assert (mean.value, mean.error) == (10.0, None)
    assert mean_of(np.empty(0)) is None
    ratio = ratio_of(mean, mean)
    assert (ratio.value, ratio.low, ratio.high) == (1.0, None, None)


def test_equal_steps_are_known_exactly() -> None:
    """A row that does not vary has no error, and raises nothing."""
    mean = mean_of(np.full(100, 10.0))
    assert mean is not None
    assert mean.error == 0.0
    assert ratio_of(mean, mean).low == pytest.approx(1.0)


def test_long_rows_cost_no_more_than_they_tell() -> None:
    """A row of 200,000 steps has the mean of all of them and an interval that counts them."""
    row = np.random.default_rng(6).normal(50, 5, 200_000)
    mean = mean_of(row)
    assert mean is not None
    assert mean.error is not None
    assert mean.value == pytest.approx(row.mean(), rel=1e-4)
    assert mean.error == pytest.approx(0.1 / math.sqrt(200_000), rel=0.5)


def test_spread_and_inflation_widen_the_interval() -> None:
    """What a run does not show of itself, and what others may have cost it, is allowed for."""
    mean = mean_of(np.random.default_rng(6).normal(50, 5, 1000))
    assert mean is not None
    narrow, wide = ratio_of(mean, mean), ratio_of(mean, mean, spread=0.05)
    slowed = ratio_of(mean, mean, inflated=(0.0, 0.7))
    assert narrow.low is not None
    assert narrow.high is not None
    assert wide.low is not None
    assert slowed.low is not None
    assert slowed.high is not None
    assert wide.low < 0.92 < narrow.low
    assert slowed.low <= 1.0
    assert slowed.high > 1.7


def test_an_interval_that_says_nothing_is_not_given() -> None:
    """Ends a hundred times apart are no knowledge."""
    row = np.exp(np.random.default_rng(0).normal(0, 3, 20))
    mean = mean_of(row)
    assert mean is not None
    ratio = ratio_of(mean, mean, spread=2.0)
    assert ratio.low is None
    assert ratio.high is None
    assert math.exp(2 * 1.96 * 2.0) > WIDEST


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.706), (2, 4.303), (4, 2.776), (5, 2.571), (8, 2.306), (19, 2.093), (120, 1.980), (1e9, 1.960)],
)
def test_students_t(freedom: float, quantile: float) -> None:
    """As the tables have it."""
    assert t_95(freedom) == pytest.approx(quantile, abs=0.01)


@given(st.lists(st.floats(0, 1e9, allow_nan=False), max_size=80))
def test_any_row_is_taken(row: list[float]) -> None:
    """No row of times makes it raise or return what is no number."""
    mean = mean_of(np.asarray(row, dtype=float))
    if mean is not None:
        ratio = ratio_of(mean, mean)
        assert math.isfinite(mean.value)
        assert ratio.low is None or (ratio.high is not None and ratio.low <= ratio.value <= ratio.high)
