"""About once a second, one row that tells how the whole run is going (the stream `run`)."""

from __future__ import annotations

from array import array
from collections.abc import Mapping

import numpy as np

from monitor.batch import Block
from monitor.run_state.columns import Array, Columns
from monitor.schema import PHASES, combine, keys_of

#: Seconds of run time between two rows; a little less than a second, for batches come when they come.
ROW_EVERY_S = 0.95
#: Quantiles are over the steps since the last row, or over so many where those are fewer.
QUANTILE_STEPS = 200
#: Without a step for three times the usual step, and at least so long, the rate is 0.
STILL_STEPS, STILL_S = 3.0, 3.0

Row = dict[str, float]


class _RankAggregator:
    """One rank's last row, and up to which step it told."""

    def __init__(self) -> None:
        self.seen_steps = 0
        self.end_s = float("nan")
        self.row: Row = {}

    def next_row(self, steps: Columns, now_s: float) -> Row:
        fresh, self.seen_steps = min(steps.total - self.seen_steps, len(steps)), steps.total
        if fresh:
            self.row = self._moving(steps, fresh)
        elif self.row:
            self.row = self._waiting(steps, now_s)
        return self.row

    def _moving(self, steps: Columns, fresh: int) -> Row:
        ends, taken = steps.column("t_s", fresh), steps.column("step_ms", fresh)
        began = self.end_s if self.end_s == self.end_s else float(ends[0] - np.nan_to_num(taken[0]) / 1e3)
        self.end_s = float(ends[-1])
        lasted_s = max(self.end_s - began, 1e-9)
        total_ms = float(np.nansum(taken))
        row = {
            "steps_per_s": fresh / lasted_s,
            "samples_per_s": _sum(steps.column("samples", fresh)) / lasted_s,
            "tokens_per_s": _sum(steps.column("tokens", fresh)) / lasted_s,
            "data_share": _sum(steps.column("data_ms", fresh)) / total_ms if total_ms > 0 else np.nan,
            "run_loss": _mean(steps.column("loss", fresh)),
            **_quantiles(steps, fresh),
        }
        row.update({f"run_{phase}_ms": _mean(steps.column(f"{phase}_ms", fresh)) for phase in PHASES})
        return row

    def _waiting(self, steps: Columns, now_s: float) -> Row:
        """No step since the last row: a slow step is under way, or the run stands still."""
        still_s = now_s - self.end_s
        usual_s = float(np.nan_to_num(np.median(steps.column("step_ms", QUANTILE_STEPS)))) / 1e3
        if still_s < max(STILL_S, STILL_STEPS * usual_s):
            before = self.row["steps_per_s"]
            slower = min(1.0, 1 / max(still_s * before, 1e-9)) if before else 1.0
            return {k: v * slower if k.endswith("_per_s") else v for k, v in self.row.items()}
        still = dict.fromkeys(self.row, float("nan"))
        still.update({k: v * 0.0 for k, v in self.row.items() if k.endswith("_per_s")})
        return still


class RunAggregator:
    """Makes the rows of the stream `run`.

    Args:
        number: number of the next row.
        told_s: time of the row before, seconds since the run began.
    """

    def __init__(self, number: int = 0, last_row_s: float = 0.0) -> None:
        self._number = number
        self._last_row_s = last_row_s
        self._ranks: dict[int, _RankAggregator] = {}

    def due(self, now_s: float, *, last: bool = False) -> bool:
        """Whether it is time for a row."""
        return last or now_s - self._last_row_s >= ROW_EVERY_S

    def next_row(
        self,
        now_s: float,
        ranks: Mapping[int, Columns],
        *,
        last: bool = False,
        more: Mapping[str, float] | None = None,
    ) -> Block | None:
        """A row when it is time for one, or for the last of a run; None otherwise.

        Args:
            now_s: time of the newest batch, seconds since the run began.
            ranks: the steps of those that are alive (of all, when the run is over).
            last: True when no later row will come.
            more: rate -> what ranks without steps of their own brought since the row before.
        """
        if not ranks or not self.due(now_s, last=last):
            return None
        rows = [
            self._ranks.setdefault(rank, _RankAggregator()).next_row(steps, now_s)
            for rank, steps in ranks.items()
        ]
        rows = [row for row in rows if row]
        if not rows:
            return None
        values = {key: _single(combine(key, (row.get(key) for row in rows))) for key in keys_of("run")}
        for key, amount in (more or {}).items():
            values[key] += amount / max(now_s - self._last_row_s, 1e-9)
        columns = {key: array("f", [value]) for key, value in values.items()}
        block = Block("run", self._number, array("d", [now_s]), columns)
        self._number += 1
        self._last_row_s = now_s
        return block

    def skip(self, rank: int, steps: Columns) -> None:
        """These steps were told of in an earlier life."""
        rank_aggregator = self._ranks.setdefault(rank, _RankAggregator())
        rank_aggregator.seen_steps = steps.total
        if len(steps):
            rank_aggregator.end_s = float(steps.column("t_s", 1)[0])


def _single(value: float) -> float:
    """The value as float32 holds it, infinite where it does not."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _quantiles(steps: Columns, fresh: int) -> Row:
    """Of the step time, without the very first step, which is never like the others."""
    last = max(fresh, QUANTILE_STEPS)
    taken = steps.column("step_ms", last)
    later = taken[steps.column("step", last) > 0]
    taken = later if len(later) else taken
    taken = taken[~np.isnan(taken)]
    values = np.quantile(taken, (0.5, 0.95, 0.99)) if len(taken) else np.full(3, np.nan)
    return dict(zip(("step_p50_ms", "step_p95_ms", "step_p99_ms"), map(float, values), strict=True))


def _sum(values: Array) -> float:
    """Sum of what was measured, scaled to all rows; NaN where nothing was."""
    return _mean(values) * len(values)


def _mean(values: Array) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean(dtype=np.float64)) if len(known) else float("nan")
