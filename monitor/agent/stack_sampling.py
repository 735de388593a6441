"""Where the loop spends the time that no phase claims: some stacks of the main thread, now and then.

Logging, printing, `.item()` in a loop: they show up as `other`, and only a stack can name them.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from monitor.agent.follow import Followed
from monitor.agent.stacks import Frame, Recording, source, working_folder
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
TELL_S = 5.0
#: Places told of and kept.
TOLD = 10
KEPT = 200

#: A stack that passes here is one of a claimed phase.
_CLAIMED = (
    "torch/utils/data/",
    "torch/autograd/",
    "torch/optim/",
    "torch/serialization.py",
)


@dataclass
class _Looked:
    """What is remembered of one rank."""

    recent: deque[tuple[float, float]] = field(default_factory=deque)
    other_ms: float = 0.0
    step_ms: float = 0.0
    recording: Recording | None = None
    first_s: float = 0.0
    taken: int = 0
    total: int = 0
    places: Counter[tuple[Frame, Frame]] = field(default_factory=Counter)
    told_s: float = 0.0
    told_total: int = 0
    folder: str | None = None


class Unclaimed:
    """Samples the main threads of ranks whose steps have much unclaimed time."""

    def __init__(self) -> None:
        self._looked: dict[str, _Looked] = {}

    def saw(self, tape: Followed, block: Block) -> None:
        """Learn from steps how much of their time nothing claims."""
        looked = self._of(tape)
        other_ms, step_ms = sum(block.columns.get("other_ms", ())), sum(block.columns["step_ms"])
        looked.recent.append((other_ms, step_ms))
        looked.other_ms += other_ms
        looked.step_ms += step_ms
        while len(looked.recent) > 1 and looked.step_ms - looked.recent[0][1] > WINDOW_MS:
            other_ms, step_ms = looked.recent.popleft()
            looked.other_ms -= other_ms
            looked.step_ms -= step_ms

    def look(self, tape: Followed) -> list[dict[str, Any]]:
        """Take or collect a stack when one is due. Never waits. Returns an `other_stack` event or none."""
        looked, now_s = self._of(tape), time.monotonic()
        if looked.recording is not None and looked.recording.done():
            self._collect(looked)
        elif looked.recording is None and (rate := self._due(tape, looked, now_s)):
            looked.recording = Recording(tape.pid, SECONDS, rate)
            looked.first_s = looked.first_s or now_s
            looked.taken += 1
        if looked.total == looked.told_total or now_s - looked.told_s < TELL_S:
            return []
        looked.told_s, looked.told_total = now_s, looked.total
        looked.folder = looked.folder or working_folder(tape.pid)
        return [self._event(tape, looked)]

    def forget(self, tape: Followed) -> list[dict[str, Any]]:
        """The rank has ended: what was not told yet, last of all."""
        looked = self._looked.pop(str(tape.path), None)
        if looked is None:
            return []
        if looked.recording is not None:
            self._collect(looked)  # it ends with its process
        return [self._event(tape, looked)] if looked.total > looked.told_total else []

    def close(self) -> None:
        """Give up what is still being taken."""
        for looked in self._looked.values():
            if looked.recording is not None:
                looked.recording.drop()

    def _of(self, tape: Followed) -> _Looked:
        return self._looked.setdefault(str(tape.path), _Looked())

    def _due(self, tape: Followed, looked: _Looked, now_s: float) -> int:
        """Stacks a second to record now; 0 while nothing is due."""
        live = tape.live
        if live is None or live.closed or not looked.step_ms or looked.other_ms / looked.step_ms <= SHARE:
            return 0
        after_s, rate = FIRST[looked.taken] if looked.taken < len(FIRST) else _later(looked.taken)
        return rate if now_s - (looked.first_s or now_s) >= after_s else 0

    def _collect(self, looked: _Looked) -> None:
        assert looked.recording is not None
        found, why = looked.recording.result()
        looked.recording = None
        if why is not None:
            looked.taken = max(looked.taken, len(FIRST))  # not permitted now, hardly so in a moment
        for thread, count in found:
            if thread.own is None or thread.passes(*_CLAIMED):
                continue
            place = (thread.own, thread.frames[0])
            if place in looked.places or len(looked.places) < KEPT:
                looked.places[place] += count
            looked.total += count

    def _event(self, tape: Followed, looked: _Looked) -> dict[str, Any]:
        frames = [
            {
                "file": own.file,
                "line": own.line,
                "func": own.func,
                "source": source(own, looked.folder),
                "leaf_func": leaf.func,
                "leaf_file": leaf.file,
                "count": count,
            }
            for (own, leaf), count in looked.places.most_common(TOLD)
        ]
        return {"kind": "other_stack", "rank": tape.rank, "total": looked.total, "frames": frames}


def _later(taken: int) -> tuple[float, int]:
    return LATER_S * (taken - len(FIRST) + 1), LATER_RATE
