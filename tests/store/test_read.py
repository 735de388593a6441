"""Reads equal brute force over the raw rows, whatever level they come from."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.batch import Batch, Block
from monitor.store import Store, read

ROWS = 83_210


@pytest.fixture(scope="module")
def data() -> dict[str, np.ndarray]:
    """A metric with gaps of NaN, at times with pauses between them, and row numbers with a gap."""
    rng = np.random.default_rng(3)
    values = rng.lognormal(2, 1, ROWS).astype(np.float32)
    values[rng.random(ROWS) < 0.1] = np.nan
    values[40_000:42_000] = np.nan
    row = np.arange(ROWS) + np.where(np.arange(ROWS) >= 30_100, 5_000, 0)
    return {"row": row, "t_s": np.cumsum(rng.exponential(0.01, ROWS)), "step_ms": values}


@pytest.fixture(scope="module")
def store(data: dict[str, np.ndarray], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store(tmp_path_factory.mktemp("store") / "s", create=True) as made:
        cuts = [0, 10_000, 30_100, 45_000, 60_000, 77_777, ROWS]
        for seq, (start, stop) in enumerate(itertools.pairwise(cuts), 1):
            columns = {"step_ms": array("f", data["step_ms"][start:stop])}
            t_s = array("d", data["t_s"][start:stop])
            block = Block("rank/0", int(data["row"][start]), t_s, columns)
            made.append(Batch("r", "h", seq, 1.0, (block,)))
        yield made


TIMES = st.floats(-5.0, 900.0)


@settings(max_examples=60, deadline=None)
@given(TIMES, TIMES, st.integers(1, 300))
def test_series_equals_brute_force(
    store: Store, data: dict[str, np.ndarray], one: float, other: float, points: int
) -> None:
    """Over any range: min ≤ mean ≤ max in each point, and together they are the raw rows' own."""
    t0, t1 = sorted((one, other))
    got = store.series("rank/0", ["step_ms"], t0, t1, points)
    inside = data["step_ms"][(data["t_s"] >= t0) & (data["t_s"] <= t1)].astype(float)
    assert len(got["t"]) == len(got["rows"]) <= points
    assert sum(got["rows"]) == len(inside)
    assert got["t"] == sorted(got["t"])
    low, high, mean = (np.array(got["series"]["step_ms"][k], float) for k in ("min", "max", "mean"))
    known = ~np.isnan(mean)
    assert (low[known] <= mean[known]).all()
    assert (mean[known] <= high[known]).all()
    if (~np.isnan(inside)).any():
        assert np.nanmin(low) == np.nanmin(inside)
        assert np.nanmax(high) == np.nanmax(inside)


def test_each_point_is_its_rows(store: Store, data: dict[str, np.ndarray]) -> None:
    """A point's min, max and mean are those of the very rows it stands for, at every level."""
    for points in (4, 40, 400, 4000):
        got = store.series("rank/0", ["step_ms"], 100.0, 500.0, points)
        raw = data["step_ms"][(data["t_s"] >= 100.0) & (data["t_s"] <= 500.0)].astype(float)
        parts = np.split(raw, np.cumsum(got["rows"])[:-1])
        points_of = got["series"]["step_ms"]
        for i, part in enumerate(parts):
            if np.isnan(part).all():
                assert points_of["mean"][i] is None
                continue
            assert points_of["min"][i] == np.nanmin(part)
            assert points_of["max"][i] == np.nanmax(part)
            assert points_of["mean"][i] == pytest.approx(np.nanmean(part), rel=1e-9)


def test_few_rows_come_as_they_are(store: Store, data: dict[str, np.ndarray]) -> None:
    """Where there are fewer rows than points, each row is a point at its own time."""
    t_s = data["t_s"][20_000:20_050]
    got = store.series("rank/0", ["step_ms"], float(t_s[0]), float(t_s[-1]), 600)
    assert got["t"] == t_s.tolist()
    assert got["rows"] == [1] * 50


def test_enough_points(store: Store) -> None:
    """The whole run comes with at least half the points asked for."""
    for points in (2, 20, 166, 600):
        assert points / 2 <= len(store.series("rank/0", ["step_ms"], None, None, points)["t"]) <= points


def test_nothing_known(store: Store) -> None:
    """An unknown stream has no points, an unknown metric is null, a range past the end is empty."""
    assert store.series("rank/9", ["x"], None, None)["t"] == []
    assert set(store.series("rank/0", ["x"], None, None)["series"]["x"]["mean"]) == {None}
    assert store.series("rank/0", ["step_ms"], 1e6, 2e6)["t"] == []
    assert store.totals("rank/0", ["x"])["x"][:2] == (0.0, 0)
    assert np.isnan(store.quantiles("rank/9", "x", [0.5])).all()
    assert store.span("rank/9") is None


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 90_000), st.integers(0, 1200))
def test_raw_rows(store: Store, data: dict[str, np.ndarray], first: int, count: int) -> None:
    """Rows by number are exactly those between the two, gap or no gap."""
    got = store.rows("rank/0", ["step_ms"], first, first + count)
    wanted = (data["row"] >= first) & (data["row"] <= first + count)
    assert np.array_equal(got["row"], data["row"][wanted])
    assert np.array_equal(got["t_s"], data["t_s"][wanted])
    assert np.array_equal(got["step_ms"], data["step_ms"][wanted], equal_nan=True)


def test_totals(store: Store, data: dict[str, np.ndarray]) -> None:
    """Totals are those of every row of the run."""
    summed, count, low, high = store.totals("rank/0", ["step_ms"])["step_ms"]
    values = data["step_ms"].astype(float)
    assert summed == pytest.approx(np.nansum(values), rel=1e-12)
    assert (count, low, high) == (np.sum(~np.isnan(values)), np.nanmin(values), np.nanmax(values))


def test_span(store: Store, data: dict[str, np.ndarray]) -> None:
    """A stream knows its first and last row and their times."""
    assert store.span("rank/0") == {
        "rows": ROWS,
        "first_row": 0,
        "last_row": ROWS + 4_999,
        "first_t_s": data["t_s"][0],
        "last_t_s": data["t_s"][-1],
    }


def test_quantiles(store: Store, data: dict[str, np.ndarray]) -> None:
    """Quantiles are numpy's, without the rows that are skipped."""
    got = store.quantiles("rank/0", "step_ms", [0.5, 0.95, 0.99], skip=1)
    assert got == pytest.approx(np.nanquantile(data["step_ms"][1:].astype(float), [0.5, 0.95, 0.99]))


def test_quantiles_by_histogram(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the rows that are sorted, quantiles are within 0.03 % of the sorted ones."""
    exact = store.quantiles("rank/0", "step_ms", [0.0, 0.5, 0.99, 1.0])
    monkeypatch.setattr(read, "EXACT_ROWS", 1000)
    assert store.quantiles("rank/0", "step_ms", [0.0, 0.5, 0.99, 1.0]) == pytest.approx(exact, rel=3e-4)
