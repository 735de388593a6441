"""Rows, chunks and rollups as arrays and bytes. Pure numpy; nothing here knows SQL.

A *rollup entry* is four float64 numbers, `min, max, sum, count`, over the values that are not NaN.
Level 1 has one entry a chunk (CHUNK rows), level 2 one entry every FAN chunks. FAN entries of one
level and one column make a *node*, which is one blob.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Rows of a chunk (one float32 blob per metric), and of a level 1 rollup entry.
CHUNK = 500
#: Entries of a node; a level 2 entry covers FAN × CHUNK = 25,000 rows.
FAN = 50
#: Columns that every stream has: the row number (int64) and the time in seconds (float64).
ROW, TIME = 0, 1

Floats = NDArray[np.float64]
Array = NDArray[Any]

_EMPTY_ENTRY = np.array([[np.nan, np.nan, 0.0, 0.0]])
_DTYPES = {ROW: np.dtype("<i8"), TIME: np.dtype("<f8")}
_FLOAT32 = np.dtype("<f4")
_SEGMENT = struct.Struct("<IH")


class DamagedError(ValueError):
    """A blob is not what was written. The message says what is wrong."""


@dataclass
class Rows:
    """Consecutive rows: `rows` int64, `t_s` float64, `columns` by column id, float32; one length."""

    rows: Array
    t_s: Floats
    columns: dict[int, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, key: int) -> Array:
        """A column by its id, NaN where it was not measured."""
        if key == ROW:
            return self.rows
        if key == TIME:
            return self.t_s
        found = self.columns.get(key)
        return np.full(len(self), np.nan, _FLOAT32) if found is None else found

    def cut(self, start: int, stop: int) -> Rows:
        """Rows from position `start` up to `stop`, as views."""
        columns = {key: values[start:stop] for key, values in self.columns.items()}
        return Rows(self.rows[start:stop], self.t_s[start:stop], columns)


def no_rows() -> Rows:
    """A table with no rows."""
    return Rows(np.empty(0, np.int64), np.empty(0))


def join(parts: Sequence[Rows]) -> Rows:
    """Tables one after another; NaN where a part lacks a column."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return no_rows()
    if len(parts) == 1:
        return parts[0]
    keys: dict[int, None] = dict.fromkeys(key for part in parts for key in part.columns)
    columns = {key: np.concatenate([part.column(key) for part in parts]) for key in keys}
    return Rows(
        np.concatenate([part.rows for part in parts]), np.concatenate([part.t_s for part in parts]), columns
    )


def segment(table: Rows) -> bytes:
    """Rows of a tail as bytes: count and ids, row numbers, times, then the columns."""
    keys = [key for key, values in table.columns.items() if not np.isnan(values).all()]
    parts = [_SEGMENT.pack(len(table), len(keys)), np.asarray(keys, "<u2").tobytes()]
    parts += [to_blob(ROW, table.rows), to_blob(TIME, table.t_s)]
    return b"".join(parts + [to_blob(key, table.columns[key]) for key in keys])


def from_segment(data: bytes) -> Rows:
    """Read what `segment` wrote.

    Raises:
        DamagedError: the bytes do not add up.
    """
    if len(data) < _SEGMENT.size:
        raise DamagedError("a tail segment is too short")
    count, width = _SEGMENT.unpack_from(data)
    if len(data) != _SEGMENT.size + 2 * width + count * (16 + 4 * width):
        raise DamagedError("a tail segment has the wrong length")
    at = _SEGMENT.size
    keys = np.frombuffer(data, "<u2", width, at)
    at += 2 * width
    rows = np.frombuffer(data, "<i8", count, at)
    t_s = np.frombuffer(data, "<f8", count, at + 8 * count)
    body = np.frombuffer(data, "<f4", count * width, at + 16 * count).reshape(width, count)
    return Rows(rows, t_s, {int(key): body[i] for i, key in enumerate(keys)})


def to_blob(key: int, values: Array) -> bytes:
    """One column as bytes: float32, but int64 for the row number and float64 for the time."""
    return np.ascontiguousarray(values, _DTYPES.get(key, _FLOAT32)).tobytes()


def from_blob(key: int, data: bytes) -> Array:
    """One column of a chunk from bytes.

    Raises:
        DamagedError: the length is not that of CHUNK rows.
    """
    dtype = _DTYPES.get(key, _FLOAT32)
    if len(data) != CHUNK * dtype.itemsize:
        raise DamagedError("a chunk has the wrong length")
    return np.frombuffer(data, dtype)


def summarise(values: Array, starts: Array) -> Floats:
    """Rollup entries of the runs of `values` that begin at `starts`; shape [len(starts), 4]."""
    wide = np.asarray(values, np.float64)
    known = ~np.isnan(wide)
    out = np.empty((len(starts), 4))
    out[:, 0] = np.fmin.reduceat(wide, starts)
    out[:, 1] = np.fmax.reduceat(wide, starts)
    with np.errstate(invalid="ignore"):  # the sum of both infinities is NaN, and that is the truth
        out[:, 2] = np.add.reduceat(np.where(known, wide, 0.0), starts)
    out[:, 3] = np.add.reduceat(known.astype(np.float64), starts)
    return out


def fold(entries: Floats, starts: Array) -> Floats:
    """Entries combined to one for each run that begins at `starts`; shape [len(starts), 4]."""
    out = np.empty((len(starts), 4))
    out[:, 0] = np.fmin.reduceat(entries[:, 0], starts)
    out[:, 1] = np.fmax.reduceat(entries[:, 1], starts)
    with np.errstate(invalid="ignore"):
        out[:, 2:] = np.add.reduceat(entries[:, 2:], starts, axis=0)
    return out


def as_entries(values: Array) -> Floats:
    """Each value as an entry of its own; shape [len(values), 4]."""
    wide = np.asarray(values, np.float64)
    known = ~np.isnan(wide)
    return np.stack([wide, wide, np.where(known, wide, 0.0), known.astype(np.float64)], axis=1)


def padded(entries: Floats, count: int) -> Floats:
    """The same entries, and empty ones behind them up to `count`."""
    missing = count - len(entries)
    return entries if missing <= 0 else np.concatenate([entries, np.repeat(_EMPTY_ENTRY, missing, axis=0)])


def from_node(data: bytes | None) -> Floats:
    """The entries of a node; none for None.

    Raises:
        DamagedError: it is no whole number of entries, or holds more than FAN.
    """
    if data is None:
        return np.empty((0, 4))
    if len(data) % 32 or len(data) > 32 * FAN:
        raise DamagedError("a rollup has the wrong length")
    return np.frombuffer(data, "<f8").reshape(-1, 4)


def plain(values: Iterable[float]) -> list[float | str | None]:
    """Numbers as JSON can hold them: None for NaN, "Infinity" and "-Infinity" as strings."""
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return [v if -_INFINITY < v < _INFINITY else _odd(v) for v in listed]


_INFINITY = float("inf")


def _odd(value: float) -> str | None:
    return None if value != value else "Infinity" if value > 0 else "-Infinity"


def as_rows(first: int, t_s: Sequence[float], columns: Mapping[int, Sequence[float]]) -> Rows:
    """A block's rows, without copying where its columns are arrays already."""
    count = len(t_s)
    held = {key: np.asarray(values, _FLOAT32) for key, values in columns.items()}
    return Rows(np.arange(first, first + count), np.asarray(t_s, np.float64), held)
