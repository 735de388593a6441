"""Every rank's time by phase in columns of equal duration, in bounded memory, from the run's beginning.

Two layers of sums: one over the whole run, whose columns become twice as wide whenever they no longer reach,
and one over the last minutes. Any range is answered from one of them, so that an answer for 1,024 ranks takes
milliseconds and no row is read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.schema import PHASES

Floats = NDArray[np.float64]

#: Columns of a layer. The whole run has between half as many and so many.
COLUMNS = 480
#: Width of a column: of the last minutes, and of the whole run at its beginning, seconds.
RECENT_S, FIRST_S = 0.5, 0.25

#: Rows later than this, in seconds since the run began, are a mistake (30 years).
_LATEST_S = 1e9

#: Times of rows are rounded: a stretch as long as a column covers it, though the sum says a little less.
_ROUNDED_S = 1e-3

#: What is summed up, besides the number of steps, which comes last.
KEYS = (*(f"{phase}_ms" for phase in PHASES), "step_ms")
STEP, COMM, _COUNT = len(PHASES), PHASES.index("comm"), len(KEYS)


@dataclass(frozen=True)
class TimelineSlice:
    """Ranks over time.

    Attributes:
        ranks: their numbers; shape [ranks].
        t: middle of each column, seconds since the run began; shape [columns].
        column_s: width of a column, seconds.
        sums: shape [ranks, columns, KEYS], milliseconds; NaN where something was not measured.
        steps: steps that ended in each column; shape [ranks, columns].
    """

    ranks: NDArray[np.int64]
    t: Floats
    column_s: float
    sums: Floats
    steps: Floats

    def mean(self, key: str) -> Floats:
        """Mean of a step, of one key; NaN where no step was. Shape [ranks, columns].

        A step, or a stretch that is told as one row, that lasted longer than a column stands in every column
        that it covers.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            values = self.sums[:, :, KEYS.index(key)] / self.steps
        return self._covering(values)

    def phase(self) -> Floats:
        """Index of the phase that took most of each column; NaN where no step ended. Shape as `mean`."""
        known = np.nan_to_num(self.sums[:, :, :STEP], nan=-1.0)
        values = np.where(self.steps > 0, known.argmax(axis=2), np.nan)
        values[known.max(axis=2) < 0] = np.nan
        return self._covering(values)

    def over(self, key: str) -> Floats:
        """Mean of a step over the whole picture; NaN without one. Shape [ranks]."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.sums[:, :, KEYS.index(key)].sum(axis=1) / self.steps.sum(axis=1))

    def _covering(self, values: Floats) -> Floats:
        """The same, with a value also where steps were under way and none ended.

        What ended in a column began, in all, as long before as it lasted: a rank's steps follow one another.
        """
        count = values.shape[1]
        if not count:
            return values
        lasted = self.sums[:, :, STEP] / 1e3 + _ROUNDED_S
        ended = self.steps > 0
        following = np.where(ended, np.arange(count), count)
        following = np.minimum.accumulate(following[:, ::-1], axis=1)[:, ::-1]
        at = np.minimum(following, count - 1)
        away = (at - np.arange(count)) * self.column_s
        covered = (following < count) & (away <= np.nan_to_num(np.take_along_axis(lasted, at, axis=1)))
        return np.asarray(np.where(covered | ended, np.take_along_axis(values, at, axis=1), np.nan))


class _Layer:
    """Sums in columns of one width. Columns before `first` are forgotten."""

    def __init__(self, width_s: float, *, grows: bool) -> None:
        self.width_s, self._grows = width_s, grows
        self.first = self.newest = 0
        self._sums = np.zeros((0, COLUMNS, _COUNT + 1), np.float32)

    def hold(self, ranks: int) -> None:
        """Have room for so many ranks."""
        if ranks > len(self._sums):
            more = max(ranks, 2 * len(self._sums)) - len(self._sums)
            self._sums = np.concatenate([self._sums, np.zeros((more, COLUMNS, _COUNT + 1), np.float32)])

    def add(self, rows: NDArray[np.intp], t_s: Floats, values: Floats) -> None:
        """Add `values` (shape [KEYS + 1, n]) of steps that ended at `t_s` to the ranks in `rows`."""
        self._reach(int(t_s.max() / self.width_s))
        columns = np.maximum(t_s / self.width_s, 0.0).astype(np.int64)
        kept = columns >= self.first
        if not kept.all():
            rows, columns, values = rows[kept], columns[kept], values[:, kept]
        cells = rows * COLUMNS + columns % COLUMNS
        starts = np.flatnonzero(np.diff(cells, prepend=-1))
        if not len(starts):
            return
        sums = np.add.reduceat(values, starts, axis=1)
        # The same place may come twice where rows of several ranks take turns.
        np.add.at(self._sums.reshape(-1, _COUNT + 1), cells[starts], sums.T)

    def cut(self, first: int, stop: int) -> NDArray[np.float32]:
        """Columns from number `first` to before `stop`; shape [ranks, columns, KEYS + 1]."""
        return self._sums[:, np.arange(first, stop) % COLUMNS]

    def _reach(self, column: int) -> None:
        while self._grows and column - self.first >= COLUMNS:
            self._sums[:, : COLUMNS // 2] = self._sums[:, ::2] + self._sums[:, 1::2]
            self._sums[:, COLUMNS // 2 :] = 0.0
            self.width_s, self.newest, column = 2 * self.width_s, self.newest // 2, column // 2
        if not self._grows and column >= self.first + COLUMNS:
            first = column - COLUMNS + 1
            stale = np.arange(self.first, min(first, self.first + COLUMNS)) % COLUMNS
            self._sums[:, stale] = 0.0
            self.first = first
        self.newest = max(self.newest, column)


class RankTimeline:
    """All ranks of a run. Feed it rows as they come."""

    def __init__(self) -> None:
        self._rows: dict[int, int] = {}
        self._full_run, self._recent = _Layer(FIRST_S, grows=True), _Layer(RECENT_S, grows=False)

    def add(self, rank: int, t_s: Sequence[float], columns: Mapping[str, Sequence[float]]) -> None:
        """Steps of one rank that ended at `t_s`, in order; a row may stand for `steps` of them, as means."""
        self.add_mixed(np.full(len(t_s), rank), np.asarray(t_s), columns)

    def add_mixed(
        self, ranks: NDArray[Any], t_s: NDArray[Any], columns: Mapping[str, Sequence[float] | NDArray[Any]]
    ) -> None:
        """Rows of several ranks."""
        if not len(t_s):
            return
        count = np.asarray(columns.get("steps", np.ones(len(t_s))), np.float64)
        unknown = np.full(len(t_s), np.nan)
        table = np.stack([np.asarray(columns.get(key, unknown), np.float64) for key in KEYS])
        values = np.concatenate([table * count, count[None]])
        held = (count > 0) & (t_s < _LATEST_S)
        if not held.all():
            ranks, t_s, values = ranks[held], t_s[held], values[:, held]
        if not len(t_s):
            return
        names, where = np.unique(ranks, return_inverse=True)
        rows = np.array([self._rows.setdefault(int(rank), len(self._rows)) for rank in names])[where]
        for layer in (self._full_run, self._recent):
            layer.hold(len(self._rows))
            layer.add(rows, np.asarray(t_s, np.float64), values)

    def between(self, begin_s: float, end_s: float, columns: int) -> TimelineSlice:
        """What was between two times, in at most so many columns."""
        recent, full_run = self._recent, self._full_run
        finer = recent.width_s < full_run.width_s and begin_s >= recent.first * recent.width_s
        layer = recent if finer else full_run
        first = max(int(begin_s / layer.width_s), layer.first)
        stop = max(int(min(layer.newest, end_s / layer.width_s)) + 1, first)
        fold = max(-(-(stop - first) // columns), 1)
        held = layer.cut(first, stop)[: len(self._rows)].astype(np.float64)
        starts = np.arange(0, stop - first, fold)
        sums: Floats = np.add.reduceat(held, starts, axis=1) if len(starts) else held
        width_s = fold * layer.width_s
        t = np.asarray(first * layer.width_s + (np.arange(len(starts)) + 0.5) * width_s, np.float64)
        numbers = np.array(list(self._rows), dtype=np.int64)
        return TimelineSlice(numbers, t, width_s, sums[:, :, :_COUNT], sums[:, :, _COUNT])
