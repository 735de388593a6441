"""Where the loop spends the time that no phase claims: a few stacks of the main thread, now and then.

Logging, printing, `.item()` in a loop: they show up as `other`, and only a stack can name them.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from monitor.agent.follow import Followed
from monitor.agent.stacks import Dump, Frame, Stacks, Thread, source, working_folder
from monitor.batch import Block

#: From this share of recent time on it is worth a look (own: well above what a healthy loop has).
SHARE = 0.15
#: Time over which the share is taken, in milliseconds of steps.
WINDOW_MS = 3000.0
#: Stacks: at most two a second, so many in the first minute, and six a minute from then on.
PAUSE_S = 0.5
FIRST_SAMPLES = 40
LATER_PAUSE_S = 10.0
#: Seconds between two events.
TELL_S = 5.0
#: Places told of and kept.
TOLD = 10
KEPT = 200

#: A stack that passes here was taken in a phase that is claimed, whatever the tape said just before.
_CLAIMED = ("torch/utils/data/", "torch/autograd/", "torch/optim/", "torch/nn/modules/module.py")


@dataclass
class _Looked:
    """What is remembered of one rank."""

    recent: deque[tuple[float, float]] = field(default_factory=deque)
    other_ms: float = 0.0
    step_ms: float = 0.0
    dump: Dump | None = None
    next_s: float = 0.0
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
        if looked.dump is not None and looked.dump.done():
            stacks, looked.dump = looked.dump.result(), None
            self._count(looked, stacks)
        elif looked.dump is None and now_s >= looked.next_s and self._due(tape, looked):
            looked.dump = Dump(tape.pid)
            looked.taken += 1
            looked.next_s = now_s + (PAUSE_S if looked.taken < FIRST_SAMPLES else LATER_PAUSE_S)
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
        if looked.dump is not None:
            looked.dump.drop()
        return [self._event(tape, looked)] if looked.total > looked.told_total else []

    def close(self) -> None:
        """Give up what is still being taken."""
        for looked in self._looked.values():
            if looked.dump is not None:
                looked.dump.drop()

    def _of(self, tape: Followed) -> _Looked:
        return self._looked.setdefault(str(tape.path), _Looked())

    def _due(self, tape: Followed, looked: _Looked) -> bool:
        live = tape.live
        if live is None or live.closed or live.phase != "other":
            return False
        return looked.step_ms > 0 and looked.other_ms / looked.step_ms > SHARE

    def _count(self, looked: _Looked, stacks: Stacks) -> None:
        if stacks.why is not None:
            looked.next_s = time.monotonic() + LATER_PAUSE_S  # not permitted now, hardly so in half a second
            return
        own = _unclaimed_place(stacks.main)
        if own is None or stacks.main is None:
            return
        place = (own, stacks.main.frames[0])
        if place in looked.places or len(looked.places) < KEPT:
            looked.places[place] += 1
        looked.total += 1

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


def _unclaimed_place(main: Thread | None) -> Frame | None:
    """The user's innermost line, unless the stack is one of a claimed phase."""
    if main is None or not main.frames or main.passes(*_CLAIMED):
        return None
    return main.own
