"""Chunks and both levels of rollups, against a model that keeps every row in a list.

Chunks are four rows long here and nodes three entries, so that a few dozen rows fill several
levels, and every way of crossing their borders is met.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scratch import scratch

from monitor.batch import Batch, Block
from monitor.store import Store, pack

VALUES = st.floats(-1e6, 1e6, width=32) | st.just(float("nan"))
NAMES = ("a", "b", "c")

quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "CHUNK", 4)
    monkeypatch.setattr(pack, "FAN", 3)


@dataclass
class Piece:
    """Rows that come in one batch: a gap before them, seconds between them, and columns."""

    gap: int
    pause_s: float
    columns: dict[str, list[float]]

    @property
    def count(self) -> int:
        return len(next(iter(self.columns.values())))


@st.composite
def pieces(draw: st.DrawFn) -> Piece:
    count = draw(st.integers(1, 23))
    names = draw(st.sets(st.sampled_from(NAMES), min_size=1))
    columns = {name: draw(st.lists(VALUES, min_size=count, max_size=count)) for name in sorted(names)}
    return Piece(draw(st.sampled_from([0, 0, 0, 5])), draw(st.sampled_from([0.0, 0.5, 20.0])), columns)


@dataclass
class Model:
    """What the store should hold."""

    rows: list[int] = field(default_factory=list)
    t_s: list[float] = field(default_factory=list)
    columns: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in NAMES})

    def block(self, piece: Piece) -> Block:
        """Take the piece in, and say it as a block."""
        first = (self.rows[-1] + 1 if self.rows else 0) + piece.gap
        began = self.t_s[-1] if self.t_s else 0.0
        times = [began + piece.pause_s * (i + 1) for i in range(piece.count)]
        self.rows += range(first, first + piece.count)
        self.t_s += times
        for name in NAMES:
            self.columns[name] += piece.columns.get(name, [float("nan")] * piece.count)
        return Block("user/x", first, array("d", times), {k: array("f", v) for k, v in piece.columns.items()})

    def column(self, name: str) -> np.ndarray:
        return np.array(self.columns[name], np.float32).astype(float)


class Filled:
    """A store and its model, filled alike, with the store reopened in between now and then."""

    def __init__(self, folder: str, given: list[Piece]) -> None:
        self.model = Model()
        self.path = Path(folder) / "s"
        for seq, piece in enumerate(given, 1):
            if seq % 3 == 1:
                self.store = Store(self.path, create=True)
            self.store.append(Batch("r", "h", seq, 1.0, (self.model.block(piece),)))
            if seq % 3 == 0:
                self.store.close()
        self.store.close()
        self.store = Store(self.path)


def filled(given: list[Piece]) -> Iterator[Filled]:
    with scratch() as folder:
        made = Filled(folder, given)
        yield made
        made.store.close()


@quick
@given(st.lists(pieces(), min_size=1, max_size=9), st.data())
def test_rows(given: list[Piece], data: st.DataObject) -> None:
    """Every row comes back as it came, by its number."""
    for made in filled(given):
        model = made.model
        first = data.draw(st.integers(-2, model.rows[-1] + 2))
        last = data.draw(st.integers(first, model.rows[-1] + 2))
        got = made.store.rows("user/x", NAMES, first, last)
        wanted = [i for i, row in enumerate(model.rows) if first <= row <= last]
        assert got["row"].tolist() == [model.rows[i] for i in wanted]
        assert got["t_s"].tolist() == [model.t_s[i] for i in wanted]
        for name in NAMES:
            assert np.array_equal(got[name], model.column(name)[wanted], equal_nan=True)


@quick
@given(st.lists(pieces(), min_size=1, max_size=9))
def test_totals(given: list[Piece]) -> None:
    """Totals are those of all rows, whatever level they were added up at."""
    for made in filled(given):
        for name, (summed, count, low, high) in made.store.totals("user/x", NAMES).items():
            values = made.model.column(name)
            known = values[~np.isnan(values)]
            assert count == len(known)
            assert summed == pytest.approx(known.sum(), abs=1e-2)
            if count:
                assert (low, high) == (known.min(), known.max())


@quick
@given(st.lists(pieces(), min_size=1, max_size=9), st.integers(1, 12), st.data())
def test_series(given: list[Piece], points: int, data: st.DataObject) -> None:
    """Any range, any number of points: each point is exactly the rows that it says it stands for."""
    for made in filled(given):
        times = np.array(made.model.t_s)
        low = data.draw(st.sampled_from([None, *made.model.t_s]))
        high = data.draw(st.sampled_from([None, *(t for t in made.model.t_s if low is None or t >= low)]))
        got = made.store.series("user/x", NAMES, low, high, points)
        inside = (times >= (times[0] if low is None else low)) & (
            times <= (times[-1] if high is None else high)
        )
        assert len(got["t"]) <= points
        assert sum(got["rows"]) == inside.sum()
        cuts = np.cumsum(got["rows"])[:-1]
        for name in NAMES:
            parts = np.split(made.model.column(name)[inside], cuts) if got["rows"] else []
            for i, part in enumerate(parts):
                check_point(part, {k: v[i] for k, v in got["series"][name].items()})


def check_point(rows: np.ndarray, point: dict[str, float | None]) -> None:
    known = rows[~np.isnan(rows)]
    if not len(known):
        assert set(point.values()) == {None}
        return
    low, high, mean = point["min"], point["max"], point["mean"]
    assert low is not None and high is not None and mean is not None  # noqa: PT018
    assert (low, high) == (known.min(), known.max())
    assert low <= mean <= high
    assert mean == pytest.approx(known.mean(), abs=1e-3, rel=1e-6)


@quick
@given(st.lists(pieces(), min_size=1, max_size=9), st.integers(0, 3))
def test_quantiles(given: list[Piece], skip: int) -> None:
    """Quantiles are numpy's over all rows but those skipped."""
    for made in filled(given):
        for name in NAMES:
            values = made.model.column(name)[skip:]
            known = values[~np.isnan(values)]
            got = made.store.quantiles("user/x", name, [0.0, 0.5, 1.0], skip)
            if len(known):
                assert got == pytest.approx(np.quantile(known, [0.0, 0.5, 1.0]).tolist())
            else:
                assert np.isnan(got).all()


@quick
@given(st.lists(pieces(), min_size=1, max_size=9))
def test_span_and_keys(given: list[Piece]) -> None:
    """A stream knows where it begins and ends, and which metrics ever had a value."""
    for made in filled(given):
        model = made.model
        span = made.store.span("user/x")
        assert span is not None
        assert (span["rows"], span["first_row"], span["last_row"]) == (
            len(model.rows),
            model.rows[0],
            model.rows[-1],
        )
        assert (span["first_t_s"], span["last_t_s"]) == (model.t_s[0], model.t_s[-1])
        valued = {name for name in NAMES if not np.isnan(model.column(name)).all()}
        assert set(made.store.keys("user/x")) == valued
