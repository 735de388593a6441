"""Where the loop spends the time that no phase claims: some stacks of the main thread, now and then.

Logging, printing, `.item()` in a loop: they show up as `other`, and only a stack can name them.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from monitor.agent.follow import Followed
from monitor.agent.stacks import Frame, Recording, Thread, source, working_folder
from monitor.batch import Block

#: From this share of recent time on it is worth a look (own: well above what a healthy loop has).
SHARE = 0.15
#: Time over which the share is taken, in milliseconds of steps.
WINDOW_MS = 3000.0
#: Recordings of a second each: (seconds after the first one, stacks a second). Eighty stacks in the first
#: minute, then six a minute: about 20 ms of CPU a recording.
SECONDS = 1
FIRST = ((0.0, 40), (5.0, 20), (20.0, 20))
LATER_S, LATER_RATE = 60.0, 6
#: Seconds between two events.
EVENT_INTERVAL_S = 5.0
#: Locations sent in an event, and kept.
TOP_LOCATIONS = 10
MAX_LOCATIONS = 200

#: A stack that passes here is one of a training phase: its functions are those that train.
_TRAINS = ("torch/autograd/", "torch/optim/")
#: A stack that passes here is one of a claimed phase.
_CLAIMED = ("torch/utils/data/", *_TRAINS, "torch/serialization.py")
#: Nor is a module's call unclaimed, where forward passes are told apart.
_CALLS_MODULE = "torch/nn/modules/module.py"


@dataclass
class _RankStacks:
    """What is remembered of one rank."""

    recent: deque[tuple[float, float]] = field(default_factory=deque)
    other_ms: float = 0.0
    step_ms: float = 0.0
    recording: Recording | None = None
    first_s: float = 0.0
    taken: int = 0
    total: int = 0
    in_modules: int = 0
    #: The user's innermost frame, the innermost of all, and that of the function that trains.
    locations: Counter[tuple[Frame, Frame, Frame | None]] = field(default_factory=Counter)
    training_functions: set[tuple[str, str]] = field(default_factory=set)
    reported_s: float = 0.0
    reported_total: int = 0
    folder: str | None = None


class StackSampler:
    """Samples the main threads of ranks whose steps have much unclaimed time."""

    def __init__(self) -> None:
        self._ranks: dict[str, _RankStacks] = {}

    def add_steps(self, tape: Followed, block: Block) -> None:
        """Learn from steps how much of their time nothing claims."""
        rank_stacks = self._of(tape)
        other_ms, step_ms = sum(block.columns.get("other_ms", ())), sum(block.columns["step_ms"])
        rank_stacks.recent.append((other_ms, step_ms))
        rank_stacks.other_ms += other_ms
        rank_stacks.step_ms += step_ms
        while len(rank_stacks.recent) > 1 and rank_stacks.step_ms - rank_stacks.recent[0][1] > WINDOW_MS:
            other_ms, step_ms = rank_stacks.recent.popleft()
            rank_stacks.other_ms -= other_ms
            rank_stacks.step_ms -= step_ms

    def sample(self, tape: Followed) -> list[dict[str, Any]]:
        """Take or collect a stack when one is due. Never waits. Returns an `other_stack` event or none."""
        rank_stacks, now_s = self._of(tape), time.monotonic()
        if rank_stacks.recording is not None and rank_stacks.recording.done():
            self._collect(rank_stacks)
        elif rank_stacks.recording is None and (rate := self._due(tape, rank_stacks, now_s)):
            rank_stacks.recording = Recording(tape.pid, SECONDS, rate)
            rank_stacks.first_s = rank_stacks.first_s or now_s
            rank_stacks.taken += 1
        if (
            rank_stacks.total == rank_stacks.reported_total
            or now_s - rank_stacks.reported_s < EVENT_INTERVAL_S
        ):
            return []
        rank_stacks.reported_s, rank_stacks.reported_total = now_s, rank_stacks.total
        rank_stacks.folder = rank_stacks.folder or working_folder(tape.pid)
        return [self._event(tape, rank_stacks)]

    def forget(self, tape: Followed) -> list[dict[str, Any]]:
        """The rank has ended: what was not reported yet, last of all."""
        rank_stacks = self._ranks.pop(str(tape.path), None)
        if rank_stacks is None:
            return []
        if rank_stacks.recording is not None:
            self._collect(rank_stacks)  # it ends with its process
        return [self._event(tape, rank_stacks)] if rank_stacks.total > rank_stacks.reported_total else []

    def close(self) -> None:
        """Give up what is still being taken."""
        for rank_stacks in self._ranks.values():
            if rank_stacks.recording is not None:
                rank_stacks.recording.drop()

    def _of(self, tape: Followed) -> _RankStacks:
        return self._ranks.setdefault(str(tape.path), _RankStacks())

    def _due(self, tape: Followed, rank_stacks: _RankStacks, now_s: float) -> int:
        """Stacks a second to record now; 0 while nothing is due."""
        live = tape.live
        if (
            live is None
            or live.closed
            or not rank_stacks.step_ms
            or rank_stacks.other_ms / rank_stacks.step_ms <= SHARE
        ):
            return 0
        after_s, rate = (
            FIRST[rank_stacks.taken] if rank_stacks.taken < len(FIRST) else _later(rank_stacks.taken)
        )
        return rate if now_s - (rank_stacks.first_s or now_s) >= after_s else 0

    def _collect(self, rank_stacks: _RankStacks) -> None:
        assert rank_stacks.recording is not None
        found, why = rank_stacks.recording.result()
        rank_stacks.recording = None
        if why is not None:
            rank_stacks.taken = max(rank_stacks.taken, len(FIRST))  # not permitted now, hardly so in a moment
        for thread, _ in found:
            if thread.passes(*_TRAINS):
                rank_stacks.training_functions.update((frame.file, frame.func) for frame in thread.users)
        for thread, count in found:
            if thread.own is None or thread.passes(*_CLAIMED):
                continue
            location = (thread.own, thread.frames[0], _of_training(thread, rank_stacks.training_functions))
            if location in rank_stacks.locations or len(rank_stacks.locations) < MAX_LOCATIONS:
                rank_stacks.locations[location] += count
            rank_stacks.total += count
            rank_stacks.in_modules += count if thread.passes(_CALLS_MODULE) else 0

    def _event(self, tape: Followed, rank_stacks: _RankStacks) -> dict[str, Any]:
        frames = [
            {
                "file": own.file,
                "line": own.line,
                "func": own.func,
                "source": source(own, rank_stacks.folder),
                "leaf_func": leaf.func,
                "leaf_file": leaf.file,
                "step_source": source(at, rank_stacks.folder) if at else "",
                "count": count,
            }
            for (own, leaf, at), count in rank_stacks.locations.most_common(TOP_LOCATIONS)
        ]
        totals = {"total": rank_stacks.total, "in_modules": rank_stacks.in_modules}
        return {"kind": "other_stack", "rank": tape.rank, **totals, "frames": frames}


def _of_training(thread: Thread, functions: set[tuple[str, str]]) -> Frame | None:
    """The innermost frame of a function that was seen to train: where in its step the program is."""
    return next((frame for frame in thread.users if (frame.file, frame.func) in functions), None)


def _later(taken: int) -> tuple[float, int]:
    return LATER_S * (taken - len(FIRST) + 1), LATER_RATE
