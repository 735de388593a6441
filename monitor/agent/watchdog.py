"""Notices at once that a rank has ended, and finds out how."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monitor.agent import exits, faults, proc
from monitor.agent.follow import Followed
from monitor.agent.stacks import short

#: The launcher writes the exit status down moments after the death; so long it is waited for.
LAUNCHER_S = 1.0
#: Between a process's last breath and its zombie, or its reaping, lies a moment.
SETTLE_S = 0.2


@dataclass
class _Gone:
    at_s: float
    status: int | None
    oom_kill: bool


class Watchdog:
    """Holds a handle on every rank's process.

    A handle stays with its process, so a later process of the same id is never taken for it. Where
    the system has no such handles the process is looked up by id and start time.

    Args:
        spool: where the launcher writes `launched-R` and `exit-R.json`.
    """

    def __init__(self, spool: Path) -> None:
        self._spool = spool
        self._selector = selectors.DefaultSelector()
        self._pidfds: dict[int, int] = {}
        self._gone: dict[int, _Gone] = {}

    def watch(self, tape: Followed) -> None:
        """Watch a rank's process, which may be dead already."""
        pidfd = exits.open_pidfd(tape.pid)
        if pidfd is None:
            return
        if proc.is_same(tape.pid, tape.start_ticks):
            self._pidfds[tape.pid] = pidfd
            self._selector.register(pidfd, selectors.EVENT_READ)
        else:
            os.close(pidfd)

    def wait(self, seconds: float) -> None:
        """Sleep, at most until a rank dies."""
        seconds = max(0.0, min(seconds, SETTLE_S / 4) if self._gone else seconds)
        if self._selector.get_map():
            self._selector.select(seconds)
        else:
            time.sleep(seconds)

    def gone(self, tape: Followed, oom_kill: Callable[[], bool]) -> bool:
        """Whether the rank's process has ended or let go of its tape.

        Args:
            tape: the rank.
            oom_kill: tells whether the kernel has lately killed for memory; asked at the first notice.
        """
        if tape.pid in self._gone:
            return True
        if not (self._dead(tape) or _let_go(tape)):
            return False
        pidfd = self._pidfds.get(tape.pid)
        if pidfd is not None:
            self._selector.unregister(pidfd)
        self._gone[tape.pid] = _Gone(time.monotonic(), self._status(tape), oom_kill())
        return True

    def how(self, tape: Followed) -> exits.Exit | None:
        """How a rank that is gone has ended; None while that may yet become known.

        Call it after the rank's journal has been read to its end.
        """
        gone = self._gone[tape.pid]
        if _let_go(tape):
            return exits.explain(None, tape.end, tape.failure)
        waited_s = time.monotonic() - gone.at_s
        reported = exits.launcher_exit(self._spool, tape.rank, tape.wall_ns)
        if reported is None and waited_s < LAUNCHER_S and (self._spool / f"launched-{tape.rank}").exists():
            return None
        if gone.status is None:
            gone.status = self._status(tape)
        known = reported or exits.from_status(gone.status)
        if known is None and waited_s < SETTLE_S:
            return None
        return exits.explain(known, tape.end, tape.failure, gone.oom_kill)

    def forget(self, tape: Followed) -> bool:
        """Let go of the rank's process. Returns whether the kernel had killed for memory as it ended."""
        pidfd = self._pidfds.pop(tape.pid, None)
        if pidfd is not None:
            os.close(pidfd)
        gone = self._gone.pop(tape.pid, None)
        return gone is not None and gone.oom_kill

    def _dead(self, tape: Followed) -> bool:
        pidfd = self._pidfds.get(tape.pid)
        if pidfd is not None:
            return any(key.fd == pidfd for key, _ in self._selector.select(0))
        found = proc.stat(tape.pid)
        if found is not None:
            return found.state in "ZX" or tape.start_ticks not in (0, found.start_ticks)
        return not _exists(tape.pid)

    def _status(self, tape: Followed) -> int | None:
        pidfd = self._pidfds.get(tape.pid)
        status = exits.zombie_status(tape.pid, tape.start_ticks)
        return exits.pidfd_status(pidfd) if status is None and pidfd is not None else status


def end_event(
    tape: Followed, how: exits.Exit, oom_kill: bool, children: Iterable[tuple[int, int]]
) -> dict[str, Any]:
    """The `rank_end` event, but for its time. `children`: pid and start ticks of its descendants."""
    seen = tape.live is not None and not tape.live.closed and not tape.live.gave_up
    phase = tape.live.phase if tape.live is not None and seen else None
    return {
        "kind": "rank_end",
        "rank": tape.rank,
        "pid": tape.pid,
        "code": how.code,
        "signal": how.signal,
        "reason": how.reason,
        "clean": how.clean,
        "on_stall": how.on_stall,
        "last_step": tape.steps - 1 if tape.steps else None,
        "last_phase": phase,
        "oom_kill": oom_kill,
        "orphans": [pid for pid, ticks in children if _lives(pid, ticks)],
        "location": (tape.failure or {}).get("location"),
        # When its exception came up: ranks that fail together end in any order.
        "failed_s": (tape.failure or {}).get("t_s"),
        **_last_words(tape, how),
    }


def _last_words(tape: Followed, how: exits.Exit) -> dict[str, Any]:
    """Where a rank crashed and the trace of it, if it left one; see faults.last_words."""
    crash = faults.last_words(tape.faults, how.signal)
    frame = crash.get("frame")
    if frame is None:
        return crash and {"trace": crash["trace"]}
    location = f"{short(frame.file, tape.folder)}:{frame.line}"
    return {"trace": crash["trace"], "location": location, "function": frame.func}


def end_without_tape(rank: int, exit_status: tuple[int | None, int | None]) -> dict[str, Any]:
    """The `rank_end` event of a process that ended before it made a tape, but for its time."""
    how = exits.explain(exit_status, None, None)
    return {
        "kind": "rank_end",
        "rank": rank,
        "code": how.code,
        "signal": how.signal,
        "reason": how.reason,
        "clean": how.clean,
        "last_step": None,
        "last_phase": None,
        "oom_kill": False,
        "orphans": [],
    }


def _let_go(tape: Followed) -> bool:
    """Detached, and nothing more to come: the process may live on without us.

    An agent that runs as a thread of the trainer sees no more of its end than the last words.
    """
    if tape.end is None or tape.live is None or not tape.live.closed:
        return False
    return tape.end.get("reason") == exits.CLEAN_REASONS[0] or tape.pid == os.getpid()


def _lives(pid: int, start_ticks: int) -> bool:
    found = proc.stat(pid)
    return found is not None and found.start_ticks == start_ticks and found.state not in "ZX"


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
