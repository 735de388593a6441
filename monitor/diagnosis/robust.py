"""Robust statistics that several detectors share. Arrays are one-dimensional; NaN means not measured."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Mask = NDArray[np.bool_]


def median(values: Values) -> float:
    """Median of what was measured; NaN when nothing was."""
    known = values[~np.isnan(values)]
    return float(np.median(known)) if known.size else float("nan")


def mean(values: Values) -> float:
    """Mean of what was measured; NaN when nothing was."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def total(values: Values) -> float:
    """Sum of what was measured; 0 when nothing was."""
    return float(np.nansum(values))


def quantile(values: Values, share: float) -> float:
    """The value below which `share` (0 to 1) of what was measured lies; NaN when nothing was."""
    known = values[~np.isnan(values)]
    return float(np.quantile(known, share)) if known.size else float("nan")


def quarters(values: Values) -> tuple[float, float, float, float]:
    """Medians of the four consecutive quarters."""
    first, second, third, fourth = np.array_split(values, 4)
    return median(first), median(second), median(third), median(fourth)


def local_median(values: Values, span: int) -> Values:
    """Each value's baseline: the median of its block of about `span` neighbours, shape [n].

    Blocks, not a sliding window: a hundred thousand values take a millisecond. Inside a block a
    lasting change of level moves the baseline, a single slow value does not.
    """
    count = len(values)
    if count <= span:
        return np.full(count, median(values))
    blocks = count // span
    head = values[: blocks * span].reshape(blocks, span)
    base = np.repeat(np.median(head, axis=1), span)
    return np.concatenate([base, np.full(count - blocks * span, np.median(values[-span:]))])


def runs(mask: Mask) -> list[tuple[int, int]]:
    """Stretches of consecutive True as (first, after the last)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def change_point(values: Values) -> int | None:
    """Index at which a lasting change of level most likely began, None for fewer than 4 values.

    The split with the largest rank-sum deviation (Pettitt 1979, "A non-parametric approach to the
    change-point problem"): no outlier weighs more than any other value.
    """
    count = len(values)
    if count < 4:
        return None
    _, place, alike = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(alike) - (alike - 1) / 2)[place]
    drift = np.abs(2 * np.cumsum(ranks) - np.arange(1, count + 1) * (count + 1))
    return int(np.argmax(drift[:-1])) + 1
