"""Plan: how many steps a run means to take, where somebody said so. Nothing is guessed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from monitor.run_state import RankState, RunState

#: What people call the number of steps, and of epochs, in their configuration.
STEPS = ("max_steps", "total_steps", "num_steps", "max_iters", "num_training_steps")
EPOCHS = ("epochs", "num_epochs", "max_epochs", "num_train_epochs", "n_epochs")

#: Steps that tell whether one is one batch.
LATELY = 512


def planned_steps(state: RunState) -> int | None:
    """Steps from the run's first to its last: told by its framework, else by its own configuration.

    Epochs count where each step takes one batch and the training loader knows how many there are.
    """
    plans = [rank.facts.get("plan") for rank in state.ranks.values()]
    totals = [
        steps for plan in plans if isinstance(plan, Mapping) and (steps := _positive_int(plan.get("steps")))
    ]
    if totals:
        return max(totals)
    config = state.about.get("config")
    if not isinstance(config, Mapping):
        return None
    return _named(config, STEPS) or _of_epochs(state, _named(config, EPOCHS))


def _of_epochs(state: RunState, epochs: int | None) -> int | None:
    if epochs is None or not all(map(_one_batch, state.ranks.values())):
        return None
    loaders = [
        value
        for rank in state.ranks.values()
        for name, value in rank.facts.items()
        if name.startswith("loader/") and isinstance(value, Mapping) and value.get("role") == "train"
    ]
    lengths = {_positive_int(loader.get("length")) for loader in loaders}
    length = lengths.pop() if len(lengths) == 1 else None
    return None if length is None else epochs * length


def _one_batch(rank: RankState) -> bool:
    backwards = rank.steps.column("backward_calls", LATELY)
    return bool(len(backwards)) and bool(np.nanmedian(np.nan_to_num(backwards)) == 1)


def _named(config: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((number for name in names if (number := _positive_int(config.get(name)))), None)


def _positive_int(value: Any) -> int | None:
    """A whole number above zero; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value) if value >= 1 and value == int(value) else None
