"""Reads: raw rows, points for a chart, totals and quantiles, each from the coarsest level that does."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from monitor.store import pack
from monitor.store.append import Head, column_ids, load_head
from monitor.store.database import piece_id

#: Above so many rows, quantiles come from a histogram instead of a sort.
EXACT_ROWS = 2_000_000
#: Bins of that histogram, in equal ratios from the smallest value above zero to the largest.
BINS = 65_536
#: The ids of one column's pieces lie at equal distances. Walking along them inside one statement takes a
#: quarter of the time of asking for each.
_PIECES = """WITH RECURSIVE wanted (id) AS (VALUES (?) UNION ALL SELECT id + 4096 FROM wanted WHERE id < ?)
    SELECT piece.id, data FROM wanted CROSS JOIN piece ON piece.id = wanted.id"""
#: Chunks that are read at a time by a pass over a whole stream.
_STRIDE = 400


@dataclass(frozen=True)
class _Span:
    """Entries `start` to `stop` of one level (0: the rows of these chunks)."""

    level: int
    start: int
    stop: int


class StreamReader:
    """One stream at one moment; lives inside one snapshot.

    Attributes:
        head: its end; None where there is no such stream, and then all reads are empty.
    """

    def __init__(self, sql: sqlite3.Connection, name: str) -> None:
        self._sql = sql
        self._ids = column_ids(sql)
        self.head: Head | None = load_head(sql, name)

    def column_id(self, key: str) -> int:
        """A metric's column; a number that no column has where it is unknown."""
        if key == "t_s":
            return pack.TIME
        return pack.ROW if key == "row" else self._ids.get(key, 2**12 - 1)

    def keys(self) -> list[str]:
        """Metrics that this stream has at least one value of, in the order they were first seen."""
        if self.head is None:
            return []
        held = set(self.head.tail.columns)
        full = self.head.chunks // pack.FAN
        held |= self._columns_of(2, 0, full) | self._columns_of(1, full, full)
        return [key for key, number in self._ids.items() if number in held]

    def _columns_of(self, level: int, first: int, last: int) -> set[int]:
        assert self.head is not None
        low, high = (piece_id(level, self.head.id, node, 0) for node in (first, last + 1))
        rows = self._sql.execute("SELECT DISTINCT id & 4095 FROM piece WHERE id >= ? AND id < ?", (low, high))
        return {number for (number,) in rows}

    def entries(self, level: int, column: int, start: int, stop: int) -> pack.Floats:
        """Rollup entries from `start` up to `stop`; shape [stop − start, 4]."""
        if stop <= start:
            return np.empty((0, 4))
        first, last = start // pack.FAN, (stop - 1) // pack.FAN
        held = self._pieces(level, first, last, column)
        nodes = [pack.padded(pack.from_node(held.get(i)), pack.FAN) for i in range(first, last + 1)]
        return np.concatenate(nodes)[start - first * pack.FAN : stop - first * pack.FAN]

    def raw(self, column: int, start: int, stop: int) -> pack.Array:
        """One column of the chunks from `start` up to `stop`; shape [500 × (stop − start)]."""
        if stop <= start:
            return np.empty(0, np.float32)
        held = self._pieces(0, start, stop - 1, column)
        if column == pack.ROW and len(held) < stop - start:
            firsts = self.entries(1, pack.ROW, start, stop)[:, 0].astype(np.int64)
            plain = {start + i: np.arange(first, first + pack.CHUNK) for i, first in enumerate(firsts)}
        else:
            plain = {}
        unknown = np.full(pack.CHUNK, np.nan, np.float32)
        return np.concatenate(
            [
                pack.from_blob(column, held[chunk]) if chunk in held else plain.get(chunk, unknown)
                for chunk in range(start, stop)
            ]
        )

    def scan(self, column: int) -> Iterator[pack.Array]:
        """One column of the whole stream, in pieces of bounded size."""
        assert self.head is not None
        for start in range(0, self.head.chunks, _STRIDE):
            yield self.raw(column, start, min(start + _STRIDE, self.head.chunks))
        yield self.head.tail.column(column)

    def _pieces(self, level: int, first: int, last: int, column: int) -> dict[int, bytes]:
        """Node (or chunk) -> blob, of those from `first` to `last` that are there."""
        assert self.head is not None
        low, high = (piece_id(level, self.head.id, node, column) for node in (first, last))
        found = self._sql.execute(_PIECES, (low, high))
        return {first + (number - low) // piece_id(0, 0, 1, 0): data for number, data in found}


def rows(reader: StreamReader, keys: Sequence[str], first: int, last: int) -> dict[str, pack.Array]:
    """Raw rows whose number is `first` to `last`, both included: `row`, `t_s` and each key."""
    head = reader.head
    names = ["row", "t_s", *keys]
    if head is None:
        return {name: np.empty(0) for name in names}
    spans = reader.entries(1, pack.ROW, 0, head.chunks)
    start = int(np.searchsorted(spans[:, 1], first, "left"))
    stop = int(np.searchsorted(spans[:, 0], last, "right"))
    numbers = np.concatenate([reader.raw(pack.ROW, start, stop).astype(np.int64), head.tail.rows])
    wanted = (numbers >= first) & (numbers <= last)
    out: dict[str, pack.Array] = {"row": numbers[wanted]}
    for name in names[1:]:
        column = reader.column_id(name)
        out[name] = np.concatenate([reader.raw(column, start, stop), head.tail.column(column)])[wanted]
    return out


def series(
    reader: StreamReader, keys: Sequence[str], t0: float | None, t1: float | None, points: int
) -> dict[str, Any]:
    """At most `points` points between t0 and t1; see `Store.series`."""
    head = reader.head
    if head is None or not head.rows:
        return {"t": [], "rows": [], "series": {key: {"min": [], "max": [], "mean": []} for key in keys}}
    times = reader.entries(1, pack.TIME, 0, head.chunks)
    begin = times[0, 0] if len(times) else head.tail.t_s[0]
    low = float(begin) if t0 is None else t0
    high = head.t_last if t1 is None else t1
    spans = _plan(times, low, high, points)
    when = _column(reader, pack.TIME, spans)
    begins, ends = (when, when) if when.ndim == 1 else (when[:, 0], when[:, 1])
    inside = slice(int(np.searchsorted(begins, low, "left")), int(np.searchsorted(ends, high, "right")))
    when = when[inside]
    starts = _starts(when if when.ndim == 1 else _mean(when), low, high, points)
    when = _fold(when, starts)
    out = {key: _fold(_column(reader, reader.column_id(key), spans)[inside], starts) for key in keys}
    return {
        "t": pack.plain(_mean(when)),
        "rows": when[:, 3].astype(int).tolist(),
        "series": {key: _points(entries) for key, entries in out.items()},
    }


def _column(reader: StreamReader, column: int, spans: Sequence[_Span]) -> pack.Array:
    """A column over the spans and the tail: its values where all of them are raw, else entries."""
    assert reader.head is not None
    tail = reader.head.tail.column(column)
    if all(span.level == 0 for span in spans):
        return np.concatenate([*(reader.raw(column, span.start, span.stop) for span in spans), tail])
    parts = [
        reader.entries(span.level, column, span.start, span.stop)
        if span.level
        else pack.as_entries(reader.raw(column, span.start, span.stop))
        for span in spans
    ]
    return np.concatenate([*parts, pack.as_entries(tail)])


def _fold(held: pack.Array, starts: pack.Array) -> pack.Floats:
    """Values or entries as one entry for each run that begins at `starts`."""
    if not len(starts):
        return np.empty((0, 4))
    return pack.summarise(held, starts) if held.ndim == 1 else pack.fold(held, starts)


def _plan(times: pack.Floats, low: float, high: float, points: int) -> list[_Span]:
    """Which entries to read. What sticks out of the range at an edge is read one level finer."""
    start = int(np.searchsorted(times[:, 1], low, "left"))
    stop = int(np.searchsorted(times[:, 0], high, "right"))
    if stop - start < max(points // 2, 3):
        return [_Span(0, start, max(stop, start))]
    inner, outer = start + 1, stop - 1
    node_in, node_out = -(-inner // pack.FAN), outer // pack.FAN
    if node_out - node_in < points // 2:
        middle = [_Span(1, inner, outer)]
    else:
        middle = [
            _Span(1, inner, node_in * pack.FAN),
            _Span(2, node_in, node_out),
            _Span(1, node_out * pack.FAN, outer),
        ]
    return [_Span(0, start, inner), *middle, _Span(0, outer, stop)]


def _starts(when: pack.Array, low: float, high: float, points: int) -> pack.Array:
    """Where each bucket of equal duration begins; each entry its own while there are few."""
    if len(when) <= points:
        return np.arange(len(when))
    width = max(high - low, 1e-9) / points
    # A damaged file may hold times that are none, or far beyond any range; they go to an edge.
    position = np.nan_to_num((when - low) / width, nan=0.0, posinf=points, neginf=0.0)
    bucket = np.clip(position, 0, points - 1).astype(np.int64)
    return np.flatnonzero(np.diff(bucket, prepend=-1))


def _mean(entries: pack.Floats) -> pack.Floats:
    """Mean of each entry, never outside its minimum and maximum for the rounding of a sum."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.clip(entries[:, 2] / entries[:, 3], entries[:, 0], entries[:, 1])


def _points(entries: pack.Floats) -> dict[str, list[float | str | None]]:
    return {
        "min": pack.plain(entries[:, 0]),
        "max": pack.plain(entries[:, 1]),
        "mean": pack.plain(_mean(entries)),
    }


def total(reader: StreamReader, key: str) -> tuple[float, int, float, float]:
    """Sum, count, minimum and maximum of a metric over the whole stream."""
    head = reader.head
    if head is None or not head.rows:
        return 0.0, 0, np.nan, np.nan
    column, nodes = reader.column_id(key), head.chunks // pack.FAN
    held = np.concatenate(
        [
            reader.entries(2, column, 0, nodes),
            reader.entries(1, column, nodes * pack.FAN, head.chunks),
            pack.as_entries(head.tail.column(column)),
        ]
    )
    low, high, summed, count = pack.fold(held, np.zeros(1, np.int64))[0]
    return float(summed), int(count), float(low), float(high)


def quantiles(reader: StreamReader, key: str, qs: Sequence[float], skip: int) -> list[float]:
    """Quantiles of a metric over all rows but the first `skip`; see `Store.quantiles`."""
    head = reader.head
    if head is None or head.rows <= skip:
        return [float("nan")] * len(qs)
    column = reader.column_id(key)
    if head.rows <= EXACT_ROWS:
        values = np.concatenate(list(reader.scan(column)))[skip:]
        values = values[~np.isnan(values)].astype(np.float64)
        return [float(v) for v in np.quantile(values, qs)] if len(values) else [float("nan")] * len(qs)
    return _histogram_quantiles(reader, key, qs)


def _histogram_quantiles(reader: StreamReader, key: str, qs: Sequence[float]) -> list[float]:
    """Middle of the bin that holds each quantile. The first rows of millions do not matter."""
    _, _, low, high = total(reader, key)
    high = min(high, float(np.finfo(np.float32).max))
    floor = max(low, high * 1e-7, 1e-12)
    if not floor < high:
        return [high] * len(qs)
    edges = np.geomspace(floor, high, BINS + 1)
    scale = BINS / np.log(high / floor)
    counts = np.zeros(BINS, np.int64)
    for values in reader.scan(reader.column_id(key)):
        known = values[~np.isnan(values)].astype(np.float64)
        bins = (np.log(np.maximum(known, floor) / floor) * scale).astype(np.int64)
        counts += np.bincount(np.clip(bins, 0, BINS - 1), minlength=BINS)
    reached = np.cumsum(counts)
    at = np.minimum(np.searchsorted(reached, np.asarray(qs) * reached[-1]), BINS - 1)
    return [float(v) for v in np.sqrt(edges[at] * edges[at + 1])]
