"""Rows as text."""

from __future__ import annotations

import csv
import io
import math

import numpy as np
from batches import Training

from monitor.exports.as_csv import write
from monitor.exports.choice import Choice
from monitor.store import Store


def table(store: Store, choice: Choice) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(b"".join(write(store, choice)).decode())))


def test_rows_come_back_as_they_were_stored(store: Store):
    """Every step, and every float32 exactly."""
    rows = table(store, Choice())
    kept = store.rows("rank/0", ["data_ms"], 0, 4999)
    assert [int(row["step"]) for row in rows] == list(range(5000))
    assert np.array_equal(np.array([row["data_ms"] for row in rows], np.float32), kept["data_ms"])
    assert all(math.isclose(float(r["t_s"]), t, abs_tol=1e-6) for r, t in zip(rows, kept["t_s"], strict=True))


def test_what_was_not_measured_is_empty(store: Store):
    """A loss that was not seen is no zero and no NaN that a spreadsheet would show as text."""
    rows = table(store, Choice())
    assert (rows[0]["loss"], rows[-1]["loss"]) == ("1.0", "")


def test_a_range_and_a_stream_are_taken(store: Store):
    """Samples are numbered rows, steps are steps."""
    assert [row["step"] for row in table(store, Choice("rank/1", 0.03, 0.08))] == ["1", "2"]
    [sample] = table(store, Choice("proc/0"))
    assert (sample["row"], sample["rss_mb"]) == ("0", "500.0")


def test_a_metric_cannot_name_itself_a_formula(tmp_path):
    """Metrics are named by whoever trains; a spreadsheet must not run them."""
    training = Training()
    with Store(tmp_path / "store.sqlite", create=True) as store:
        store.append(training.start())
        store.append(training.sample("user/0", **{"=1+1": 2.0, "a,b": 3.0}))
        first = b"".join(write(store, Choice("user/0"))).decode().splitlines()[0]
    assert first == 'row,t_s,\'=1+1,"a,b"'
