"""Why a rank makes no progress: told from its stacks, its workers' and the kernel's view of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from monitor.agent import faults, kernel, proc
from monitor.agent.faults import Faults
from monitor.agent.kernel import NOWHERE, Waits
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

_DEBUGGERS = ("/pdb.py", "/bdb.py", "/debugpy/", "/pydevd", "/_pydevd_bundle/", "/IPython/terminal/debugger")

#: What a process waits for, by the kernel's word for it, as said to a user.
_WORDS = {
    "socket": "waits for a network connection",
    "lock": "waits for a lock, an event or a queue",
    "reading": "waits to read from a file, a pipe or a connection",
    "writing": "waits to write to a file, a pipe or a connection",
    "sleep": "sleeps",
    "child": "waits for a process that it has started",
    "device": "waits for a device driver",
}


@dataclass(frozen=True)
class Seen:
    """One process at the moment of looking.

    Attributes:
        stacks: its threads.
        state: /proc's letter of the main thread (R, S, D, T …); "" when unknown.
        waits: what the kernel says that it waits for, see `kernel.Waits`.
    """

    stacks: Stacks
    state: str = ""
    waits: Waits = NOWHERE

    @property
    def stopped(self) -> bool:
        """Held by SIGSTOP or a debugger."""
        return self.state in ("T", "t")

    @property
    def locked(self) -> bool:
        """The main thread waits for a lock: by its innermost frame, or in the system call under it."""
        main = self.stacks.main
        return main is not None and (_inside(main, _LOCKS) or (self.waits.what == "lock" and not main.active))

    @property
    def native(self) -> bool:
        """No thread of Python's is to be seen, or none of the user's own code."""
        return self.stacks.main is None or self.stacks.main.own is None


@dataclass(frozen=True)
class StallContext:
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
        frame: the line to look at; None where no line of Python is known.
    """

    code: str
    text: str
    frame: Frame | None = None


def inspect_processes(
    pids: list[int], registered: Faults | None = None, closed: Callable[[], bool] = lambda: False
) -> list[Seen]:
    """Stacks and kernel's view of several processes: a rank, and workers of its own.

    Args:
        registered: how to ask those for their stacks that nobody may look into.
        closed: whether the rank has taken that back.
    """
    found = []
    for stacks in take(pids):
        if not stacks.threads and registered is not None:
            asked = faults.ask(stacks.pid, registered, closed)
            why = f"{stacks.why}; {asked.why}"
            stacks = asked if asked.threads else Stacks(stacks.pid, why=why)
        stat = proc.stat(stacks.pid)
        found.append(Seen(stacks, stat.state if stat else "", kernel.waits(stacks.pid)))
    return found


def find(context: StallContext) -> Cause:
    """The cause, as far as it can be told; the surest signs first."""
    main = context.main.stacks.main
    frame = _own_frame(main)
    if context.main.stopped:
        return Cause("stopped", "the process is stopped (SIGSTOP)", frame)
    if main is None:
        return _unseen(context.main)
    if main.passes(*_DEBUGGERS):
        return Cause("debugger", "waits for a person at a debugger", frame)
    if main.passes(LOADER):
        return _loader(context, frame)
    if _in_collective(context, main):
        return Cause("collective", "waits for another rank", frame)
    if main.holds_lock and context.main.state in ("S", "D"):
        return Cause("frozen", "native code sleeps and holds the interpreter lock", frame)
    return _main_thread(context.main, main, frame)


def compiling(stacks: Stacks) -> bool:
    """Whether the main thread is inside a compiler."""
    return stacks.main is not None and stacks.main.passes(*COMPILERS)


def _loader(context: StallContext, frame: Frame | None) -> Cause:
    if context.workers_gone:
        return Cause("worker_gone", f"loader workers are gone: {context.workers_gone}", frame)
    if any(worker.stopped for worker in context.workers):
        return Cause("worker_stopped", "a loader worker is stopped (SIGSTOP)", frame)
    mains = [(worker, main) for worker in context.workers if (main := worker.stacks.main) and not _idle(main)]
    locked = [main for worker, main in mains if worker.locked]
    if len(locked) == len(context.workers) > 1:
        return Cause("workers_locked", "all loader workers wait for a lock", _own_frame(locked[0]))
    if mains:
        return Cause("worker_hung", "a loader worker does not come back", _own_frame(mains[0][1]))
    if context.workers:
        return Cause("workers_idle", "waits for the loader, whose workers have nothing to do", frame)
    return Cause("loader", "loading in the main process does not come back", frame)


def _idle(worker: Thread) -> bool:
    """A worker without work waits in its index queue."""
    return worker.own is None and worker.passes(*_QUEUES)


def _in_collective(context: StallContext, main: Thread) -> bool:
    if not main.frames or context.ranks < 2:
        return False
    innermost = main.frames[0].file
    # DistributedDataParallel waits inside the autograd engine, where no frame of Python tells so.
    in_engine = any(part in innermost for part in _AUTOGRAD) and context.main.state != "R"
    return _DISTRIBUTED in innermost or in_engine


def _main_thread(seen: Seen, main: Thread, frame: Frame | None) -> Cause:
    if seen.waits.what == "socket" or _inside(main, _SOCKETS):
        return Cause("socket", _WORDS["socket"], frame)
    if seen.locked:
        return Cause("lock", _WORDS["lock"], frame)
    if seen.state == "D":
        return Cause("disk", "waits for a disk or network file system", frame)
    if seen.state == "R":
        return Cause("busy", "computes without finishing a step", frame)
    if seen.waits.what:
        return Cause(seen.waits.what, _WORDS[seen.waits.what], frame)
    return Cause("waits", f"waits in native code{seen.waits.words}", frame)


def _unseen(seen: Seen) -> Cause:
    """Nothing of Python is to be seen; what the kernel says is better than nothing."""
    why = seen.stacks.why or "no main thread"
    known = f"; it {_WORDS[seen.waits.what]}" if seen.waits.what else ""
    return Cause("unknown", f"no stack: {why}{known}{seen.waits.words}")


def _inside(thread: Thread, files: tuple[str, ...]) -> bool:
    return bool(thread.frames) and any(part in thread.frames[0].file for part in files)


def _own_frame(main: Thread | None) -> Frame | None:
    if main is None or not main.frames:
        return None
    return main.own or main.frames[0]
