"""Notices that a rank makes no progress. Progress is steps, never utilisation.

A rank is given the longest step that it has lately needed, and then some; time in which this whole
machine stood still, or the agent itself was not let run, counts for nobody.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from monitor.agent import kernel, proc, stall_causes
from monitor.agent.follow import Followed
from monitor.agent.stacks import Frame, short, source, working_folder
from monitor.batch import Block
from monitor.schema import PHASES
from monitor.tape.layout import TapeError

#: Seconds without a step that are no stall for anybody, unless the user says otherwise.
FLOOR_S = 5.0
#: As many times the longest recent step are allowed (own; a step that doubles is slow, not stalled).
FACTOR = 3.0
#: Before the first step there is no history, and a compiler, a download or a cache may be at work.
FIRST_S = 120.0
#: Where the user set the threshold, the first step gets so many times that, up to FIRST_S.
FIRST_FACTOR = 4.0
#: Evaluating and saving may take this long the first time; later their own history counts.
FLOORS_S = {"eval": 30.0, "checkpoint": 30.0}
#: A main thread that computes (half of a CPU or more) may be doing work of the user's own between steps.
BUSY_FACTOR = 3.0
BUSY_CPU = 0.5
#: A loop that still goes from phase to phase (an evaluation nobody recognised) gets so many times more.
ACTIVE_FACTOR = 12.0
#: Nothing that a compiler does in this time is a stall.
COMPILE_S = 900.0
#: An agent that comes late by this much was not let run, nor perhaps was the trainer.
LATE_S = 2.0
#: Steps whose longest one counts as recent.
RECENT_STEPS = 1000
#: Nanoseconds between two looks at which workers there are, while all goes well.
WORKERS_NS = 2_000_000_000
#: Workers whose stacks are taken.
WORKERS = 8

Children = Callable[[int], list[tuple[int, int]]]


@dataclass(frozen=True)
class _Steps:
    """Some consecutive steps: how many, the longest of them, and all together."""

    count: int
    longest_s: float
    sum_s: float


@dataclass(frozen=True)
class Lasting:
    """A stall that was told and goes on. Two are equal while nothing has moved between them.

    Attributes:
        progress_ns: perf_counter_ns of the last step's end.
        since_ns: when its phase was entered.
        place: the line it stands at; None where that is not known.
    """

    progress_ns: int
    since_ns: int
    frame: Frame | None


@dataclass
class _Watched:
    """What is remembered of one rank."""

    steps: int = -1
    progress_ns: int = 0
    cpu_s: float = 0.0
    since_ns: int = 0
    recent: deque[_Steps] = field(default_factory=deque)
    recent_steps: int = 0
    longest_s: dict[str, float] = field(default_factory=dict)
    reported_s: float = 0.0
    check_again_s: float = 0.0
    workers: set[int] = field(default_factory=set)
    workers_at_ns: int = 0
    cause: str = ""
    frame: Frame | None = None


class Stalls:
    """Watches ranks for steps.

    Args:
        children_of: gives pid and start ticks of a rank's descendants.
        after_s: the user's threshold; None adapts to the run.

    Attributes:
        excused_ns: perf_counter_ns up to which nobody is blamed, since this machine stood still.
    """

    def __init__(self, children_of: Children, after_s: float | None = None) -> None:
        self._children_of = children_of
        self._after_s = after_s
        self._watched: dict[str, _Watched] = {}
        self._tapes: dict[str, Followed] = {}
        self.excused_ns = 0
        self._asleep_s = _asleep_s()

    def saw(self, tape: Followed, block: Block) -> None:
        """Learn from steps how long they take here."""
        watched = self._of(tape)
        for phase in FLOORS_S:
            longest = max(block.columns.get(f"{phase}_ms", (0.0,)), default=0.0) / 1e3
            watched.longest_s[phase] = max(watched.longest_s.get(phase, 0.0), longest)
        # The first step of all is slow in its own way and says nothing of the others.
        steps = block.columns["step_ms"][1 if block.first == 0 else 0 :]
        if steps:
            watched.recent.append(_Steps(len(steps), max(steps) / 1e3, sum(steps) / 1e3))
            watched.recent_steps += len(steps)
        while len(watched.recent) > 1 and watched.recent_steps - watched.recent[0].count > RECENT_STEPS:
            watched.recent_steps -= watched.recent.popleft().count

    def late(self, seconds: float) -> None:
        """The agent's loop came so much later than it wanted. Also asks whether the machine slept."""
        asleep_s = _asleep_s()
        if seconds > LATE_S or asleep_s - self._asleep_s > 1.0:
            self.excused_ns = time.perf_counter_ns()
        self._asleep_s = asleep_s

    def check(self, tape: Followed) -> list[dict[str, Any]]:
        """`stall` and `stall_over` events of one rank, without time; `since_ns` and `for_s` instead."""
        live, watched = tape.live, self._of(tape)
        if live is None or live.closed or live.gave_up or tape.damaged:
            return self._over(tape, watched)
        now_ns = time.perf_counter_ns()
        if live.steps != watched.steps:
            events = self._over(tape, watched) if watched.steps >= 0 else []
            first = tape.tape.header.mono_ns
            watched.steps, watched.progress_ns = live.steps, live.end_ns or first
            watched.cpu_s, watched.since_ns = _cpu_s(tape.pid), live.since_ns
            if now_ns - watched.workers_at_ns > WORKERS_NS:
                watched.workers, watched.workers_at_ns = self._workers(tape), now_ns
            return events
        silent_s = (now_ns - max(watched.progress_ns, self.excused_ns)) / 1e9
        if silent_s < self._allowed_s(tape, watched) or silent_s < max(
            2 * watched.reported_s, watched.check_again_s
        ):
            return []
        seen = self._stall_event(tape, watched, silent_s)
        return [] if seen is None else [seen]

    def lasting(self, tape: Followed) -> Lasting | None:
        """The stall of this rank that was told and is not over; None where there is none."""
        watched, live = self._of(tape), tape.live
        if not watched.reported_s or live is None:
            return None
        return Lasting(watched.progress_ns, live.since_ns, watched.frame)

    def current(self, tape: Followed) -> dict[str, Any] | None:
        """A `stall` event as of now, of a rank that is lasting in one; None where a compiler is at work."""
        watched = self._of(tape)
        reported_s = watched.reported_s
        seen = self._stall_event(tape, watched, (time.perf_counter_ns() - watched.progress_ns) / 1e9)
        watched.reported_s = reported_s  # whoever is told of it is told as if nobody had looked
        return seen

    def forget(self, tape: Followed) -> list[dict[str, Any]]:
        """The rank has ended; a stall that lasted is over with it."""
        events = self._over(tape, self._of(tape))
        self._watched.pop(str(tape.path), None)
        return events

    def threshold_s(self, tape: Followed) -> float:
        """Seconds without a step that this rank is given at least, in its present phase."""
        watched, live = self._of(tape), tape.live
        if not (live and live.steps):
            wanted = self._after_s
            return FIRST_S if wanted is None else max(wanted, min(FIRST_FACTOR * wanted, FIRST_S))
        longest_s = max((steps.longest_s for steps in watched.recent), default=0.0)
        base_s = FLOOR_S if self._after_s is None else self._after_s
        if live.phase in FLOORS_S:
            base_s = max(base_s, FLOORS_S[live.phase], FACTOR * watched.longest_s.get(live.phase, 0.0))
        return base_s if self._after_s is not None else max(base_s, FACTOR * longest_s)

    def _allowed_s(self, tape: Followed, watched: _Watched) -> float:
        threshold_s, live = self.threshold_s(tape), tape.live
        assert live is not None
        silent_s = (time.perf_counter_ns() - watched.progress_ns) / 1e9
        if silent_s < threshold_s or watched.reported_s:
            return threshold_s
        unmoved_s = (time.perf_counter_ns() - live.since_ns) / 1e9
        if live.since_ns != watched.since_ns and unmoved_s < threshold_s:
            # Evaluating batch by batch is no step, and may take as long as it likes.
            return float("inf") if live.phase == "eval" else ACTIVE_FACTOR * threshold_s
        if (_cpu_s(tape.pid) - watched.cpu_s) / silent_s >= BUSY_CPU:
            return BUSY_FACTOR * threshold_s
        return threshold_s

    def _stall_event(self, tape: Followed, watched: _Watched, silent_s: float) -> dict[str, Any] | None:
        # Asked anew: on a busy machine the last sample may be older than the workers are.
        ranks = frozenset(each.pid for each in self._tapes.values()) - {tape.pid}
        workers = sorted(self._workers(tape) | _workers_among(proc.descendants(tape.pid, ranks)))
        pids = [tape.pid, *workers[:WORKERS]]
        main, *others = stall_causes.inspect_processes(pids, tape.faults, lambda: _closed(tape))
        if stall_causes.compiling(main.stacks) and silent_s < COMPILE_S:
            watched.check_again_s = silent_s + FLOOR_S
            return None
        live = tape.live
        assert live is not None
        gone = len(watched.workers - set(workers))
        context = stall_causes.StallContext(live.phase, main, tuple(others), gone, tape.world_size)
        cause = stall_causes.find(context)
        first = not watched.reported_s
        watched.reported_s, watched.cause, watched.frame = silent_s, cause.code, cause.frame
        folder = working_folder(tape.pid)
        frame = cause.frame
        return {
            "kind": "stall",
            "rank": tape.rank,
            "phase": live.phase,
            "step": tape.steps,
            "since_ns": watched.progress_ns,
            "for_s": round(silent_s, 1),
            "again": not first,
            "threshold_s": round(self.threshold_s(tape), 1),
            "usual_step_ms": self._usual_ms(watched),
            "cause": cause.text,
            "cause_code": cause.code,
            "location": f"{short(frame.file, folder)}:{frame.line}" if frame else None,
            "function": frame.func if frame else None,
            "source": source(frame, folder) if frame else None,
            "threads": [thread.plain() for thread in main.stacks.threads],
            "why_no_stack": main.stacks.why,
            "state": main.state,
            **main.waits.plain(),
            "machine": kernel.trouble(tape.pid),
            "workers": [_worker(seen) for seen in others],
            "waits_for": self._missing(tape) if cause.code == "collective" else [],
        }

    def _over(self, tape: Followed, watched: _Watched) -> list[dict[str, Any]]:
        reported, watched.reported_s, watched.check_again_s, watched.cause = watched.reported_s, 0.0, 0.0, ""
        if not reported:
            return []
        lasted_s = (time.perf_counter_ns() - watched.progress_ns) / 1e9
        return [{"kind": "stall_over", "rank": tape.rank, "step": tape.steps, "for_s": round(lasted_s, 1)}]

    def _missing(self, waiting: Followed) -> list[int]:
        """Ranks of this host that the waiting one may wait for: ended, or standing somewhere else."""
        others = [tape for tape in self._tapes.values() if tape is not waiting]
        newest = {tape.rank: tape for tape in others}
        return sorted(
            rank
            for rank, tape in newest.items()
            if tape.ended or self._watched.get(str(tape.path), _Watched()).cause not in ("collective", "")
        )

    def _of(self, tape: Followed) -> _Watched:
        self._tapes[str(tape.path)] = tape
        return self._watched.setdefault(str(tape.path), _Watched())

    def _workers(self, tape: Followed) -> set[int]:
        """Living loader workers of a rank."""
        return _workers_among(pid for pid, _ in self._children_of(tape.rank))

    def _usual_ms(self, watched: _Watched) -> float | None:
        together_s = sum(steps.sum_s for steps in watched.recent)
        return round(together_s / watched.recent_steps * 1e3, 1) if watched.recent_steps else None


def _workers_among(pids: Iterable[int]) -> set[int]:
    found = ((pid, proc.stat(pid)) for pid in pids)
    return {pid for pid, stat in found if stat and stat.name == proc.WORKER_NAME and stat.state not in "ZX"}


def _worker(seen: stall_causes.Seen) -> Mapping[str, Any]:
    main = seen.stacks.main
    frame = main.own if main else None
    return {
        "pid": seen.stacks.pid,
        "state": seen.state,
        **seen.waits.plain(),
        "location": f"{frame.file}:{frame.line}" if frame else None,
        "function": frame.func if frame else None,
        "threads": [thread.plain() for thread in seen.stacks.threads],
        "why_no_stack": seen.stacks.why,
    }


def _closed(tape: Followed) -> bool:
    """Whether the rank has let go of its tape by this very moment."""
    try:
        return tape.tape.live().closed
    except TapeError:
        return True


def _cpu_s(pid: int) -> float:
    """CPU time of the main thread; 0 when unknown, so that nobody seems busy."""
    found = proc.stat(pid, thread=pid)
    return found.cpu_s if found else 0.0


def _asleep_s() -> float:
    """How long the machine has been suspended since it booted."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


assert set(FLOORS_S) <= set(PHASES)
