"""The steps that a detector may judge by: after the warm-up, and recent. And what is measured of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.robust import Values
from monitor.schema import PHASES

#: The run's first steps load kernels, fill caches and start workers. (measurements.md#warm-up).
WARMUP_STEPS = 5

#: Fewer steps than this say nothing (own: a share over 20 steps moves by 0.05 with one odd step).
MIN_STEPS = 20

#: What counts is what still happens: rules look back this far, in seconds (own) …
RECENT_S = 300.0

#: … but always at this many steps, so that runs with very long steps are judged too.
RECENT_STEPS = 200

#: … and never at more than this: shares and medians gain nothing from more, and cost.
MOST_STEPS = 20_000


def recent_steps(rank: Rank) -> Rank:
    """The same rank with its warm-up and its distant past cut off."""
    ends = rank.steps.get("t_s")
    if ends is None or not len(ends):
        return rank
    recent = min(int(np.searchsorted(ends, ends[-1] - RECENT_S)), max(len(ends) - RECENT_STEPS, 0))
    return slice_steps(after_warmup(rank), max(recent, len(ends) - MOST_STEPS) - _warm_up(rank))


def after_warmup(rank: Rank) -> Rank:
    """The same rank with only its warm-up cut off: for what comes at long intervals, or lasts."""
    return slice_steps(rank, _warm_up(rank))


def _warm_up(rank: Rank) -> int:
    """Rows of the window that belong to the run's warm-up."""
    return int(np.searchsorted(rank.steps.get("step", np.empty(0)), WARMUP_STEPS))


def slice_steps(rank: Rank, first: int, after: int | None = None) -> Rank:
    """The same rank with only rows `first` to before `after`."""
    first = max(first, 0)
    return replace(rank, steps={key: values[first:after] for key, values in rank.steps.items()})


def step_ms(rank: Rank) -> Values:
    """Wall time of every step in milliseconds, shape [count]."""
    if "step_ms" in rank.steps:
        return rank.column("step_ms")
    total_ms: Values = np.nansum([rank.column(f"{phase}_ms") for phase in PHASES], axis=0).reshape(rank.count)
    return total_ms


def phase_ms(rank: Rank, phase: str) -> Values:
    """One phase of every step in milliseconds, 0 where it was not measured, shape [count]."""
    return np.nan_to_num(rank.column(f"{phase}_ms"), nan=0.0)


def share(part_ms: Values, rank: Rank) -> float:
    """What share of the rank's time `part_ms` is, 0 to 1; 0 without any time."""
    total_ms = float(np.nansum(step_ms(rank)))
    return float(np.nansum(part_ms)) / total_ms if total_ms > 0 else 0.0


def step_range(rank: Rank) -> tuple[int | None, int | None]:
    """Numbers of the first and the last step, (None, None) without steps."""
    numbers = rank.steps.get("step", np.empty(0))
    return (int(numbers[0]), int(numbers[-1])) if len(numbers) else (None, None)


def epoch_starts(window: Window, rank: Rank) -> NDArray[np.int64]:
    """Rows that are the first of an epoch (the window's first row never counts, its epoch may be older)."""
    epochs = rank.column("epoch")
    if not np.isnan(epochs).all():
        return np.flatnonzero(np.diff(np.nan_to_num(epochs, nan=0.0)) > 0) + 1
    numbers = rank.steps.get("step", np.empty(0))
    begun = [event["step"] for event in window.events_of("epoch", rank=rank.rank) if "step" in event]
    rows = np.searchsorted(numbers, np.unique(np.asarray(begun, dtype=np.int64)))
    return rows[(rows > 0) & (rows < len(numbers))]


def stalled_rows(window: Window, rank: Rank) -> NDArray[np.int64]:
    """Rows in which the rank stalled: that is told as a stall, and as nothing else."""
    steps = [event.get("step") for event in window.events_of("stall", rank=rank.rank)]
    known = np.asarray([step for step in steps if step is not None], dtype=np.int64)
    return np.flatnonzero(np.isin(rank.steps.get("step", np.empty(0)), known))


def complete_periods(rows: NDArray[np.int64]) -> slice | None:
    """Rows from after the first to the last of recurring `rows`: whole periods, None below two of them.

    A share taken over whole periods does not depend on when it is taken.
    """
    return slice(int(rows[0]) + 1, int(rows[-1]) + 1) if len(rows) >= 3 else None


def train_loader(rank: Rank) -> tuple[str, Mapping[str, Any]] | None:
    """Name and facts of the loader the training loop draws from, the newest of them; None without one."""
    loaders = [
        (name, facts) for name, facts in rank.facts_of("loader").items()
        if isinstance(facts, Mapping) and facts.get("role", "train") != "eval"
    ]  # fmt: skip
    return max(loaders, key=lambda item: (len(item[0]), item[0])) if loaders else None
