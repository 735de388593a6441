"""A stream's newest rows, in bounded memory."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.run_state.columns import Columns


@settings(max_examples=60, deadline=None)
@given(st.integers(4, 400), st.lists(st.integers(1, 300), min_size=1, max_size=12))
def test_the_newest_rows_are_kept(most: int, sizes: list[int]) -> None:
    """Whatever was appended: at most `most` rows are held, they are the newest, in order, unchanged."""
    columns, first = Columns(most), 0
    for size in sizes:
        rows = np.arange(first, first + size)
        assert columns.append(first, rows * 0.5, {"a": (rows % 97).astype(np.float32)}) == size
        first += size
    held = columns.table()
    assert min(first, int(most * 0.75)) <= len(columns) <= most
    assert held["step"].tolist() == list(range(first - len(columns), first))
    assert held["t_s"].tolist() == (held["step"] * 0.5).tolist()
    assert held["a"].tolist() == (held["step"] % 97).tolist()
    assert columns.total == first


def test_rows_that_come_again() -> None:
    """Rows that are held already are passed over."""
    columns = Columns(100)
    columns.append(0, [1.0, 2.0, 3.0], {"a": [1, 2, 3]})
    assert columns.append(1, [9.0, 9.0, 4.0], {"a": [9, 9, 4]}) == 1
    assert columns.append(0, [9.0], {"a": [9]}) == 0
    assert columns.column("a").tolist() == [1, 2, 3, 4]


def test_columns_that_come_and_go() -> None:
    """A metric is NaN in rows that do not have it."""
    columns = Columns(100)
    columns.append(0, [1.0], {"a": [1]})
    columns.append(1, [2.0], {"b": [2]})
    assert np.nan_to_num(columns.column("a"), nan=-1).tolist() == [1, -1]
    assert np.nan_to_num(columns.column("b"), nan=-1).tolist() == [-1, 2]
    assert np.isnan(columns.column("c")).tolist() == [True, True]


def test_newest_value() -> None:
    """The newest value skips rows that have none."""
    columns = Columns(100)
    columns.append(0, [1.0, 2.0, 3.0], {"loss": [0.5, 0.25, np.nan]})
    assert columns.newest("loss") == 0.25
    assert np.isnan(columns.newest("other"))


def test_a_smaller_limit() -> None:
    """A limit that is lowered takes effect at once, and keeps the newest."""
    columns = Columns(1000)
    columns.append(0, np.arange(1000.0), {"a": np.arange(1000.0)})
    columns.limit(10)
    assert columns.column("a").tolist() == list(range(990, 1000))
    columns.append(1000, [1000.0], {"a": [1000]})
    assert columns.column("a", 1).tolist() == [1000]
    assert len(columns) <= 10
