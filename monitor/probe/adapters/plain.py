"""Where a step ends in a loop that somebody wrote by hand.

A step is one iteration of the loop, so it ends where the next iteration begins:

* With a loader: at the first fetch after a backward pass or an optimizer step. Accumulation, several
  optimizers and several losses in one iteration are one step.
* Without one (full-batch training, LBFGS, hand-made batches): when an optimizer steps for the second
  time, the step ended after the optimizer step before that. Once the optimizers of one iteration are
  known, it ends right after the last of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from monitor.probe.recorder import Recorder


class Boundary(NamedTuple):
    """Signals from the hooks. All are called on the training thread, outside every phase.

    Attributes:
        fetch: before a batch is fetched; returns whether that ended a step.
        fetched: after a training batch arrived.
        backward: after a backward pass.
        optimizer: after an optimizer stepped; the argument is its identity.
        flush: the loop is over: records a step that nothing ended, where it was last active.
    """

    fetch: Callable[[], bool]
    fetched: Callable[[], None]
    backward: Callable[[], None]
    optimizer: Callable[[int], None]
    flush: Callable[[], None]


def plain(recorder: Recorder) -> Boundary:
    """The rules above, as closures over the state of one loop."""
    end_step, mark = recorder.end_step, recorder.clock.mark
    trained = fetched = False
    cycle: set[int] = set()
    cycle_size = 0
    marked: tuple[int, list[int]] | None = None

    def close(at: tuple[int, list[int]] | None) -> None:
        nonlocal trained, fetched, marked
        trained = fetched = False
        marked = None
        cycle.clear()
        end_step(at)

    def on_fetch() -> bool:
        if not trained:
            return False
        close(None)
        return True

    def on_fetched() -> None:
        nonlocal fetched
        fetched = True

    def on_backward() -> None:
        nonlocal trained, marked
        trained = True
        if fetched:
            marked = mark()

    def on_optimizer(optimizer: int) -> None:
        nonlocal trained, marked, cycle_size
        if fetched:
            trained = True
            marked = mark()
            return
        if optimizer in cycle:
            cycle_size = len(cycle)
            close(marked)
        trained = True
        cycle.add(optimizer)
        if len(cycle) == cycle_size:
            close(None)
        else:
            marked = mark()

    def flush() -> None:
        if trained:
            close(marked)

    return Boundary(on_fetch, on_fetched, on_backward, on_optimizer, flush)


def silent() -> Boundary:
    """For adapters whose framework says itself where a step ends."""

    def nothing(*_: object) -> None:
        return None

    return Boundary(lambda: False, nothing, nothing, nothing, nothing)
