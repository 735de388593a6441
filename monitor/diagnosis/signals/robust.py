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

    The split into two levels that leaves the least squared deviation (Hinkley 1970), after the outermost
    twentieth on either side was pulled in, so that no outlier dates a change.
    """
    count = len(values)
    if count < 4:
        return None
    low, high = np.quantile(values, (0.05, 0.95))
    level = np.clip(values, low, high) if high > low else values
    before = np.arange(1, count)
    drift = np.cumsum(level - level.mean())[:-1]
    return int(np.argmax(np.abs(drift) / np.sqrt(before * (count - before)))) + 1
