"""Where a step ends in a loop that somebody wrote by hand.

A step is one iteration of the loop, so it ends where the next iteration begins:

* With a loader: at the first fetch after a backward pass or an optimizer step. Accumulation, several
  optimizers and several losses in one iteration are one step.
* Without one (full-batch training, LBFGS, batches made by hand or all loaded before): when an optimizer
  steps for the second time, the step ended after the optimizer step before that. Once the optimizers of
  one iteration are known, it ends right after the last of them.
* Where the user says `session.step()`, there and nowhere else.
* What neither fetches a batch nor exchanges gradients, where the loop's steps did both before, is none: the
  ranks would drift apart. Trials of speed after the training are written so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from monitor.probe.recorder import (
    BACKWARDS,
    COLLECTIVE_MB,
    COLLECTIVE_MS,
    GC,
    OPT_STEPS,
    SKIPPED,
    SYNCS,
    Recorder,
)
from monitor.schema import PHASES

#: Values that a step adds up.
COUNTED = (BACKWARDS, OPT_STEPS, SKIPPED, GC, SYNCS, COLLECTIVE_MS, COLLECTIVE_MB)


class Boundary(NamedTuple):
    """Signals from the hooks. All are called on the training thread, outside every phase.

    Attributes:
        fetch: before a batch is fetched; returns whether something was trained since the last fetch.
        fetched: after a training batch arrived.
        exhausted: a loader had no further batch.
        backward: after a backward pass.
        optimizer: after an optimizer stepped, or a gradient scaler skipped it; the argument is its identity.
        step: the user says that a step ends here.
        flush: the loop is over: records a step that nothing ended, where it was last active.
    """

    fetch: Callable[[], bool]
    fetched: Callable[[], None]
    exhausted: Callable[[], None]
    backward: Callable[[], None]
    optimizer: Callable[[int], None]
    step: Callable[[], None]
    flush: Callable[[], None]


def plain(recorder: Recorder) -> Boundary:
    """The rules above, as closures over the state of one loop."""
    end_step, mark, loop_state = recorder.end_step, recorder.clock.mark, recorder.loop_state
    trained, user_ends_steps, waiting, drawn, closing = False, False, 0, False, False
    cycle: set[int] = set()
    cycle_size = 0
    marked: tuple[int, list[int]] | None = None
    values, then = recorder.values, [0.0]

    def close(at: tuple[int, list[int]] | None) -> None:
        nonlocal trained, waiting, marked
        trained, waiting, marked = False, 0, None
        cycle.clear()
        end_step(at)

    def close_late() -> None:
        """End the step where it was marked: what was counted since is the next one's."""
        now, values[:] = list(values), then
        close(marked)
        for index in range(len(PHASES), len(now)):
            values[index] = now[index]
        for index in COUNTED:
            values[index] -= then[index] if then[index] == then[index] else 0.0

    def aside() -> bool:
        """Whether what was just trained without exchanging belongs to no step, by the last of the rules."""
        if not drawn or waiting or user_ends_steps:
            return False
        values[BACKWARDS] = values[OPT_STEPS] = 0.0
        return True

    def on_fetch() -> bool:
        nonlocal trained, drawn, closing
        closing = trained
        if not trained:
            return False
        drawn = drawn or waiting == 1
        if user_ends_steps:
            trained = False
        else:
            close(None)
        return True

    # Several batches waiting, or a loader at its end, none of it trained on: they are kept for later.
    # Then fetches say nothing of steps, and only the optimizers do.
    def on_fetched() -> None:
        nonlocal waiting
        waiting += 1

    def on_exhausted() -> None:
        nonlocal waiting
        waiting = 0
        if closing:
            recorder.event("exhausted")

    def on_backward() -> None:
        nonlocal trained, marked
        if (loop_state.completes_step is not None and not loop_state.completes_step()) or (
            loop_state.drifts and aside()
        ):
            return
        trained = True
        if waiting == 1:
            marked = mark()

    def on_optimizer(optimizer: int) -> None:
        nonlocal trained, marked, cycle_size
        if (loop_state.completes_step is not None and not loop_state.completes_step()) or (
            loop_state.drifts and aside()
        ):
            return
        alone = waiting != 1 and not user_ends_steps
        if alone and optimizer in cycle:
            cycle_size = len(cycle)
            close_late()
        trained = True
        if alone:
            cycle.add(optimizer)
        if alone and len(cycle) == cycle_size:
            close(None)
        else:
            marked = mark()
            if alone:
                then[:] = values

    def on_step() -> None:
        nonlocal user_ends_steps
        user_ends_steps = True
        close(None)

    def flush() -> None:
        if trained and not user_ends_steps:
            close(marked)

    return Boundary(on_fetch, on_fetched, on_exhausted, on_backward, on_optimizer, on_step, flush)


def silent() -> Boundary:
    """For adapters whose framework says itself where a step ends."""

    def nothing(*_: object) -> None:
        return None

    return Boundary(lambda: False, nothing, nothing, nothing, nothing, nothing, nothing)
