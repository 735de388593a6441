"""Columns: the newest rows of one stream, as contiguous arrays of bounded size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: Rows that a table holds before it first grows.
_START = 256
#: When a table is full, this share of it is kept, so that rows are moved once in many appends.
_KEEP = 0.75

_DTYPES: Mapping[str, type] = {"step": np.int64, "t_s": np.float64}


class Columns:
    """Rows of one stream: `step` (the row number, int64), `t_s` (float64), metrics (float32).

    Args:
        most: the newest so many rows are kept (at least three quarters of it once it is full).

    Attributes:
        total: rows that were ever appended.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[str, Array] = {}
        self._size = 0
        self._capacity = 0
        self._next = 0
        self.total = 0

    def __len__(self) -> int:
        return self._size

    @property
    def keys(self) -> list[str]:
        """Its metrics, in the order in which they first came."""
        return [key for key in self._held if key not in _DTYPES]

    def limit(self, most: int) -> None:
        """Keep at most so many rows from now on."""
        self._most = most
        if self._capacity > most:
            self._move(min(self._size, most), most)

    def append(self, first: int, t_s: Sequence[float], columns: Mapping[str, Sequence[float]]) -> int:
        """Add rows numbered from `first`; those that are there already are passed over. Returns how many."""
        skip = max(self._next - first, 0)
        count = len(t_s) - skip
        if count <= 0:
            return 0
        self._next = first + len(t_s)
        self.total += count
        skip += max(count - self._most, 0)
        kept = len(t_s) - skip
        self._make_room(kept)
        start, stop = self._size, self._size + kept
        self._column("step")[start:stop] = np.arange(first + skip, first + len(t_s))
        self._column("t_s")[start:stop] = np.asarray(t_s)[skip:]
        for key in {**self._held, **columns}:
            if key not in _DTYPES:
                values = columns.get(key)
                self._column(key)[start:stop] = np.nan if values is None else np.asarray(values)[skip:]
        self._size = stop
        return count

    def table(self, last: int | None = None) -> dict[str, Array]:
        """The newest `last` rows (default: all that are held) as views: column -> shape [rows].

        The views stand until the next append.
        """
        start = 0 if last is None else max(self._size - last, 0)
        return {key: values[start : self._size] for key, values in self._held.items()}

    def column(self, key: str, last: int | None = None) -> Array:
        """One column of the newest `last` rows; NaN throughout where the stream has none."""
        start = 0 if last is None else max(self._size - last, 0)
        held = self._held.get(key)
        return np.full(self._size - start, np.nan) if held is None else held[start : self._size]

    def newest(self, key: str) -> float:
        """Newest value of a column that is not NaN; NaN where there is none."""
        held = self.column(key)
        known = np.flatnonzero(~np.isnan(held))
        return float(held[known[-1]]) if len(known) else float("nan")

    def _column(self, key: str) -> Array:
        held = self._held.get(key)
        if held is None:
            dtype = _DTYPES.get(key, np.float32)
            held = self._held[key] = np.zeros(self._capacity, dtype)
            if dtype is np.float32:
                held[: self._size] = np.nan
        return held

    def _make_room(self, count: int) -> None:
        needed = self._size + count
        if needed <= self._capacity:
            return
        if needed <= self._most:
            self._move(self._size, min(self._most, max(_START, 2 * self._capacity, needed)))
        else:
            keep = min(self._size, max(int(self._most * _KEEP) - count, 0), self._most - count)
            self._move(keep, self._most)

    def _move(self, keep: int, capacity: int) -> None:
        """Keep the newest rows, in arrays of this capacity."""
        for key, values in self._held.items():
            newest = values[self._size - keep : self._size]
            if capacity == self._capacity:
                values[:keep] = newest.copy()
                continue
            self._held[key] = np.zeros(capacity, values.dtype)
            self._held[key][:keep] = newest
        self._size, self._capacity = keep, capacity
