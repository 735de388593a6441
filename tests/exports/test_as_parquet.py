"""Rows in columns, read back by pyarrow itself."""

from __future__ import annotations

import io

import numpy as np
import pytest

pq = pytest.importorskip("pyarrow.parquet")

from monitor.exports.as_parquet import write  # noqa: E402  it needs pyarrow
from monitor.exports.choice import Choice  # noqa: E402
from monitor.store import Store  # noqa: E402


def table(store: Store, choice: Choice):
    return pq.read_table(io.BytesIO(b"".join(write(store, choice))))


def test_rows_come_back_as_they_were_stored(store: Store):
    """Bit for bit, with integers for steps."""
    read, kept = table(store, Choice()), store.rows("rank/0", ["data_ms"], 0, 4999)
    assert read["row"].to_pylist() == list(range(5000))
    assert np.array_equal(read["data_ms"].to_numpy(), kept["data_ms"])
    assert np.array_equal(read["t_s"].to_numpy(), kept["t_s"])


def test_what_was_not_measured_is_null(store: Store):
    """Not NaN, which a mean would swallow."""
    loss = table(store, Choice())["loss"]
    assert (loss[0].as_py(), loss[4999].as_py(), loss.null_count) == (1.0, None, 2500)


def test_units_and_origin_travel_along(store: Store):
    """A file found a year later says what it holds."""
    schema = table(store, Choice(None, 0.0, 0.1)).schema
    assert schema.field("data_ms").metadata == {b"unit": b"ms"}
    assert schema.metadata[b"stream"] == b"rank/0"
    assert schema.metadata[b"run"].endswith(b"digits-1f3a")


def test_an_empty_range_is_an_empty_table(store: Store):
    """With all its columns."""
    read = table(store, Choice(None, 1e9))
    assert (read.num_rows, "data_ms" in read.column_names) == (0, True)
