"""Ranks beside each other: rank × time, worst first, and bands over ranks. For pages; see docs/api.md."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.signals.communication import last_shares
from monitor.diagnosis.signals.uneven_loaders import uneven_batches
from monitor.run_state import RankState, RunState
from monitor.run_state.ending import clean, signal_name
from monitor.run_state.rank_timeline import COMM, KEYS, STEP, TimelineSlice
from monitor.schema import BY_KEY, PHASES
from monitor.strict_json import plain

#: Columns, ranks and points of one answer at most.
COLUMNS, RANKS, POINTS = 240, 1_024, 480
#: Matrices that an answer holds when nobody says, and that it may hold.
CELLS = ("phase", "step_ms", "comm_ms")
ALL_CELLS = ("phase", *KEYS)
#: What a band may show: means of a step, and shares of it.
SHARES = {"comm_share": "comm_ms", "data_share": "data_ms"}
METRICS = (*KEYS, *SHARES)
#: So many steps behind the others is no matter of when somebody looked.
BEHIND = 2
#: Ranks are alike, and stand in the order of their numbers, that differ by less than this share: of the usual
#: work, or of the exchanges that they came last to. So chance does not make the order change at every look.
ALIKE = 0.05
#: Exchanges of a young run: equal ranks differ by up to three deviations of a count of so many.
EXCHANGES = 20
#: What stands against a rank, gravest first.
WORST = ("died", "stopped", "behind", "late", None)

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Ranks:
    """What is known of a run's ranks at one moment.

    Attributes:
        state: the run.
        stopped, late: ranks that active findings name: without progress, and waited for.
        last: rank -> share of exchanges it came last to.
    """

    state: RunState
    stopped: Collection[int] = ()
    late: Collection[int] = ()
    last: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, state: RunState, standing: Sequence[Finding]) -> Ranks:
        """As the run's state and its active findings tell them."""

        def named(code: str) -> set[int]:
            """Ranks that such a finding blames: one that concerns all of them blames none."""
            ranks = {rank for finding in standing if finding.code == code for rank in finding.ranks}
            return ranks if len(ranks) < len(state.ranks) else set()

        return cls(state, named("stall"), named("straggler"), last_shares(state.window()))

    def table(
        self,
        begin_s: float | None,
        end_s: float | None,
        columns: int,
        limit: int,
        cells: Sequence[str],
        only: int | None = None,
    ) -> dict[str, Any]:
        """The answer of `api/runs/RUN/ranks`; with `only`, of that rank alone."""
        seen = self._timeline(begin_s, end_s, columns)
        rows = {int(rank): row for row, rank in enumerate(seen.ranks)}
        means = {key: seen.over(key) for key in ("step_ms", "comm_ms")}
        most = max((rank.step for rank in self.state.ranks.values()), default=-1)
        entries = [
            self._entry(number, rank, most, {key: _at(of, rows.get(number)) for key, of in means.items()})
            for number, rank in self.state.ranks.items()
            if only in (None, number)
        ]
        entries = _worst_first(entries)[:limit]
        shown = [rows.get(entry["rank"]) for entry in entries]
        return {
            **self._head(begin_s, end_s),
            "world_size": self.state.about["world_size"],
            "known": len(self.state.ranks),
            "reduced": sum(rank.reduced for rank in self.state.ranks.values()),
            "batches": self._batches(),
            "phases": list(PHASES),
            "t": _numbers(seen.t),
            "column_s": seen.column_s,
            "ranks": entries,
            "cells": {name: _rows(_cells(seen, name), shown) for name in cells},
        }

    def band(self, metric: str, begin_s: float | None, end_s: float | None, points: int) -> dict[str, Any]:
        """The answer of `api/runs/RUN/band`: least, middle and greatest of the ranks' means."""
        seen = self._timeline(begin_s, end_s, points)
        values = seen.mean(SHARES.get(metric, metric))
        if metric in SHARES:
            with np.errstate(invalid="ignore", divide="ignore"):
                values = values / seen.mean("step_ms")
        return {
            **self._head(begin_s, end_s),
            "metric": metric,
            "unit": "" if metric in SHARES else BY_KEY[metric].unit,
            "point_s": seen.column_s,
            "t": _numbers(seen.t),
            **_band(seen.ranks, values),
        }

    def _batches(self) -> tuple[int, int] | None:
        """Least and most batches that ranks have, where they differ; of a run that goes on, seen whole."""
        ranks = self.state.ranks.values()
        if len(ranks) != self.state.about["world_size"] or any(rank.ended is not None for rank in ranks):
            return None
        return uneven_batches([rank.facts for rank in ranks])

    def _timeline(self, begin_s: float | None, end_s: float | None, columns: int) -> TimelineSlice:
        begin_s, end_s = self._range(begin_s, end_s)
        return self.state.timeline.between(begin_s, end_s, columns)

    def _range(self, begin_s: float | None, end_s: float | None) -> tuple[float, float]:
        begin_s = max(begin_s or 0.0, 0.0)
        return begin_s, max(min(self.state.now_s if end_s is None else end_s, self.state.now_s), begin_s)

    def _head(self, begin_s: float | None, end_s: float | None) -> dict[str, Any]:
        begin_s, end_s = self._range(begin_s, end_s)
        return {"run": self.state.run, "now_s": self.state.now_s, "from": begin_s, "to": end_s}

    def _entry(
        self, number: int, rank: RankState, most: int, means: dict[str, float | None]
    ) -> dict[str, Any]:
        phase, since_s = rank.phase if rank.phase and rank.ended is None else (None, None)
        step_ms, comm_ms = means["step_ms"], means["comm_ms"]
        return {
            "rank": number,
            "host": rank.process.get("host"),
            "steps": rank.step + 1,
            "phase": phase,
            "phase_since_s": since_s,
            "ended": _ended(rank.ended),
            "reduced": rank.reduced,
            "step_ms": step_ms,
            "comm_ms": comm_ms,
            "comm_share": round(comm_ms / step_ms, 4) if step_ms and comm_ms is not None else None,
            "last_share": self.last.get(number),
            "worst": self._worst(number, rank, most),
        }

    def _worst(self, number: int, rank: RankState, most: int) -> str | None:
        """What stands against a rank. One that only waits for another is named by none of it."""
        if rank.ended is not None and not clean(rank.ended):
            return "died"
        if number in self.stopped:
            return "stopped"
        if rank.ended is None and not self.stopped and most - rank.step >= BEHIND + self._slack(rank):
            return "behind"
        return "late" if number in self.late else None

    def _slack(self, rank: RankState) -> int:
        """Steps that a rank may be behind for when its agent looked: what all did in the last two seconds."""
        rate = self.state.own.newest("steps_per_s")
        return math.ceil(2 * rate) if math.isfinite(rate) else 0


