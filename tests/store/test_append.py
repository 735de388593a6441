"""Rows in: whatever the batches were, what is stored is the same."""

from __future__ import annotations

from array import array
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scratch import scratch

from monitor.batch import Batch, Block
from monitor.store import Store, StoreError

KEYS = ("data_ms", "loss", "tokens")


def block(first: int, count: int, *, stream: str = "rank/0", seed: int = 0) -> Block:
    """Rows whose values depend on nothing but their number: 'tokens' is never measured."""
    rows = np.arange(first, first + count)
    values = np.random.default_rng(seed).normal(5, 2, 8192).astype(np.float32)
    loss = np.where(rows % 7 == 0, np.nan, values[(rows * 3) % 8192])
    columns = {
        "data_ms": array("f", values[rows % 8192]),
        "loss": array("f", loss),
        "tokens": array("f", np.full(count, np.nan)),
    }
    return Block(stream, first, array("d", (rows + 1) * 0.01), columns)


def batch(seq: int, *blocks: Block, host: str = "h", events: tuple[dict, ...] = ()) -> Batch:
    return Batch("run-1", host, seq, float(seq), blocks, events)


def contents(store: Store, stream: str = "rank/0") -> dict[str, np.ndarray]:
    return store.rows(stream, KEYS, 0, 2**40)


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[k], other[k], equal_nan=True) for k in one)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 1700), min_size=1, max_size=8))
def test_splits(sizes: list[int]) -> None:
    """However the rows are split into batches, the store holds the same."""
    with scratch() as folder:
        split, whole = (Store(Path(folder) / name, create=True) for name in ("a", "b"))
        first = 0
        for seq, size in enumerate(sizes, 1):
            split.append(batch(seq, block(first, size)))
            first += size
        whole.append(batch(1, block(0, first)))
        assert same(contents(split), contents(whole))
        assert split.totals("rank/0", KEYS).keys() == whole.totals("rank/0", KEYS).keys()
        for key in ("data_ms", "loss"):
            assert split.totals("rank/0", [key])[key] == pytest.approx(
                whole.totals("rank/0", [key])[key], nan_ok=True
            )
        assert split.streams() == whole.streams() == {"rank/0": first}
        split.close()
        whole.close()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 900), st.integers(1, 900)), min_size=1, max_size=8))
def test_overlaps(pieces: list[tuple[int, int]]) -> None:
    """Rows that come again are stored once, and rows that never came are absent, not invented."""
    with scratch() as folder, Store(Path(folder) / "s", create=True) as store:
        expected: list[int] = []
        for seq, (first, count) in enumerate(pieces, 1):
            store.append(batch(seq, block(first, count)))
            expected += range(max(first, expected[-1] + 1 if expected else 0), first + count)
        rows = contents(store)["row"]
        assert rows.tolist() == expected
        assert store.streams() == {"rank/0": len(expected)}


def test_same_batch_twice(tmp_path: Path) -> None:
    """A batch that is sent again changes nothing, and append says so."""
    with Store(tmp_path / "s", create=True) as store:
        event = {"kind": "save", "t_s": 1.0}
        assert store.append(batch(1, block(0, 10), events=(event,)))
        assert not store.append(batch(1, block(0, 10), events=(event,)))
        assert store.streams() == {"rank/0": 10}
        assert len(store.events()) == 1


def test_each_host_counts_for_itself(tmp_path: Path) -> None:
    """Batch 1 of a second host is not batch 1 of the first."""
    with Store(tmp_path / "s", create=True) as store:
        assert store.append(batch(1, block(0, 10)))
        assert store.append(batch(1, block(0, 10, stream="rank/1"), host="other"))
        assert (store.last_seq("h"), store.last_seq("other"), store.last_seq("nobody")) == (1, 1, 0)


def test_reopened(tmp_path: Path) -> None:
    """A writer that starts anew goes on in the middle of a chunk."""
    for seq in range(1, 8):
        with Store(tmp_path / "s", create=True) as store:
            store.append(batch(seq, block((seq - 1) * 130, 130)))
    with Store(tmp_path / "one", create=True) as one, Store(tmp_path / "s") as store:
        one.append(batch(1, block(0, 910)))
        assert same(contents(store), contents(one))


def test_columns_come_and_go(tmp_path: Path) -> None:
    """A metric that appears late is NaN before, one that vanishes is NaN after."""
    with Store(tmp_path / "s", create=True) as store:
        for seq, key in enumerate(("a", "b", "a"), 1):
            first = (seq - 1) * 700
            t_s = array("d", np.arange(first, first + 700) * 0.1)
            store.append(batch(seq, Block("user/x", first, t_s, {key: array("f", [float(seq)] * 700)})))
        rows = store.rows("user/x", ["a", "b"], 0, 2100)
        assert np.nan_to_num(rows["a"], nan=-1).tolist() == [1] * 700 + [-1] * 700 + [3] * 700
        assert np.nan_to_num(rows["b"], nan=-1).tolist() == [-1] * 700 + [2] * 700 + [-1] * 700
        assert store.totals("user/x", ["a", "b"]) == {"a": (2800, 1400, 1, 3), "b": (1400, 700, 2, 2)}
        assert store.keys("user/x") == ["a", "b"]


def test_infinities(tmp_path: Path) -> None:
    """An infinite loss is kept as infinite and leaves the store as a string."""
    with Store(tmp_path / "s", create=True) as store:
        t_s = array("d", [1.0, 2.0, 3.0])
        loss = array("f", [1.0, float("inf"), float("nan")])
        store.append(batch(1, Block("rank/0", 0, t_s, {"loss": loss})))
        points = store.series("rank/0", ["loss"], None, None)["series"]["loss"]
        assert points == {key: [1.0, "Infinity", None] for key in ("min", "max", "mean")}


def test_time_never_falls(tmp_path: Path) -> None:
    """A clock that jumps back is held, so that a range of time is a range of rows."""
    with Store(tmp_path / "s", create=True) as store:
        store.append(batch(1, Block("rank/0", 0, array("d", [5.0, 4.0, 6.0]), {})))
        store.append(batch(2, Block("rank/0", 3, array("d", [1.0]), {})))
        assert store.rows("rank/0", [], 0, 9)["t_s"].tolist() == [5.0, 5.0, 6.0, 6.0]


def test_failed_append_leaves_no_trace(tmp_path: Path) -> None:
    """When a batch cannot be stored, nothing of it is, and the next one is stored as ever."""
    with Store(tmp_path / "s", create=True) as store:
        store.append(batch(1, block(0, 490)))
        with pytest.raises(StoreError):
            store.append(batch(2, block(490, 490)), meta=Bad())
        assert store.streams() == {"rank/0": 490}
        assert store.append(batch(2, block(490, 490)))
        assert contents(store)["row"].tolist() == list(range(980))


class Bad(dict):
    """Metadata on which writing fails, after the rows were written."""

    def items(self):
        raise StoreError("planted")

    def __bool__(self) -> bool:
        return True


def test_disk_full(tmp_path: Path) -> None:
    """A full disk is one clear line, and when there is room again the same batch is taken."""
    with Store(tmp_path / "s", create=True) as store:
        store.append(batch(1, block(0, 600)))
        pages = store._db.sql.execute("PRAGMA page_count").fetchone()[0]
        store._db.sql.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="the disk is full"):
            store.append(batch(2, block(600, 5000)))
        store._db.sql.execute("PRAGMA max_page_count = 1000000")
        assert store.append(batch(2, block(600, 5000)))
        assert store.streams() == {"rank/0": 5600}
