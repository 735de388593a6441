"""Where a step ends in a loop that somebody wrote by hand: a step is an optimizer step.

All optimizers that step within one iteration of the loop are one step; what was accumulated for it (batches,
backward passes) is counted beside it. So:

* A step ends at the first fetch of a batch after an optimizer has stepped. Fetches between backward passes
  that only accumulate end nothing.
* Where no batch is fetched (full-batch training, LBFGS, one batch trained on again and again, batches made by
  hand), a step ends when an optimizer steps that has stepped in it already: it ended after the last optimizer
  before. Once a loop is known to be of this kind, its steps end right after their optimizer.
* Where several optimizers take part, two of them are of one iteration when the program only went forward
  from one to the other (see `monitor.probe.loop_position`): a generator, a delayed actor, a temperature. Nor
  does a fetch in the middle of an iteration end it.
* Where the user says `session.step()`, there and nowhere else.
* Where no optimizer of torch's is heard of (weights updated by hand, an optimizer compiled or of another
  library), a step ends where weights have changed between two backward passes, as torch counts it. Updates
  that torch does not count either (through `.data`) leave nothing to tell: such a loop has no steps.
* What neither fetches a batch nor exchanges gradients, where the loop's steps did both before, is none: the
  ranks would drift apart. Trials of speed after the training are written so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from monitor.probe.loop_position import Position, calling_line, position, same_iteration
from monitor.probe.loop_state import StepAuthority
from monitor.probe.recorder import (
    BACKWARDS,
    COLLECTIVE_MB,
    COLLECTIVE_MS,
    ELEMENTS,
    GC,
    MICRO_BATCHES,
    OPT_STEPS,
    SAMPLES,
    SKIPPED,
    SYNCS,
    TOKENS,
    Recorder,
)
from monitor.schema import PHASES

#: What a step's batches hold, as far as it can be counted.
OF_BATCHES = (SAMPLES, TOKENS, ELEMENTS)
#: Values that a step adds up.
COUNTED = (BACKWARDS, OPT_STEPS, SKIPPED, GC, SYNCS, COLLECTIVE_MS, COLLECTIVE_MB, MICRO_BATCHES)
#: Steps of a loop's only optimizer during which it is noted where that steps: a second one may follow.
LOOKS = 64
#: Backward passes without any optimizer after which the run says that its steps cannot be counted.
UNCOUNTED_AT = frozenset({8, 100, 1000, 10_000, 100_000})


class Boundary(NamedTuple):
    """Signals from the hooks. All are called on the training thread, outside every phase.

    Attributes:
        fetch: before a batch is fetched; returns whether something was trained since the last fetch.
        fetched: after a training batch arrived.
        exhausted: a loader had no further batch.
        backward: after a backward pass.
        gradient: after `autograd.grad` of leaves, as weights are, that builds no graph.
        optimizer: after an optimizer stepped, or a gradient scaler skipped it; the argument is its identity.
        step: the user says that a step ends here.
        flush: the loop is over, or pauses: records a step that nothing ended, where it was last active.
    """

    fetch: Callable[[], bool]
    fetched: Callable[[], None]
    exhausted: Callable[[], None]
    backward: Callable[[], None]
    gradient: Callable[[], None]
    optimizer: Callable[[int], None]
    step: Callable[[], None]
    flush: Callable[[], None]


def plain(recorder: Recorder) -> Boundary:
    """The rules above, as closures over the state of one loop."""
    end_step, mark, stage, loop_state = (
        recorder.end_step,
        recorder.clock.mark,
        recorder.stage,
        recorder.loop_state,
    )
    values, inferred, user = recorder.values, StepAuthority.INFERRED, StepAuthority.USER
    # The optimizers of the step that runs, of the one before, all that ever stepped; where the newest did.
    stepped: set[int] = set()
    closed: set[int] = set()
    known: set[int] = set()
    where: Position = ()
    marked: tuple[int, list[int]] | None = None
    marked_values: list[float] = []
    trained = closing = drawn = fetched = False
    # Optimizer steps since the newest fetch; whether steps end right after them, since nothing is fetched.
    since_fetch, unfetched, uncounted, version = 0, False, 0, 0
    # Backward passes since the newest optimizer step, by the line that called them, and the most of one line.
    lines: dict[tuple[int, int], int] = {}
    # The same of gradients that are asked for and put in by hand: they count where no backward pass runs.
    asked_lines: dict[tuple[int, int], int] = {}
    passes = marked_passes = asked = 0

    def close(at: tuple[int, list[int]] | None) -> None:
        nonlocal marked, fetched, passes, marked_passes, stepped, closed
        marked, fetched = None, False
        # Batches that were fetched ahead are none of this step's.
        if values[MICRO_BATCHES] != 1 or passes or marked_passes != 1:
            batches = min(values[MICRO_BATCHES], values[BACKWARDS] or marked_passes)
            values[MICRO_BATCHES] = max(1, batches, passes, marked_passes)
        passes = marked_passes = 0
        closed, stepped = stepped, closed
        stepped.clear()
        end_step(at)

    def close_late() -> None:
        """End the step where it was marked: what was counted since is the next one's."""
        nonlocal passes
        now, values[:] = list(values), marked_values
        passes, later = 0, passes
        close(marked)
        passes = later
        for index in range(len(PHASES), len(now)):
            values[index] = now[index]
        for index in COUNTED:
            before = marked_values[index]
            values[index] -= before if before == before else 0.0
        for index in OF_BATCHES:
            more = values[index] - marked_values[index]
            if more == more:  # else none was counted before, or none since
                values[index] = more or math.nan

    def aside() -> bool:
        """Whether what was just trained without exchanging belongs to no step, by the last of the rules."""
        if not drawn or fetched:
            return False
        values[BACKWARDS] = values[OPT_STEPS] = values[MICRO_BATCHES] = 0.0
        return True

    def on_fetch() -> bool:
        nonlocal trained, closing, drawn, since_fetch, unfetched, version
        closing, trained = trained, False
        if (
            stepped
            and loop_state.authority is inferred
            and (not loop_state.several_optimizers or not same_iteration(where, position(3)))
        ):
            drawn = drawn or fetched
            close(None)
        elif (
            closing
            and not known
            and version != (version := recorder.weights_version())
            and marked is not None
        ):
            close(None)
        unfetched = since_fetch > 1
        since_fetch = 0
        return closing

    def on_fetched() -> None:
        nonlocal fetched
        fetched = True

    def on_exhausted() -> None:
        if closing:
            recorder.event("exhausted")

    def on_backward() -> None:
        nonlocal trained, uncounted, passes, version, marked
        if loop_state.drifts and loop_state.authority is inferred and aside():
            return
        trained = True
        if not loop_state.in_optimizer:
            line = calling_line(3)
            lines[line] = count = lines.get(line, 0) + 1
            if count > passes:
                passes = count
        if not known and loop_state.authority is inferred and not loop_state.in_optimizer:
            before, version = version, recorder.weights_version()
            if marked is not None and version != before:
                close_late()
            uncounted += 1
            marked = mark()
            marked_values[:] = values
            if uncounted in UNCOUNTED_AT and not recorder.steps:
                recorder.fact("uncounted", {"backward_passes": uncounted})

    def on_gradient() -> None:
        nonlocal asked
        line = calling_line(1)
        asked_lines[line] = count = asked_lines.get(line, 0) + 1
        asked = max(asked, count)

    def on_optimizer(optimizer: int) -> None:
        nonlocal trained, where, marked, marked_passes, since_fetch, unfetched, passes, asked
        trained = True
        if loop_state.authority is not inferred or (loop_state.drifts and aside()):
            known.add(optimizer)
            return
        several = loop_state.several_optimizers
        here = () if known == {optimizer} and recorder.steps > LOOKS and not several else position(3)
        # One that is new where another has stepped again and again begins something else: a further fold.
        moved = optimizer not in known and stepped == closed
        if stepped and (optimizer in stepped or not same_iteration(where, here, moved=moved)):
            unfetched = unfetched or optimizer in stepped
            close_late()
        elif not stepped and optimizer not in known and unfetched and same_iteration(where, here, moved=True):
            # It belongs to the step that has just been closed. From now on such a step is waited for.
            known.add(optimizer)
            where = here
            return
        if not known:
            marked = None  # what was marked for want of an optimizer
        stepped.add(optimizer)
        known.add(optimizer)
        since_fetch += 1
        where = here
        lines.clear()
        if asked:
            passes, asked = passes or asked, 0
            asked_lines.clear()
        if unfetched and not several:
            close(None)
        else:
            marked = mark()
            marked_passes, passes = passes, 0
            marked_values[:] = values
            stage(marked)

    def on_step() -> None:
        loop_state.authority = user
        close(None)

    def flush() -> None:
        updated = stepped or (not known and recorder.weights_version() != version)
        if updated and loop_state.authority is inferred and marked is not None:
            close_late()

    return Boundary(
        on_fetch, on_fetched, on_exhausted, on_backward, on_gradient, on_optimizer, on_step, flush
    )


def silent() -> Boundary:
    """For adapters whose framework says itself where a step ends."""

    def nothing(*_: object) -> None:
        return None

    return Boundary(lambda: False, *[nothing] * 7)
