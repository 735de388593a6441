"""What /proc says of a process. Everything is None where it cannot be read, never a made-up value."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

#: Clock ticks a second, the unit of CPU times in /proc.
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
#: Name that torch gives to the processes of a DataLoader.
WORKER_NAME = "pt_data_worker"
#: Signals are numbered from 1 to this.
SIGNALS = 64
#: Descendants followed at most; a process that starts more is not a training script.
MAX_DESCENDANTS = 4096


@dataclass(frozen=True)
class Stat:
    """Some fields of /proc/PID/stat (proc(5)).

    Attributes:
        state: R, S, D, T, Z …
        cpu_s: user and system time, of all threads where a process was asked for.
        start_ticks: with the pid, names this process and no later one.
        rss_bytes: resident memory.
        blkio_ticks: time the main thread waited for block devices; counted only where the kernel's
            delay accounting is on.
        exit_status: as `wait` gives it; meaningful for a zombie.
    """

    name: str
    state: str
    parent: int
    cpu_s: float
    threads: int
    start_ticks: int
    rss_bytes: int
    blkio_ticks: int
    exit_status: int


@dataclass(frozen=True)
class Signals:
    """Of /proc/PID/status: the main thread's state, the tracer's pid (0: none), and sets of signal numbers.

    Attributes:
        caught: those that the process handles.
        pending: those sent and not yet taken, to the process or its main thread.
    """

    state: str
    tracer: int
    caught: frozenset[int]
    pending: frozenset[int]


def read(path: str) -> bytes | None:
    """A file's content; None where it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        parts = []
        while part := os.read(fd, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    except OSError:
        return None
    finally:
        os.close(fd)


def stat(pid: int, *, thread: int | None = None) -> Stat | None:
    """One process, or one of its threads; None when it is gone or there is no /proc."""
    raw = read(f"/proc/{pid}/stat" if thread is None else f"/proc/{pid}/task/{thread}/stat")
    if raw is None:
        return None
    # The name may hold spaces and brackets: fields are counted behind its last bracket.
    head, _, tail = raw.rpartition(b")")
    try:
        f = tail.split()
        return Stat(
            name=head.partition(b"(")[2].decode(errors="replace"),
            state=f[0].decode(),
            parent=int(f[1]),
            cpu_s=(int(f[11]) + int(f[12])) / TICKS,
            threads=int(f[17]),
            start_ticks=int(f[19]),
            rss_bytes=int(f[21]) * PAGE_BYTES,
            blkio_ticks=int(f[39]),
            exit_status=int(f[49]),
        )
    except (IndexError, ValueError):
        return None


def signals(pid: int) -> Signals | None:
    """How a process stands with signals; None when it is gone or there is no /proc."""
    raw = read(f"/proc/{pid}/status")
    if raw is None:
        return None
    fields = dict(line.split(":", 1) for line in raw.decode(errors="replace").splitlines() if ":" in line)
    try:
        return Signals(
            fields["State"].split()[0],
            int(fields["TracerPid"]),
            _numbers(fields["SigCgt"]),
            _numbers(fields["SigPnd"]) | _numbers(fields["ShdPnd"]),
        )
    except (KeyError, IndexError, ValueError):
        return None


def _numbers(mask: str) -> frozenset[int]:
    bits = int(mask, 16)
    return frozenset(number for number in range(1, SIGNALS + 1) if bits >> (number - 1) & 1)


def is_same(pid: int, start_ticks: int) -> bool:
    """Whether `pid` is (still, or as a zombie) the process that started at `start_ticks`."""
    found = stat(pid)
    return found is not None and start_ticks in (0, found.start_ticks)


def run_queue_ns(pid: int) -> int | None:
    """How long the main thread has been runnable without a CPU, in all its life (schedstat, field 2)."""
    raw = read(f"/proc/{pid}/task/{pid}/schedstat")
    try:
        return int(raw.split()[1]) if raw else None
    except (IndexError, ValueError):
        return None


def delay_accounting() -> bool:
    """Whether the kernel counts waiting for block devices (off by default since Linux 5.14)."""
    switch = read("/proc/sys/kernel/task_delayacct")
    return switch is None or switch.strip() != b"0"


def children(pid: int) -> list[int]:
    """Its direct children, by whichever thread they were started."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    found = (read(f"/proc/{pid}/task/{thread}/children") or b"" for thread in threads)
    return [int(child) for text in found for child in text.split()]


def descendants(pid: int, without: frozenset[int] = frozenset()) -> list[int]:
    """All processes below `pid`, not entering those in `without`."""
    found: list[int] = []
    todo = [pid]
    while todo and len(found) < MAX_DESCENDANTS:
        below = [child for child in children(todo.pop()) if child not in without]
        found.extend(below)
        todo.extend(below)
    return found


def environment(pid: int) -> dict[str, str] | None:
    """The environment it was started with; what it changed later is not seen."""
    raw = read(f"/proc/{pid}/environ")
    if raw is None:
        return None
    pairs = (part.decode(errors="replace").partition("=") for part in raw.split(b"\0") if part)
    return {key: value for key, _, value in pairs}


def command_line(pid: int) -> list[str]:
    """Its arguments; empty when it is gone."""
    raw = read(f"/proc/{pid}/cmdline") or b""
    return [part.decode(errors="replace") for part in raw.split(b"\0")[:-1]]


def pss_bytes(pid: int) -> int | None:
    """Proportional memory: shared pages count in parts, so a tree's sum is its true size. Costs ms."""
    raw = read(f"/proc/{pid}/smaps_rollup")
    for line in (raw or b"").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return None


def file_bytes(pid: int) -> int:
    """Bytes that a process has read and written, by system calls or (where that is more) from and to disks
    alone, as a mapped file is; 0 where this user may not know.
    """
    lines = (read(f"/proc/{pid}/io") or b"").decode().splitlines()
    counts = {name: int(value) for name, _, value in (line.partition(": ") for line in lines)}
    calls = counts.get("rchar", 0) + counts.get("wchar", 0)
    return max(calls, counts.get("read_bytes", 0) + counts.get("write_bytes", 0))


def holds_gpu(pid: int) -> bool:
    """Whether a process has a GPU's device open (NVIDIA's, or AMD's compute interface)."""
    with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
        for fd in entries:
            with contextlib.suppress(OSError):
                if os.readlink(fd.path).startswith(("/dev/nvidia", "/dev/kfd")):
                    return True
    return False


def waiting_in(pid: int) -> dict[str, str]:
    """Kernel function and system call the main thread waits in, as far as this user may see them."""
    wchan = (read(f"/proc/{pid}/wchan") or b"").decode(errors="replace").strip()
    syscall = (read(f"/proc/{pid}/syscall") or b"").decode(errors="replace").split()
    found = {"wchan": wchan if wchan != "0" else "", "syscall": syscall[0] if syscall else ""}
    return {key: value for key, value in found.items() if value}
