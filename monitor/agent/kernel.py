"""What the kernel says a process waits for, in its own words and in ours; and what troubles the machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial

from monitor.agent import proc
from monitor.agent.bounded_io import within

#: Share of the last ten seconds, in percent, in which every process waited for memory, from which on a
#: machine counts as swapping (own; the kernel's pressure files, Linux 4.20 and later).
SWAPPING_PERCENT = 10.0
#: A disk with less room than this is full.
FULL_BYTES = 1 << 20
#: A file system that takes longer to say so is not asked again.
ASK_S = 0.2

#: System call -> what it waits for, and its number on x86-64 and on aarch64; None where it does not exist.
#: poll, select and epoll are what Python waits for a socket with that has a timeout.
_CALLS: dict[str, tuple[str, int | None, int | None]] = {
    "read": ("reading", 0, 63),
    "readv": ("reading", 19, 65),
    "pread64": ("reading", 17, 67),
    "write": ("writing", 1, 64),
    "writev": ("writing", 20, 66),
    "pwrite64": ("writing", 18, 68),
    "fsync": ("writing", 74, 82),
    "fdatasync": ("writing", 75, 83),
    "sync": ("writing", 162, 81),
    "connect": ("socket", 42, 203),
    "accept": ("socket", 43, 202),
    "accept4": ("socket", 288, 242),
    "sendto": ("socket", 44, 206),
    "recvfrom": ("socket", 45, 207),
    "sendmsg": ("socket", 46, 211),
    "recvmsg": ("socket", 47, 212),
    "recvmmsg": ("socket", 299, 243),
    "poll": ("socket", 7, None),
    "ppoll": ("socket", 271, 73),
    "select": ("socket", 23, None),
    "pselect6": ("socket", 270, 72),
    "epoll_wait": ("socket", 232, None),
    "epoll_pwait": ("socket", 281, 22),
    "futex": ("lock", 202, 98),
    "flock": ("lock", 73, 32),
    "fcntl": ("lock", 72, 25),
    "semop": ("lock", 65, 193),
    "semtimedop": ("lock", 220, 192),
    "nanosleep": ("sleep", 35, 101),
    "clock_nanosleep": ("sleep", 230, 115),
    "wait4": ("child", 61, 260),
    "waitid": ("child", 247, 95),
    "ioctl": ("device", 16, 29),
}
_COLUMN = {"x86_64": 1, "aarch64": 2}.get(os.uname().machine if hasattr(os, "uname") else "", 0)
_NAMES = {str(call[_COLUMN]): name for name, call in _CALLS.items()} if _COLUMN else {}


@dataclass(frozen=True)
class Waits:
    """Where the main thread is in the kernel, as far as this user may see it.

    Attributes:
        what: reading, writing, socket, lock, sleep, child, device; "" when it says nothing.
        call: the system call by name, or by number where it has no name here; "" when unknown.
        channel: the kernel function it sleeps in; "" when unknown.
    """

    what: str = ""
    call: str = ""
    channel: str = ""

    @property
    def words(self) -> str:
        """ " (ioctl, nv_poll)"; "" where nothing is known."""
        known = ", ".join(part for part in (self.call, self.channel) if part)
        return f" ({known})" if known else ""

    def plain(self) -> dict[str, str]:
        """As it stands in an event."""
        waits = {"wchan": self.channel, "syscall": self.call}
        return {key: value for key, value in waits.items() if value}


NOWHERE = Waits()


def waits(pid: int) -> Waits:
    """What a process's main thread waits for."""
    found = proc.waiting_in(pid)
    number = found.get("syscall", "")
    name = _NAMES.get(number, "")
    # "running" is no system call; -1 is the kernel's word for a thread that waits outside of one.
    call = name or (f"system call {number}" if number.isdigit() else "")
    return Waits(_CALLS[name][0] if name else "", call, found.get("wchan", ""))


def trouble(pid: int) -> str | None:
    """What is wrong with the machine that may keep this process waiting: no memory, a full disk."""
    pressure = _pressure()
    if pressure is not None and pressure >= SWAPPING_PERCENT:
        return f"the machine is short of memory: everything waited for it {pressure:.0f} % of the time"
    paths = (f"/proc/{pid}/cwd", "/dev/shm", "/tmp")  # noqa: S108
    full = [path for path in paths if within(ASK_S, partial(_full, path), False)]
    named = [_target(path) for path in full]
    return f"no room left: {', '.join(dict.fromkeys(named))}" if named else None


def _pressure(path: str = "/proc/pressure/memory") -> float | None:
    for line in (proc.read(path) or b"").decode(errors="replace").splitlines():
        word, _, rest = line.partition(" ")
        if word == "full" and rest.startswith("avg10="):
            try:
                return float(rest.split()[0].partition("=")[2])
            except ValueError:
                return None
    return None


def _full(path: str) -> bool:
    found = os.statvfs(path)
    return found.f_blocks > 0 and found.f_bavail * found.f_frsize < FULL_BYTES


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return path
