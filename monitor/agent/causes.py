"""Why a rank makes no progress: told from its stacks, its workers' and the kernel's view of them."""

from __future__ import annotations

import os
from dataclasses import dataclass

from monitor.agent import proc
from monitor.agent.stacks import Frame, Stacks, Thread, take

LOADER = "torch/utils/data/"
#: Where a compiler works; nothing that takes minutes there is a stall. Compiled code runs through other
#: files of the same packages.
COMPILERS = (
    "torch/_dynamo/convert_frame",
    "torch/_dynamo/symbolic_convert",
    "torch/_dynamo/output_graph",
    "torch/_inductor/compile_fx",
    "torch/_inductor/async_compile",
    "torch/_inductor/select_algorithm",
    "torch/_inductor/runtime/triton_heuristics",
    "/triton/compiler/",
)
_AUTOGRAD = ("torch/autograd/graph.py", "torch/autograd/__init__.py")
_DISTRIBUTED = "torch/distributed/"
_LOCKS = ("/threading.py", "multiprocessing/synchronize.py", "/queue.py")
_QUEUES = ("multiprocessing/queues.py", "multiprocessing/connection.py")
_SOCKETS = ("/socket.py", "/ssl.py", "/http/client.py", "multiprocessing/connection.py")

#: System calls that say what native code waits for, by the machine's own numbers. Sockets: accept,
#: connect, recvfrom, recvmsg, recvmmsg, accept4, and poll, select and epoll, with which Python waits for
#: a socket that has a timeout. Sleep: nanosleep, clock_nanosleep.
_MACHINE = os.uname().machine if hasattr(os, "uname") else ""
_CALLS = {
    "x86_64": {
        "socket": "42 43 45 47 288 299 7 23 232 270 271 281",
        "lock": "202",
        "reading": "0 17 19",
        "sleep": "35 230",
    },
    "aarch64": {
        "socket": "202 203 207 212 242 243 22 72 73",
        "lock": "98",
        "reading": "63 65 67",
        "sleep": "101 115",
    },
}.get(_MACHINE, {})
_WAITS_FOR = {number: what for what, numbers in _CALLS.items() for number in numbers.split()}


@dataclass(frozen=True)
class Seen:
    """One process at the moment of looking.

    Attributes:
        stacks: its threads.
        state: /proc's letter of the main thread (R, S, D, T …); "" when unknown.
        syscall: number of the system call it is in; "" when unknown.
    """

    stacks: Stacks
    state: str = ""
    syscall: str = ""

    @property
    def stopped(self) -> bool:
        """Held by SIGSTOP or a debugger."""
        return self.state in ("T", "t")

    @property
    def locked(self) -> bool:
        """The main thread waits for a lock: by its innermost frame, or in the system call under it."""
        main = self.stacks.main
        return main is not None and (_inside(main, _LOCKS) or (self.waits_for == "lock" and not main.active))

    @property
    def waits_for(self) -> str:
        """socket, lock, reading, sleep, by the system call it is in; "" when it says nothing."""
        return _WAITS_FOR.get(self.syscall, "")


@dataclass(frozen=True)
class Scene:
    """A rank that makes no progress.

    Attributes:
        phase: its phase.
        main: its process.
        workers: its loader workers that live.
        workers_gone: how many were there and are not.
        ranks: ranks of the run.
    """

    phase: str | None
    main: Seen
    workers: tuple[Seen, ...] = ()
    workers_gone: int = 0
    ranks: int = 1


@dataclass(frozen=True)
class Cause:
    """Why it stands still.

    Attributes:
        code: one word for programs.
        text: in words.
        place: the line to look at; None where no line of Python is known.
    """

    code: str
    text: str
    place: Frame | None = None


def look(pids: list[int]) -> list[Seen]:
    """Stacks and kernel's view of several processes."""
    found = []
    for stacks in take(pids):
        stat = proc.stat(stacks.pid)
        syscall = proc.waiting_in(stacks.pid).get("syscall", "")
        found.append(Seen(stacks, stat.state if stat else "", syscall))
    return found


def find(scene: Scene) -> Cause:
    """The cause, as far as it can be told; the surest signs first."""
    main = scene.main.stacks.main
    place = _place(main)
    if scene.main.stopped:
        return Cause("stopped", "the process is stopped (SIGSTOP)", place)
    if main is None:
        return Cause("unknown", f"no stack: {scene.main.stacks.why or 'no main thread'}")
    if main.passes(LOADER):
        return _loader(scene, place)
    if _in_collective(scene, main):
        return Cause("collective", "waits for another rank", place)
    if main.holds_lock and scene.main.state in ("S", "D"):
        return Cause("frozen", "native code sleeps and holds the interpreter lock", place)
    return _main_thread(scene.main, main, place)


def compiling(stacks: Stacks) -> bool:
    """Whether the main thread is inside a compiler."""
    return stacks.main is not None and stacks.main.passes(*COMPILERS)


def _loader(scene: Scene, place: Frame | None) -> Cause:
    if scene.workers_gone:
        return Cause("worker_gone", f"loader workers are gone: {scene.workers_gone}", place)
    if any(worker.stopped for worker in scene.workers):
        return Cause("worker_stopped", "a loader worker is stopped (SIGSTOP)", place)
    mains = [(worker, main) for worker in scene.workers if (main := worker.stacks.main) and not _idle(main)]
    locked = [main for worker, main in mains if worker.locked]
    if len(locked) == len(scene.workers) > 1:
        return Cause("workers_locked", "all loader workers wait for a lock", _place(locked[0]))
    if mains:
        return Cause("worker_hung", "a loader worker does not come back", _place(mains[0][1]))
    if scene.workers:
        return Cause("workers_idle", "waits for the loader, whose workers have nothing to do", place)
    return Cause("loader", "loading in the main process does not come back", place)


def _idle(worker: Thread) -> bool:
    """A worker without work waits in its index queue."""
    return worker.own is None and worker.passes(*_QUEUES)


def _in_collective(scene: Scene, main: Thread) -> bool:
    if not main.frames or scene.ranks < 2:
        return False
    innermost = main.frames[0].file
    # DistributedDataParallel waits inside the autograd engine, where no frame of Python tells so.
    in_engine = any(part in innermost for part in _AUTOGRAD) and scene.main.state != "R"
    return _DISTRIBUTED in innermost or in_engine


def _main_thread(seen: Seen, main: Thread, place: Frame | None) -> Cause:
    if seen.waits_for == "socket" or _inside(main, _SOCKETS):
        return Cause("socket", "waits for a network connection", place)
    if seen.locked:
        return Cause("lock", "waits for a lock, an event or a queue", place)
    if seen.state == "D":
        return Cause("disk", "waits for a disk or network file system", place)
    if seen.state == "R":
        return Cause("busy", "computes without finishing a step", place)
    if seen.waits_for == "reading":
        return Cause("reading", "waits to read from a file, a pipe or a connection", place)
    if seen.waits_for == "sleep":
        return Cause("sleep", "sleeps", place)
    return Cause("waits", "waits in native code", place)


def _inside(thread: Thread, files: tuple[str, ...]) -> bool:
    return bool(thread.frames) and any(part in thread.frames[0].file for part in files)


def _place(main: Thread | None) -> Frame | None:
    if main is None or not main.frames:
        return None
    return main.own or main.frames[0]