def _band(ranks: NDArray[np.int64], values: Values) -> dict[str, list[Any]]:
    """Over ranks; null where none was measured."""
    known = np.isfinite(values)
    there = np.flatnonzero(known.any(axis=0)) if len(values) else np.empty(0, np.int64)
    names = ("min", "median", "max", "min_rank", "max_rank")
    out = {name: np.full(values.shape[1], np.nan) for name in names}
    if len(there):
        held = np.where(known, values, np.nan)[:, there]
        for name, of, where in (("min", np.nanmin, np.nanargmin), ("max", np.nanmax, np.nanargmax)):
            out[name][there], out[f"{name}_rank"][there] = of(held, axis=0), ranks[where(held, axis=0)]
        out["median"][there] = np.nanmedian(held, axis=0)
    counts: list[int] = known.sum(axis=0).tolist() if len(values) else [0] * values.shape[1]
    return {**{name: _numbers(of) for name, of in out.items()}, "ranks": counts}


def _worst_first(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Worst first; then those that others wait for most; then those that work longest; then by number."""
    works = {entry["rank"]: (entry["step_ms"] or 0.0) - (entry["comm_ms"] or 0.0) for entry in entries}
    usual = float(np.median([work for work in works.values() if work > 0] or [1.0]))
    turn = 1.0 / max(len(entries), 1)
    by_chance = turn + 3.0 * math.sqrt(turn * (1.0 - turn) / EXCHANGES)

    def sort_key(entry: Mapping[str, Any]) -> tuple[int, ...]:
        oftener = max((entry["last_share"] or 0.0) - by_chance, 0.0)
        longer = works[entry["rank"]] / usual - 1.0
        return WORST.index(entry["worst"]), -int(oftener / ALIKE), -round(longer / ALIKE), entry["rank"]

    return sorted(entries, key=sort_key)


def _ended(end: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if end is None:
        return None
    fields = {key: end.get(key) for key in ("code", "reason", "t_s")}
    shown: dict[str, Any] = plain({**fields, "signal": signal_name(end.get("signal")), "clean": clean(end)})
    return shown


def _cells(seen: TimelineSlice, name: str) -> Values:
    return seen.phase() if name == "phase" else seen.mean(name)


def _rows(values: Values, rows: Sequence[int | None]) -> list[list[float | int | None]]:
    unknown = np.full(values.shape[1], np.nan)
    return [_numbers(unknown if row is None else values[row]) for row in rows]


def _at(values: Values, row: int | None) -> float | None:
    return None if row is None else _numbers(values[row : row + 1])[0]


def _numbers(values: Values) -> list[float | int | None]:
    """Four digits after the point; None for what is not finite; whole numbers as such, which are shorter."""
    rounded = np.round(values, 4)
    if np.isfinite(rounded).all():
        return [int(v) if v.is_integer() else v for v in rounded.tolist()]
    return [(int(v) if v.is_integer() else v) if math.isfinite(v) else None for v in rounded.tolist()]


assert (KEYS[STEP], KEYS[COMM]) == ("step_ms", "comm_ms")
