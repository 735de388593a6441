"""A stream's rows, block by block."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.exports import rows
from monitor.exports.choice import Choice
from monitor.exports.rows import blocks
from monitor.store import Store


def steps(store: Store, choice: Choice, size: int = 700) -> list[int]:
    return [int(step) for block in blocks(store, choice, ["loss"], size) for step in block["row"]]


def test_every_row_comes_once_and_in_order(store: Store):
    """Whatever the block's size, and through the store's own chunks."""
    assert steps(store, Choice()) == list(range(5000))
    assert steps(store, Choice(), 10_000) == list(range(5000))


def test_a_range_takes_rows_by_their_time(store: Store):
    """Both ends included. A step is 24 ms, so the first ends at 0.024 s."""
    assert steps(store, Choice(None, 0.0479, 0.0961)) == [1, 2, 3]
    assert steps(store, Choice(None, 1e9, None)) == []


def test_reading_ends_where_the_range_does(store: Store, monkeypatch: pytest.MonkeyPatch):
    """A minute at the beginning of a long run costs a minute of reading, found by times alone."""
    monkeypatch.setattr(rows, "BATCH_ROWS", 100)
    looked: list[int] = []

    class Counted:
        span = staticmethod(store.span)

        def rows(self, stream: str, keys: list[str], first: int, last: int):
            looked.append(first)
            return store.rows(stream, keys, first, last)

    found = list(blocks(Counted(), Choice(None, None, 0.1), ["loss"], 100))  # type: ignore[arg-type]
    assert (len(found), looked) == (1, [0, 0, 100])


def test_what_was_not_measured_stays_so(store: Store):
    """NaN in, NaN out; every column has the block's length."""
    [block] = blocks(store, Choice(None, 0.0, 0.1), ["loss", "nothing"], 5000)
    assert np.isnan(block["nothing"]).all()
    assert {len(column) for column in block.values()} == {4}


def test_a_stream_without_rows_has_no_blocks(store: Store):
    """And is no error."""
    assert list(blocks(store, Choice("gpu/h/0"), [])) == []
