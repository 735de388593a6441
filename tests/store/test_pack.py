"""Arrays and bytes: what goes in comes out, and what does not add up is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.store import pack


@given(st.binary(max_size=200))
def test_hostile_segment(data: bytes) -> None:
    """Any bytes are either a segment or refused."""
    try:
        table = pack.from_segment(data)
    except pack.DamagedError:
        return
    assert len(table.t_s) == len(table)


@given(st.integers(0, 40), st.sets(st.integers(2, 4000), max_size=5))
def test_segment_there_and_back(count: int, keys: set[int]) -> None:
    """A segment read back is the rows that were written, columns without a value left out."""
    values = {key: np.arange(count, dtype=np.float32) + key for key in keys}
    table = pack.Rows(np.arange(count) * 3, np.arange(count) * 0.5, {**values, 1: np.full(count, np.nan)})
    got = pack.from_segment(pack.segment(table))
    assert np.array_equal(got.rows, table.rows)
    assert np.array_equal(got.t_s, table.t_s)
    assert set(got.columns) == (keys if count else set())
    assert all(np.array_equal(got.columns[key], values[key]) for key in got.columns)


@given(st.lists(st.floats(width=32) | st.just(float("nan")), min_size=1, max_size=60), st.data())
def test_fold_of_parts_is_the_whole(values: list[float], data: st.DataObject) -> None:
    """Entries of parts folded together are the entry of the whole."""
    array = np.array(values, np.float32)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(values)), max_size=4)) | {0})
    starts = np.array([cut for cut in cuts if cut < len(values)])
    whole = np.zeros(1, np.int64)
    parts = pack.fold(pack.summarise(array, starts), whole)
    assert np.allclose(parts, pack.summarise(array, whole), equal_nan=True)


@pytest.mark.parametrize("data", [b"x", b"x" * 33, b"x" * 32 * 51])
def test_odd_node(data: bytes) -> None:
    """A rollup of the wrong length is refused."""
    with pytest.raises(pack.DamagedError):
        pack.from_node(data)


def test_odd_chunk() -> None:
    """A chunk of the wrong length is refused."""
    with pytest.raises(pack.DamagedError):
        pack.from_blob(2, b"x" * 1999)


def test_plain() -> None:
    """JSON gets null and strings where it has no number."""
    values = np.array([1.5, np.nan, np.inf, -np.inf])
    assert pack.plain(values) == [1.5, None, "Infinity", "-Infinity"]
