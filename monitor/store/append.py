"""Rows into chunks: a tail of single segments, sealed into chunks and rolled up as it fills."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from monitor.batch import Block
from monitor.store import pack
from monitor.store.database import StoreError, piece_id

MAX_STREAMS = 2**17
MAX_COLUMNS = 2**12
#: Columns 0 and 1 are the row number and the time.
_FIRST_METRIC = 2

_NEW_STREAM = "INSERT INTO stream (id, name, chunks, rows, next_row, t_last) VALUES (?, ?, 0, 0, 0, -1e300)"
_HEAD = "UPDATE stream SET chunks = ?, rows = ?, next_row = ?, t_last = ? WHERE id = ?"


@dataclass
class Head:
    """Where a stream ends: what is sealed, what is not yet, and what comes next."""

    id: int
    chunks: int
    rows: int
    next_row: int
    t_last: float
    tail: pack.Rows


class Appender:
    """Appends blocks inside the caller's transaction. After a failed one, call `forget`."""

    def __init__(self) -> None:
        self._heads: dict[str, Head] = {}
        self._columns: dict[str, int] = {}

    def forget(self) -> None:
        """Drop what is remembered of the file, which is no longer certain."""
        self._heads.clear()
        self._columns.clear()

    def append(self, sql: sqlite3.Connection, block: Block) -> None:
        """Add the block's rows that are not there yet. Rows come in order, so older ones are."""
        head = self._head(sql, block.stream)
        skip = head.next_row - block.first
        if skip >= len(block):
            return
        columns = {self._column(sql, key): values for key, values in block.columns.items()}
        fresh = pack.as_rows(block.first, block.t_s, columns)
        fresh = fresh.cut(max(skip, 0), len(fresh))
        fresh.t_s = np.maximum.accumulate(np.maximum(fresh.t_s, head.t_last))
        head.rows += len(fresh)
        head.next_row = block.first + len(block)
        head.t_last = float(fresh.t_s[-1])
        self._extend(sql, head, fresh)
        sql.execute(_HEAD, (head.chunks, head.rows, head.next_row, head.t_last, head.id))

    def _extend(self, sql: sqlite3.Connection, head: Head, fresh: pack.Rows) -> None:
        table = pack.join([head.tail, fresh])
        full = len(table) // pack.CHUNK
        if full:
            seal(sql, head.id, head.chunks, table.cut(0, full * pack.CHUNK))
            head.chunks += full
            sql.execute("DELETE FROM tail WHERE stream = ?", (head.id,))
            rest = table.cut(full * pack.CHUNK, len(table))
            fresh = table = pack.join([rest, pack.no_rows()])
        head.tail = table
        if len(fresh):
            sql.execute("INSERT INTO tail (stream, data) VALUES (?, ?)", (head.id, pack.segment(fresh)))

    def _head(self, sql: sqlite3.Connection, name: str) -> Head:
        found = self._heads.get(name)
        if found is None:
            found = load_head(sql, name)
            if found is None:
                number = sql.execute("SELECT coalesce(max(id), 0) + 1 FROM stream").fetchone()[0]
                if number >= MAX_STREAMS:
                    raise StoreError(f"a run has at most {MAX_STREAMS} streams")
                sql.execute(_NEW_STREAM, (number, name))
                found = Head(number, 0, 0, 0, -1e300, pack.no_rows())
            self._heads[name] = found
        return found

    def _column(self, sql: sqlite3.Connection, key: str) -> int:
        if not self._columns:
            self._columns = column_ids(sql)
        number = self._columns.get(key)
        if number is None:
            number = _FIRST_METRIC + len(self._columns)
            if number >= MAX_COLUMNS:
                raise StoreError(f"a run has at most {MAX_COLUMNS} metrics")
            sql.execute("INSERT INTO metric (id, name) VALUES (?, ?)", (number, key))
            self._columns[key] = number
        return number


def column_ids(sql: sqlite3.Connection) -> dict[str, int]:
    """Metric key -> column id."""
    return dict(sql.execute("SELECT name, id FROM metric"))


def load_head(sql: sqlite3.Connection, name: str) -> Head | None:
    """A stream's end with its tail, None where there is no such stream."""
    row = sql.execute(
        "SELECT id, chunks, rows, next_row, t_last FROM stream WHERE name = ?", (name,)
    ).fetchone()
    if row is None:
        return None
    blobs = sql.execute("SELECT data FROM tail WHERE stream = ? ORDER BY id", (row[0],))
    tail = pack.join([pack.from_segment(blob) for (blob,) in blobs])
    number, chunks, rows, next_row, t_last = row
    return Head(number, chunks, rows, next_row, t_last, tail)


def seal(sql: sqlite3.Connection, stream: int, chunk: int, table: pack.Rows) -> None:
    """Write whole chunks from number `chunk` on, and their rollups."""
    count = len(table) // pack.CHUNK
    starts = np.arange(count) * pack.CHUNK
    entries = {
        key: pack.summarise(table.column(key), starts) for key in (pack.ROW, pack.TIME, *table.columns)
    }
    sql.executemany("INSERT INTO piece VALUES (?, ?)", _pieces(stream, chunk, table, entries))
    _roll_up(sql, 1, stream, chunk, entries)


def _pieces(
    stream: int, chunk: int, table: pack.Rows, entries: Mapping[int, pack.Floats]
) -> Iterator[tuple[int, bytes]]:
    """Chunks as blobs, without those that hold nothing: all NaN, or row numbers with no gap."""
    for i in range(len(table) // pack.CHUNK):
        part = table.cut(i * pack.CHUNK, (i + 1) * pack.CHUNK)
        for key in sorted(entries):
            low, high, _, known = entries[key][i]
            if known and not (key == pack.ROW and high - low == pack.CHUNK - 1):
                yield piece_id(0, stream, chunk + i, key), pack.to_blob(key, part.column(key))


def _roll_up(
    sql: sqlite3.Connection, level: int, stream: int, at: int, entries: Mapping[int, pack.Floats]
) -> None:
    """Put entries from number `at` on into their nodes; a node that is full becomes one entry above."""
    count = len(entries[pack.TIME])
    for node in range(at // pack.FAN, (at + count - 1) // pack.FAN + 1):
        base = node * pack.FAN
        start, stop = max(base, at), min(base + pack.FAN, at + count)
        for key, values in entries.items():
            part = values[start - at : stop - at]
            number = piece_id(level, stream, node, key)
            row = sql.execute("SELECT data FROM piece WHERE id = ?", (number,)).fetchone()
            if row is None and not part[:, 3].any():
                continue
            before = pack.padded(pack.from_node(row and row[0]), start - base)
            blob = np.concatenate([before, part]).tobytes()
            sql.execute("INSERT OR REPLACE INTO piece VALUES (?, ?)", (number, blob))
        if level == 1 and stop == base + pack.FAN:
            _close(sql, stream, node)


def _close(sql: sqlite3.Connection, stream: int, node: int) -> None:
    """A level 1 node is full: its sum becomes one entry of level 2."""
    base, all_rows = piece_id(1, stream, node, 0), np.zeros(1, np.int64)
    nodes = sql.execute("SELECT id, data FROM piece WHERE id >= ? AND id < ?", (base, base + MAX_COLUMNS))
    sums = {number - base: pack.fold(pack.from_node(data), all_rows) for number, data in nodes.fetchall()}
    _roll_up(sql, 2, stream, node, sums)
