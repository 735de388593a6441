"""How a process ended, asked of everybody who may know, the surest first.

1. The launcher, which is its parent: `exit-R.json` in the spool.
2. The kernel, through a pidfd opened while it lived (`PIDFD_GET_INFO` with exit information, Linux
   6.15 and later): also when its parent has reaped it.
3. The kernel, through /proc, while it is a zombie.
4. Its own last words in the journal.
"""

from __future__ import annotations

import json
import os
import signal
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monitor.agent import proc

_ioctl: Callable[[int, int, bytearray], Any] | None
try:
    from fcntl import ioctl as _ioctl
except ImportError:  # Windows
    _ioctl = None

# linux/pidfd.h: _IOWR(0xFF, 11, struct pidfd_info), 64 bytes: mask, cgroupid, eleven 32-bit ids, exit_code.
_PIDFD_GET_INFO = 3 << 30 | 64 << 16 | 0xFF << 8 | 11
_PIDFD_INFO = struct.Struct("<QQ11Ii")
_PIDFD_INFO_EXIT = 1 << 3


@dataclass(frozen=True)
class Exit:
    """How a rank ended.

    Attributes:
        code: exit code; None when a signal ended it or nobody knows.
        signal: signal number; None when none did or nobody knows.
        reason: in words.
        on_stall: whether we ended it, as the user asked for.
    """

    code: int | None
    signal: int | None
    reason: str
    on_stall: bool = False

    @property
    def clean(self) -> bool:
        """Nothing went wrong."""
        return self.code == 0 or (self.code is None and self.signal is None and self.reason in CLEAN_REASONS)


#: What the probe writes into its `end` event when nothing went wrong.
CLEAN_REASONS = ("detached", "end of the script")
UNKNOWN = "it vanished, and nobody can say how"


def open_pidfd(pid: int) -> int | None:
    """A handle on a living process (or zombie); None where there is none or none to be had."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def pidfd_status(pidfd: int) -> int | None:
    """Wait status of a process that has been reaped; None while it is not, or the kernel is older."""
    if _ioctl is None:
        return None
    request = bytearray(_PIDFD_INFO.pack(_PIDFD_INFO_EXIT, *[0] * 13))
    try:
        _ioctl(pidfd, _PIDFD_GET_INFO, request)
    except OSError:
        return None
    answer = _PIDFD_INFO.unpack(request)
    return int(answer[-1]) if answer[0] & _PIDFD_INFO_EXIT else None


def zombie_status(pid: int, start_ticks: int) -> int | None:
    """Wait status of a process that its parent has not reaped; None when it is none."""
    found = proc.stat(pid)
    if found is None or found.state not in "ZX" or start_ticks not in (0, found.start_ticks):
        return None
    return found.exit_status


def launcher_exit(spool: Path, rank: int, since_ns: int) -> tuple[int | None, int | None] | None:
    """Exit code and signal from `exit-R.json`; None when there is none from after `since_ns` (unix)."""
    path = spool / f"exit-{rank}.json"
    try:
        if path.stat().st_mtime_ns < since_ns:
            return None  # of an earlier process with this rank
        recorded = json.loads(path.read_text())
        code, number = recorded.get("code"), recorded.get("signal")
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    valid = all(value is None or type(value) is int for value in (code, number))
    return (code, number) if valid and (code, number) != (None, None) else None


def explain(
    known: tuple[int | None, int | None] | None,
    end: dict[str, Any] | None,
    failure: dict[str, Any] | None,
    oom_kill: bool = False,
) -> Exit:
    """Code, signal and words, from what is known for certain and from the process's last words.

    Args:
        known: code and signal as the launcher or the kernel say.
        end, failure: the probe's `end` and `exception` events.
        oom_kill: whether the kernel killed for memory at about that time.
    """
    end = end or {}
    reason = end.get("reason") if isinstance(end.get("reason"), str) else None
    if failure is not None:
        reason = f"{failure.get('type')}: {failure.get('message')}"[:500]
    if known is None:
        code = end.get("code") if type(end.get("code")) is int else None
        return Exit(code, None, reason or UNKNOWN)
    code, number = known
    if number is not None:
        killed = f"killed by {_signal_name(number)}"
        return Exit(
            code, number, f"{killed}: out of memory" if oom_kill and number == signal.SIGKILL else killed
        )
    if code == 0:
        return Exit(code, None, reason if reason in CLEAN_REASONS else CLEAN_REASONS[1])
    return Exit(code, None, reason if reason not in (None, *CLEAN_REASONS) else f"exit code {code}")


def from_status(status: int | None) -> tuple[int | None, int | None] | None:
    """Code and signal from a wait status."""
    if status is None:
        return None
    code = os.waitstatus_to_exitcode(status)
    return (None, -code) if code < 0 else (code, None)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
