"""What batches add to the step that runs, and what is taken back of those that were not trained on.

A batch counts when it arrives. It was not trained on, and counts no more, where

* the loader is left with it in hand and iterated anew (`if i == limit: break`, a look at the first batch);
* it was skipped: several were fetched with neither a forward nor a backward pass between, and the earlier
  ones are gone by then. Those that are put together for one step (`torch.cat`) live as long as each other.
"""

from __future__ import annotations

import contextlib
import math
import weakref
from typing import Any

import torch

from monitor.probe.batches import DEPTH, collect, count
from monitor.probe.clock import FORWARD
from monitor.probe.loader_state import Before, LoaderState
from monitor.probe.recorder import ELEMENTS, MICRO_BATCHES, SAMPLES, TOKENS, Recorder

#: What a batch adds to a step.
OF_BATCHES = (SAMPLES, TOKENS, ELEMENTS, MICRO_BATCHES)
_NOTHING = (math.nan, math.nan, math.nan, 0.0)
#: Batches without training between that are watched for being gone; of more it is known by then.
WATCHED = 64


class BatchCounts:
    """Adds batches to the step's values.

    Attributes:
        trainings: how often something was trained between two fetches.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.trainings = 0
        self._recorder = recorder
        self._values = recorder.values
        self._in_step: LoaderState | None = None

    def add(self, batch: Any, state: LoaderState | None) -> None:
        """A training batch arrived.

        Two loaders side by side give the step its samples once. One loader's batches add up, and those of one
        that was made anew by the same instruction.
        """
        values, first = self._values, self._values[SAMPLES] != self._values[SAMPLES]
        if state is not None:
            if state.trainings == self.trainings:
                first = self._untrained(batch, state) or first
            elif state.left or state.skips:
                state.left, state.skips, state.before_untrained = [], False, None
            state.trainings = self.trainings
        if first:
            self._in_step = state
        elif state is not self._in_step and (
            state is None or self._in_step is None or state.origin != self._in_step.origin
        ):
            return
        if state is not None:
            state.before_batch = self.now(first)
        values[MICRO_BATCHES] += 1
        if state is None or state.countable:
            try:
                count(batch, values)
            except Exception:  # noqa: BLE001 - a batch of a kind of its own: not counted
                if state is not None:
                    state.countable = False

    def now(self, first: bool | None = None) -> Before:
        """The step, and what its batches come to. `first`: it is known whether any was counted."""
        values = self._values
        if first or (first is None and values[SAMPLES] != values[SAMPLES] and not values[MICRO_BATCHES]):
            return self._recorder.steps, _NOTHING
        return self._recorder.steps, [values[index] for index in OF_BATCHES]

    def take_back(self, before: Before | None) -> bool:
        """Batches since then were not trained on: they count for no step. Whether it is so."""
        if before is None or before[0] != self._recorder.steps:
            return False
        for index, value in zip(OF_BATCHES, before[1], strict=True):
            self._values[index] = value
        return True

    def leave(self, state: LoaderState) -> None:
        """Its iteration is left and another begins: what was trained on last is not the batch in hand."""
        if state.trainings == self.trainings:
            self.take_back(state.before_untrained or state.before_batch)
            state.left, state.before_untrained = [], None

    def _untrained(self, batch: Any, state: LoaderState) -> bool:
        """The loader is asked again and nothing was trained since. Whether its batch was taken back."""
        forward_ns = self._recorder.clock.mark()[1][FORWARD]
        if not state.left or forward_ns != state.forward_ns:
            state.left, state.skips, state.forward_ns = [], False, forward_ns
            state.before_untrained = state.before_batch or self.now()
        gone = [one() is None for one in state.left]
        state.skips = state.skips or (len(gone) > 1 and all(gone[:-1])) or (bool(gone) and all(gone))
        tensors: list[torch.Tensor] = []
        with contextlib.suppress(Exception):  # a batch of a kind of its own is not watched
            collect(batch, tensors, DEPTH)
            if len(state.left) < WATCHED:
                state.left.append(weakref.ref(tensors[0]))
        return state.skips and self.take_back(state.before_untrained)
