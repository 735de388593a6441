"""A step's nanoseconds: a stack of phases, so that every nanosecond belongs to exactly one of them.

The clock is made of closures over local variables, a fifth cheaper than methods, because it runs
some ten times a step inside somebody else's training loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from monitor.schema import PHASES
from monitor.tape.layout import LIVE_PHASE, LIVE_SINCE_NS

DATA, H2D, FORWARD, BACKWARD, OPTIMIZER, COMM, CHECKPOINT, EVAL, OTHER = range(len(PHASES))
#: The phase before the first step: its time belongs to no step and is dropped. It counts into the last
#: entry of a list that is one longer than the phases, and the tape's live area knows it as -1 as well.
BEFORE = -1


class Clock(NamedTuple):
    """The clock's hands.

    Attributes:
        push: push(phase) -> depth. Time now goes to `phase`, until `pop(depth)`.
        pop: pop(depth). Back to what ran when `push` gave that depth, whatever was left open since.
        floor: floor(phase). What time belongs to while nothing is open: OTHER, or EVAL. The end of a
            step makes it OTHER.
        ground: a list of one, to be read: the phase set by `set_base_phase`.
        mark: mark() -> (time_ns, spent): the step as it stands now, for `end_step_at`.
        lap: lap() -> (time_ns, spent): ends the step now. `spent` has a nanosecond count a phase.
        cut: cut(mark): ends the step where it was marked; what came since belongs to the next one.
        move: move(source, target, nanoseconds): so much of what this step spent in one phase so far was
            spent in another one. Never more than there is, so that nothing is counted twice.
        begin: begin(): time before this call belongs to no step. Only the first call does anything, and the
            first after `pause`.
        pause: pause(): time from now until `begin` belongs to no step.
        trace: what stands in this list is called with each new phase, after the clock went over to it.
            Empty most of the time.
    """

    push: Callable[[int], int]
    pop: Callable[[int], None]
    set_base_phase: Callable[[int], None]
    base_phase: list[int]
    mark: Callable[[], tuple[int, list[int]]]
    end_step: Callable[[], tuple[int, list[int]]]
    end_step_at: Callable[[tuple[int, list[int]]], None]
    reassign: Callable[[int, int, int], None]
    begin: Callable[[], None]
    pause: Callable[[], None]
    trace: list[Callable[[int], None]]


class Live(Protocol):
    """Numbers that can be written in place: the tape's live area, or a list."""

    def __setitem__(self, index: int, value: int, /) -> None:
        """Write one."""


def make_clock(live: Live, now: Callable[[], int] = time.perf_counter_ns) -> Clock:
    """A clock that writes its phase and the time it was entered into `live[0]` and `live[1]`.

    Args:
        live: the tape's live area, read by the agent even after this process was killed.
        now: nanoseconds; handed in, so that tests of time never sleep.
    """
    spent = [0] * (len(PHASES) + 1)
    nothing = tuple(spent)
    stack: list[int] = []
    trace: list[Callable[[int], None]] = []
    base_phase, current, since = [OTHER], BEFORE, now()
    live[LIVE_PHASE], live[LIVE_SINCE_NS] = BEFORE, since

    def push(phase: int) -> int:
        nonlocal current, since
        depth = len(stack)
        at = now()
        spent[current] += at - since
        stack.append(current)
        current, since = phase, at
        live[0], live[1] = phase, at
        if trace:
            trace[0](phase)
        return depth

    def pop(depth: int) -> None:
        nonlocal current, since
        if len(stack) <= depth:
            return
        at = now()
        spent[current] += at - since
        current, since = stack[depth], at
        del stack[depth:]
        live[0], live[1] = current, at
        if trace:
            trace[0](current)

    def set_base_phase(phase: int) -> None:
        nonlocal current, since
        base_phase[0] = phase
        if stack:
            stack[0] = phase if stack[0] != BEFORE else BEFORE
        elif current != BEFORE and current != phase:
            at = now()
            spent[current] += at - since
            current, since = phase, at
            live[0], live[1] = phase, at
            if trace:
                trace[0](phase)

    def begin() -> None:
        nonlocal current, since
        if current == BEFORE:
            current, since = base_phase[0], now()
            live[0], live[1] = current, since

    def pause() -> None:
        nonlocal current, since
        if current == BEFORE:
            return
        at = now()
        spent[current] += at - since
        stack.clear()
        current, since = BEFORE, at
        live[0], live[1] = current, at

    def mark() -> tuple[int, list[int]]:
        nonlocal since
        at = now()
        spent[current] += at - since
        since = at
        return at, spent[:BEFORE]

    def end_step() -> tuple[int, list[int]]:
        nonlocal current, since
        at = now()
        spent[current] += at - since
        taken, since = spent[:BEFORE], at
        stack.clear()
        base_phase[0] = current = OTHER
        spent[:] = nothing
        live[0], live[1] = current, at
        return at, taken

    def end_step_at(marked: tuple[int, list[int]]) -> None:
        for phase, nanoseconds in enumerate(marked[1]):
            spent[phase] -= nanoseconds
        set_base_phase(OTHER)

    def reassign(source: int, target: int, nanoseconds: int) -> None:
        moved = min(max(nanoseconds, 0), max(spent[source], 0))
        spent[source] -= moved
        spent[target] += moved

    return Clock(
        push, pop, set_base_phase, base_phase, mark, end_step, end_step_at, reassign, begin, pause, trace
    )
