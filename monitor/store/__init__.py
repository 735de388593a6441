"""The store: one SQLite file a run, and the only SQL in the tree.

Streams are kept as chunks of 500 rows, one float32 blob a metric, with rollups (minimum, maximum,
sum, count) at 500 and 25,000 rows. One process writes; others may read while it does.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from monitor.batch import Batch
from monitor.store import read
from monitor.store.append import Appender
from monitor.store.database import Database, DiskFullError, StoreError
from monitor.store.pack import Array
from monitor.strict_json import dumps, loads

__all__ = ["FILE_NAME", "DiskFullError", "Store", "StoreError"]

#: Name of the store inside a run's folder.
FILE_NAME = "store.sqlite"

#: Meta whose name begins so is not part of `Store.meta`.
_PRIVATE = "_"

_HOST = """INSERT INTO host VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET seq = excluded.seq,
    sent_s = excluded.sent_s, received_unix_s = excluded.received_unix_s"""


class Store:
    """One run's store. Every method raises StoreError, with one line for a user, when it fails.

    Args:
        path: the SQLite file.
        create: open for writing, and make the file and its folder where they are absent. Otherwise
            the file is opened for reading and every write fails.

    Raises:
        StoreError: no such file, not a run store, from a newer version, damaged, or a full disk.
    """

    def __init__(self, path: str | Path, *, create: bool = False) -> None:
        self.path = Path(path)
        if create:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(f"{self.path.parent}: {error.strerror}") from error
        self._db = Database(self.path, create=create)
        self._appender = Appender()

    # -- writing

    def append(self, batch: Batch, *, meta: Mapping[str, Any] | None = None) -> bool:
        """Store a batch, all of it or nothing, in one transaction.

        A batch whose number this host has sent already is ignored, and so are rows whose number
        their stream has reached already: sending twice does no harm. Events of kind `fact` go to
        `facts()`, the newest of a name wins; all others to `events()`.

        Args:
            batch: what the agent sent.
            meta: written in the same transaction, as `set_meta` does.

        Returns:
            False where the batch had been stored before.
        """
        try:
            with self._db.transaction() as sql:
                if batch.seq <= self._seq(batch.host):
                    return False
                for block in batch.blocks:
                    self._appender.append(sql, block)
                self._add_events(batch.events)
                self._put_meta(meta or {})
                sql.execute(_HOST, (batch.host, batch.seq, batch.sent_s, time.time()))
        except BaseException:
            self._appender.forget()
            raise
        return True

    def set_meta(self, **values: Any) -> None:
        """Set or replace values that describe the run. Anything JSON can hold; NaN becomes "NaN"."""
        with self._db.transaction():
            self._put_meta(values)

    def save_findings(self, findings: Iterable[Mapping[str, Any]], **meta: Any) -> None:
        """Insert findings (contract's form), or replace those of their code, cause and `raised_at_s`.

        `meta` is written in the same transaction, as `set_meta` does.
        """
        rows = [(f["code"], f["cause"], f["raised_at_s"], _text(f)) for f in findings]
        with self._db.transaction() as sql:
            sql.executemany("INSERT OR REPLACE INTO finding VALUES (?, ?, ?, ?)", rows)
            self._put_meta(meta)

    def save_finding(self, finding: Mapping[str, Any]) -> None:
        """Insert or replace one finding."""
        self.save_findings([finding])

    def _put_meta(self, values: Mapping[str, Any]) -> None:
        rows = [(name, _text(value)) for name, value in values.items()]
        self._db.sql.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)

    def _add_events(self, events: Iterable[Mapping[str, Any]]) -> None:
        facts = [
            (_scope(e), str(e.get("name")), _text(e.get("value"))) for e in events if e["kind"] == "fact"
        ]
        self._db.sql.executemany("INSERT OR REPLACE INTO fact VALUES (?, ?, ?)", facts)
        rows = [(e["kind"], _text(e)) for e in events if e["kind"] != "fact"]
        self._db.sql.executemany("INSERT INTO event (kind, data) VALUES (?, ?)", rows)

    def _seq(self, host: str) -> int:
        row = self._db.sql.execute("SELECT seq FROM host WHERE name = ?", (host,)).fetchone()
        return 0 if row is None else int(row[0])

    # -- what describes the run

    def meta(self) -> dict[str, Any]:
        """Everything that describes the run."""
        with self._db.snapshot() as sql:
            rows = sql.execute("SELECT name, value FROM meta").fetchall()
        return {name: _value(text) for name, text in rows if not name.startswith(_PRIVATE)}

    def set_private(self, **values: Any) -> None:
        """Set values that are nobody's to read but the pipeline's, such as alert addresses."""
        self.set_meta(**{_PRIVATE + name: value for name, value in values.items()})

    def private(self, name: str) -> Any:
        """A value that `set_private` set; None where there is none."""
        with self._db.snapshot() as sql:
            row = sql.execute("SELECT value FROM meta WHERE name = ?", (_PRIVATE + name,)).fetchone()
        return None if row is None else _value(row[0])

    def hosts(self) -> dict[str, dict[str, float]]:
        """Host -> {"seq", "sent_s" (run time), "received_unix_s"} of its last stored batch."""
        with self._db.snapshot() as sql:
            rows = sql.execute("SELECT name, seq, sent_s, received_unix_s FROM host").fetchall()
        return {name: {"seq": seq, "sent_s": sent, "received_unix_s": at} for name, seq, sent, at in rows}

    def last_seq(self, host: str) -> int:
        """Number of the last batch stored from this host, 0 before the first."""
        with self._db.snapshot():
            return self._seq(host)

    def facts(self) -> dict[str, dict[str, Any]]:
        """Scope ("rank/0", "host/NAME") -> name -> value, the newest of each."""
        out: dict[str, dict[str, Any]] = {}
        with self._db.snapshot() as sql:
            for scope, name, text in sql.execute("SELECT scope, name, value FROM fact"):
                out.setdefault(scope, {})[name] = _value(text)
        return out

    def events(
        self, kinds: Iterable[str] | None = None, after: int = 0, limit: int = 1000
    ) -> list[dict[str, Any]]:
        """Events with an `id` above `after`, oldest first, at most `limit`; of `kinds`, or of all."""
        return self._events("id > ?", "id", kinds, [after], limit)

    def last_events(self, kinds: Iterable[str] | None = None, limit: int = 1000) -> list[dict[str, Any]]:
        """The newest `limit` events, oldest first; of `kinds`, or of all."""
        return self._events("id > ?", "id DESC", kinds, [0], limit)[::-1]

    def _events(
        self, where: str, order: str, kinds: Iterable[str] | None, values: list[Any], limit: int
    ) -> list[dict[str, Any]]:
        if kinds is not None:
            wanted = list(kinds)
            where += f" AND kind IN ({','.join('?' * len(wanted))})"
            values = [*values, *wanted]
        text = f"SELECT id, data FROM event WHERE {where} ORDER BY {order} LIMIT ?"  # noqa: S608 - no outside text
        with self._db.snapshot() as sql:
            return [{**_value(data), "id": number} for number, data in sql.execute(text, [*values, limit])]

    def findings(self) -> list[dict[str, Any]]:
        """All findings in the contract's form, active and cleared, in the order they were raised."""
        with self._db.snapshot() as sql:
            rows = sql.execute("SELECT data FROM finding ORDER BY raised_at_s, code, cause").fetchall()
        return [_value(text) for (text,) in rows]

    # -- streams

    def streams(self) -> dict[str, int]:
        """Stream -> number of its rows."""
        with self._db.snapshot() as sql:
            return dict(sql.execute("SELECT name, rows FROM stream ORDER BY id").fetchall())

    def span(self, stream: str) -> dict[str, Any] | None:
        """`rows`, `first_row`, `last_row`, `first_t_s`, `last_t_s` of a stream; None where it has no rows."""
        with self._db.snapshot() as sql:
            reader = read.StreamReader(sql, stream)
            head = reader.head
            if head is None or not head.rows:
                return None
            first_row, first_t_s = read.total(reader, "row")[2], read.total(reader, "t_s")[2]
        return {
            "rows": head.rows,
            "first_row": int(first_row),
            "last_row": head.next_row - 1,
            "first_t_s": first_t_s,
            "last_t_s": head.t_last,
        }

    def keys(self, stream: str) -> list[str]:
        """Metrics of which the stream has at least one value."""
        with self._db.snapshot() as sql:
            return read.StreamReader(sql, stream).keys()

    def rows(self, stream: str, keys: Sequence[str], first: int, last: int) -> dict[str, Array]:
        """Raw rows by number, `first` and `last` included.

        Returns:
            `row` (int64), `t_s` (float64) and each key (float32; all NaN where there is no such metric).
        """
        with self._db.snapshot() as sql:
            return read.rows(read.StreamReader(sql, stream), keys, first, last)

    def series(
        self, stream: str, keys: Sequence[str], t0: float | None, t1: float | None, points: int = 600
    ) -> dict[str, Any]:
        """A chart's points, from the coarsest level that gives at least half as many as asked for.

        Args:
            stream: its name; an unknown one has no points.
            keys: metrics; an unknown one is null throughout.
            t0, t1: range in seconds since the run began, both included; None: from the first, to the last.
            points: at most so many are returned (≥ 1).

        Returns:
            `{"t": […], "rows": […], "series": {key: {"min": […], "max": […], "mean": […]}}}`, all lists of
            one length, JSON-safe (null for NaN, strings for infinities). `t` is the mean time of the
            point's rows, `rows` their number. Rows at the range's edges are counted exactly; a
            point in the middle may hold up to 25,000 rows, so it begins where a rollup does.
        """
        with self._db.snapshot() as sql:
            return read.series(read.StreamReader(sql, stream), keys, t0, t1, max(points, 1))

    def totals(self, stream: str, keys: Sequence[str]) -> dict[str, tuple[float, int, float, float]]:
        """Key -> (sum, count, min, max) over every row of the run; exact but for float32 values."""
        with self._db.snapshot() as sql:
            reader = read.StreamReader(sql, stream)
            return {key: read.total(reader, key) for key in keys}

    def quantiles(self, stream: str, key: str, qs: Sequence[float], skip: int = 0) -> list[float]:
        """Quantiles (0 to 1) over all rows but the first `skip`; NaN where nothing was measured.

        Exact (linear interpolation, as numpy's) up to 2,000,000 rows. Beyond that from a histogram
        of 65,536 bins in equal ratios, over seven decades at most: within 0.03 % of the value, no
        row skipped, and values below the lowest bin counted in it.
        """
        with self._db.snapshot() as sql:
            return read.quantiles(read.StreamReader(sql, stream), key, qs, skip)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _scope(event: Mapping[str, Any]) -> str:
    rank = event.get("rank")
    return f"host/{event.get('host', '')}" if rank is None else f"rank/{rank}"


def _text(value: Any) -> str:
    return dumps(value, marks=True)


def _value(text: str) -> Any:
    try:
        return loads(text)
    except ValueError as error:
        raise StoreError(f"a text in the store is damaged ({error})") from error
