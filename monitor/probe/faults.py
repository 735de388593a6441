"""Every thread's stack in a file, written by Python itself: at a fatal signal, and when the agent asks.

The agent looks from outside where it may. Where it may not, it sends one real-time signal, and Python's
`faulthandler` answers from C, also while the interpreter is frozen. Nothing runs here until then. A
loader's forked workers inherit all of it and answer into the same file, one at a time, as the agent asks.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from monitor.probe.patches import Patches
from monitor.probe.recorder import Recorder

#: The first signal that is tried, counted from SIGRTMIN, and how many. Lightning claims SIGUSR1 under
#: Slurm, C libraries the first few real-time signals.
FIRST, TRIES = 5, 8
#: The file's descriptor is at least this, so that a program which closes whatever is open and goes on
#: does not soon get the same number for a file of its own.
HIGH_FD = 500
#: Where nobody else handles these, their trace is kept.
FATAL = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")

_PR_SET_PTRACER = 0x59616D61
_YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")


class Faults:
    """What is registered in this process. Where something cannot be had, it does without.

    Args:
        path: the file to make; it must not exist.
        patches: takes the place of functions that say whose the fatal signals are.

    Attributes:
        signal: number of the signal that asks for stacks; None where there is none.
        fatal: whether fatal signals leave their trace.
        permitted: whether the agent was let look into this process.
    """

    def __init__(self, path: str, patches: Patches) -> None:
        self.signal: int | None = None
        self.fatal = self.permitted = False
        self._path = path
        self._fd = -1
        self._pid = os.getpid()
        with contextlib.suppress(ImportError, OSError, AttributeError, ValueError, RuntimeError):
            self._register()
            self._enable(patches)

    def description(self) -> dict[str, Any]:
        """What the agent must know in order to ask."""
        return {
            "signal": self.signal,
            "fatal": self.fatal,
            "fd": self._fd,
            "file": os.path.basename(self._path),
            "main": threading.main_thread().ident,
        }

    def taken(self) -> bool:
        """Whether the user has put a handler of their own in the place of ours: it is theirs from now on."""
        if self.signal is not None and signal.getsignal(self.signal) is not signal.SIG_DFL:
            self.signal = None
            return True
        return False

    def release(self) -> None:
        """Put back what was there. The tape must be closed by now: the agent sends no signal after that."""
        if self._fd < 0 or self._pid != os.getpid():
            return
        if self.permitted:
            forbid()
        import faulthandler

        fd, self._fd = self._fd, -1
        self.taken()
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            if self.signal is not None:
                faulthandler.unregister(self.signal)
            if self.fatal and faulthandler.is_enabled():
                faulthandler.disable()
            os.close(fd)

    def _register(self) -> None:
        import faulthandler

        free = _free()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._fd = _lifted(os.open(self._path, flags, 0o600))
        if free is not None:
            faulthandler.register(free, file=self._fd, all_threads=True)
            self.signal = free

    def _enable(self, patches: Patches) -> None:
        """Keep the trace of a fatal signal, unless somebody handles one of them already."""
        import faulthandler

        handled = _signals("SigCgt") | _signals("SigIgn")
        if faulthandler.is_enabled() or any(getattr(signal, name) in handled for name in FATAL):
            return
        faulthandler.enable(file=self._fd, all_threads=True)
        self.fatal = True

        def enable(original: Any) -> Any:
            def wrapped(*args: Any, **kwargs: Any) -> Any:
                self.fatal = False  # theirs from now on, into their file
                return original(*args, **kwargs)

            return wrapped

        # A program that asks first must not be told that it need not.
        patches.replace(faulthandler, "is_enabled", lambda original: lambda: not self.fatal and original())
        patches.replace(faulthandler, "enable", enable)


def leave_traces(recorder: Recorder, patches: Patches, path: str, agent: int | None) -> Faults:
    """Register all of it, tell the agent how to ask, and watch that it stays ours.

    Args:
        path: the file for the stacks.
        agent: the agent's process id, where it is known.
    """
    faults = Faults(path, patches)
    faults.permitted = permit(agent)
    recorder.event("faults", **faults.description())

    def watch() -> None:
        if faults.taken():
            recorder.event("faults", **faults.description())

    recorder.watchers.append(watch)
    return faults


def permit(agent: int | None, scope: Path = _YAMA) -> bool:
    """Where only parents may look into a process (Yama's ptrace_scope 1), let the agent, and what it starts.

    Returns whether that was asked for.
    """
    try:
        if agent is None or scope.read_text().strip() != "1":
            return False
        return _prctl(agent)
    except (OSError, AttributeError, ValueError):
        return False


def forbid() -> None:
    """Take back what `permit` gave."""
    with contextlib.suppress(OSError, AttributeError):
        _prctl(0)


def _prctl(tracer: int) -> bool:
    zero = ctypes.c_ulong(0)
    done: int = ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(tracer), zero, zero, zero)
    return done == 0


def _free() -> int | None:
    """A real-time signal that nobody here handles, ignores or holds back."""
    if not hasattr(signal, "SIGRTMIN") or not sys.platform.startswith("linux"):
        return None
    used = _signals("SigCgt") | _signals("SigIgn") | _signals("SigBlk")
    first = signal.SIGRTMIN + FIRST
    candidates = range(first, min(first + TRIES, signal.SIGRTMAX + 1))
    return next((number for number in candidates if number not in used), None)


def _signals(field: str) -> set[int]:
    """Signal numbers in a field of /proc/self/status, which also knows handlers that are not Python's."""
    with open("/proc/self/status") as file:
        mask = next((int(line.split()[1], 16) for line in file if line.startswith(field)), 0)
    return {number for number in range(1, 65) if mask >> (number - 1) & 1}


def _lifted(fd: int) -> int:
    """The same file under a high number, where there are so many."""
    try:
        import fcntl

        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH_FD)
    except (ImportError, OSError, ValueError):
        return fd
    os.close(fd)
    return high
