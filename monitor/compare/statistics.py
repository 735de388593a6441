"""Statistics: how well the mean of a row of step times is known, and the ratio of two such means.

Neighbouring steps resemble each other, so a thousand steps tell less than a thousand independent numbers
would. Two estimates of the mean's standard error respect that, and the larger one counts:

* the effective sample size: n ÷ τ, where τ sums the autocorrelation up to the first pair of lags whose sum
  is not positive (Geyer, Practical Markov Chain Monte Carlo, Statistical Science 7, 1992: "initial monotone
  sequence"), or what an autoregression of first order has, whichever is longer: a short row underestimates
  its own correlation, and of that one the bias is known (Kendall, Biometrika 41, 1954);
* the spread of the means of 20 consecutive batches (Law and Kelton, Simulation Modeling and Analysis,
  chapter 9: batch means), which also sees slow drift that the autocorrelation loses in the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Steps = NDArray[np.float64]

#: Batches whose means are taken as independent (Law and Kelton; Schmeiser, Operations Research 30, 1982:
#: more than 30 gain nothing, fewer than 10 widen the interval).
BATCHES = 20
#: Fewer steps than this give no interval (own: of a shorter row the autocorrelation is guesswork). A row that
#: is long and tells little gets a wide one: leaving those out by what they themselves say of their
#: correlation would keep the ones that underestimate it.
LEAST_STEPS = 20
#: An interval whose ends are further apart than this says nothing and is not given (own).
WIDEST = 100.0
#: A period is believed when it was seen so often, and steps that far apart resemble one another this much
#: (own: four times the standard deviation of an autocorrelation over 60 independent steps).
LEAST_CYCLES, RECURS = 4, 0.5
#: Longer rows are first averaged in groups down to so many points: the autocorrelation that matters for
#: the mean of a long row has long lags, and a transform of 4,096 points takes a fraction of a millisecond.
MOST_POINTS = 4_096
#: A first autocorrelation above this is taken for this: nothing is known of such a row anyway.
_MOST_CORRELATED = 0.999
#: Two-sided 95 % quantile of the normal distribution.
_Z_95 = 1.959964
#: The same of Student's t for 1 to 5 degrees of freedom.
_T_95 = (12.706, 4.303, 3.182, 2.776, 2.571)


@dataclass(frozen=True)
class Mean:
    """A mean and how well it is known.

    Attributes:
        value: the mean.
        error: its standard error ÷ the mean; None where there are too few steps to tell.
        freedom: degrees of freedom of that error.
        effective: how many independent steps would tell as much.
    """

    value: float
    error: float | None
    freedom: float
    effective: float


@dataclass(frozen=True)
class Ratio:
    """A ratio of two means with its 95 % interval; `low` and `high` are None where one is not known."""

    value: float
    low: float | None
    high: float | None


def mean_of(steps: Steps) -> Mean | None:
    """The mean of consecutive values (finite, positive on average), over whole periods where they recur.

    None without any.
    """
    period = period_of(steps)
    steps = steps[steps.size % period :]
    if not steps.size or steps.mean() <= 0:
        return None
    value = float(steps.mean())
    # What recurs (evaluating every tenth step) is no chance: only what departs from its own period's is.
    rest = (
        (steps.reshape(-1, period) - steps.reshape(-1, period).mean(axis=0)).ravel() if period > 1 else steps
    )
    left = 1.0 - period / steps.size if period > 1 else 1.0
    points = _grouped(rest)
    effective = points.size / correlation_time(points)
    freedom = max(effective * left - 1.0, 1.0)
    if steps.size < LEAST_STEPS:
        return Mean(value, None, 0.0, effective)
    by_lags = float(points.std(ddof=1)) / math.sqrt(effective)
    error, freedom = max((by_lags, freedom), (_batch_error(points), min(BATCHES - 1.0, freedom)))
    return Mean(value, error / value / math.sqrt(left), freedom, effective)


def period_of(steps: Steps) -> int:
    """After how many steps the values recur; 1 where they do not, or too seldom to be sure."""
    lags = _autocorrelation(steps[-MOST_POINTS:])[: min(steps.size, MOST_POINTS) // LEAST_CYCLES + 1]
    if lags.size < 4:
        return 1
    best = 2 + int(np.argmax(lags[2:]))
    return best if lags[best] >= RECURS and lags[best] - lags[best - 1] >= RECURS / 2 else 1


def correlation_time(points: Steps) -> float:
    """τ: how many consecutive points tell as much as one independent point would; at least 1."""
    lags = _autocorrelation(points)
    if lags.size < 4:
        return 1.0
    pairs = lags[: lags.size // 2 * 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0)
    positive = pairs[: ends[0]] if ends.size else pairs
    by_lags = 2.0 * float(np.minimum.accumulate(positive).sum()) - 1.0
    first = float(lags[1])
    first = min(first + (1 + 3 * first) / lags.size, _MOST_CORRELATED)
    return max(by_lags, (1 + first) / (1 - first), 1.0)


def _autocorrelation(points: Steps) -> Steps:
    """Autocorrelation at lags 0, 1, …; empty where the points do not vary."""
    if not points.size:
        return np.empty(0)
    centred = points - points.mean()
    variance = float(centred @ centred)
    if variance <= (1e-9 * float(np.abs(points).max())) ** 2:
        return np.empty(0)
    padded = np.fft.rfft(centred, 2 * points.size)
    lags: Steps = np.fft.irfft(padded * np.conj(padded))[: points.size] / variance
    return lags


def ratio_of(before: Mean, after: Mean, spread: float = 0.0, inflated: tuple[float, float] = (0, 0)) -> Ratio:
    """`before` ÷ `after`, with an interval made on the logarithm, where errors add up and stay positive.

    Args:
        before, after: the two means.
        spread: relative standard deviation that the ratio has besides, such as that between runs of one and
            the same thing.
        inflated: logarithm of the factor by which each mean may be too large. Anything from none to all of
            it is taken for equally likely, so the interval moves by half of it, and grows by the standard
            deviation of a uniform distribution, its width ÷ √12. The ratio as it was seen stays inside.
    """
    value = before.value / after.value
    if before.error is None or after.error is None:
        return Ratio(value, None, None)
    variances = before.error**2, after.error**2
    within = sum(variances)
    # Welch and Satterthwaite: freedom of a sum of variances that are known to different degrees.
    parts = sum(v**2 / mean.freedom for v, mean in zip(variances, (before, after), strict=True))
    freedom = within**2 / parts if parts > 0 else math.inf
    beyond = math.hypot(spread, inflated[0] / math.sqrt(12), inflated[1] / math.sqrt(12))
    width = math.hypot(t_95(freedom) * math.sqrt(within), _Z_95 * beyond)
    if width > math.log(WIDEST) / 2:
        return Ratio(value, None, None)
    centre = value * math.exp((inflated[1] - inflated[0]) / 2)
    return Ratio(value, min(centre * math.exp(-width), value), max(centre * math.exp(width), value))


def t_95(freedom: float) -> float:
    """Two-sided 95 % quantile of Student's t for `freedom` ≥ 1, within 0.01.

    Between whole numbers below 5 by interpolation in 1 ÷ freedom, above by Abramowitz and Stegun, Handbook
    of Mathematical Functions, 26.7.5.
    """
    if freedom < len(_T_95):
        inverse = 1 / np.arange(len(_T_95), 0, -1.0)
        return float(np.interp(1 / max(freedom, 1.0), inverse, _T_95[::-1]))
    z, v = _Z_95, freedom
    terms = (
        (z**3 + z) / 4 / v,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96 / v**2,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384 / v**3,
    )
    return z + sum(terms)


def _grouped(steps: Steps) -> Steps:
    """Means of equal groups of neighbours, at most MOST_POINTS of them; what is left over at the front."""
    size = -(-steps.size // MOST_POINTS)
    blocks = steps[steps.size % size :].reshape(-1, size)
    means: Steps = blocks.mean(axis=1)
    return means


def _batch_error(points: Steps) -> float:
    means = np.array([part.mean() for part in np.array_split(points, BATCHES)])
    return float(means.std(ddof=1)) / math.sqrt(BATCHES)
