"""The part of a step that the model itself takes, without waiting, saving and evaluating."""

from __future__ import annotations

import numpy as np

from monitor.diagnosis.core.window import Rank
from monitor.diagnosis.signals.robust import Values, median
from monitor.diagnosis.signals.training_steps import phase_ms, step_ms

#: Phases that have a detector of their own.
_SEPARATE_PHASES = ("data", "checkpoint", "eval", "comm")

#: Phases in which the work itself is done.
WORKING = ("h2d", "forward", "backward", "optimizer", "other")


def work_ms(rank: Rank) -> Values:
    """Working time of every step in milliseconds, shape [count]."""
    separate_ms = np.sum([phase_ms(rank, phase) for phase in _SEPARATE_PHASES], axis=0)
    return np.asarray(np.maximum(np.nan_to_num(step_ms(rank)) - separate_ms, 0.0), dtype=np.float64)


def batch_sizes(rank: Rank) -> Values | None:
    """How large each step's batch is, in whatever was measured and varies; None where nothing does."""
    for key in ("batch_elements", "tokens", "samples"):
        column = rank.column(key)
        usual = median(column)
        if usual > 0 and float(np.nanmax(column)) > usual:
            return column
    return None


def slowest_phase(before: Rank, after: Rank) -> str:
    """The working phase that takes most more milliseconds a step in `after` than in `before`."""

    def more(phase: str) -> float:
        return median(phase_ms(after, phase)) - median(phase_ms(before, phase))

    return max(WORKING, key=more)
