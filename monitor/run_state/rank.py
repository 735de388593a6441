"""One rank as it is kept in memory."""

from __future__ import annotations

from typing import Any

from monitor.diagnosis.core.window import EMPTY, Rank, Table
from monitor.run_state.columns import Columns

#: Steps and samples that are kept of a rank at least.
LEAST_ROWS, LEAST_SAMPLES = 512, 128


class RankState:
    """One rank: its newest steps and samples, its facts, where it is and how it ended.

    Attributes:
        steps, samples, cuda: rows of `rank/R`, `proc/R` and `cuda/R`.
        reduced: whether its host tells of it in averages, without rows of its own.
    """

    def __init__(self) -> None:
        self.steps = Columns(LEAST_ROWS)
        self.samples = Columns(LEAST_SAMPLES)
        self.cuda = Columns(LEAST_SAMPLES)
        self.facts: dict[str, Any] = {}
        self.ended: dict[str, Any] | None = None
        self.failed: str | None = None
        self.phase: tuple[str, float] | None = None
        self.step = -1
        self.reduced = False
        self.process: dict[str, Any] = {}

    def window(self, number: int) -> Rank:
        """What a detector sees of it."""
        steps = self.steps.table()
        return Rank(
            number, steps, samples(self.samples), self.facts, self.ended, self.phase, samples(self.cuda)
        )


def samples(columns: Columns) -> Table:
    """Rows whose number says nothing, for a window."""
    return {k: v for k, v in columns.table().items() if k != "step"} if len(columns) else EMPTY
