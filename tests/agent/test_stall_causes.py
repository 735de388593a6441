"""What keeps a rank from its next step, from made-up scenes; the real ones are in test_stalls."""

from __future__ import annotations

import os

import pytest

from monitor.agent import kernel, stall_causes
from monitor.agent.kernel import Waits
from monitor.agent.stacks import Frame, Stacks, Thread
from monitor.agent.stall_causes import Seen, StallContext, find

LIB = "/usr/lib/python3.11/"
SITE = LIB + "site-packages/"

EVENT = (LIB + "threading.py",)
NEXT = (LIB + "queue.py", SITE + "torch/utils/data/dataloader.py")
ENGINE = (SITE + "torch/autograd/graph.py",)
COLLECTIVE = (SITE + "torch/distributed/distributed_c10d.py",)
IDLE = (
    LIB + "multiprocessing/connection.py",
    LIB + "multiprocessing/queues.py",
    SITE + "torch/utils/data/_utils/worker.py",
)
USER = ("/me/data.py", SITE + "torch/utils/data/_utils/worker.py")


def seen(
    files: tuple[str, ...], state: str = "S", *, holds: bool = False, syscall: str = "", pid: int = 1
) -> Seen:
    """A process whose main thread has these files on its stack, innermost first."""
    frames = tuple(Frame(file, 7, "f") for file in files)
    found = Waits(kernel._CALLS[syscall][0], syscall) if syscall else Waits()
    return Seen(Stacks(pid, (Thread("MainThread", pid, state == "R", holds, frames),)), state, found)


def trainer(*files: str, **more: object) -> Seen:
    return seen((*files, "/me/train.py"), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("context", "code", "file"),
    [
        (StallContext("forward", trainer(state="T")), "stopped", "/me/train.py"),
        (StallContext("data", trainer(*NEXT), (seen(USER),)), "worker_hung", "/me/data.py"),
        (StallContext("data", trainer(*NEXT), (seen(USER), seen(IDLE))), "worker_hung", "/me/data.py"),
        (StallContext("data", trainer(*NEXT), (seen(IDLE),)), "workers_idle", "/me/train.py"),
        (StallContext("data", trainer(*NEXT), (seen(USER, "T"),)), "worker_stopped", "/me/train.py"),
        (StallContext("data", trainer(*NEXT), (), workers_gone=1), "worker_gone", "/me/train.py"),
        (StallContext("data", trainer("/me/data.py", *NEXT[1:])), "loader", "/me/data.py"),
        (StallContext("backward", trainer(*ENGINE), ranks=2), "collective", "/me/train.py"),
        (StallContext("comm", trainer(*COLLECTIVE), ranks=2), "collective", "/me/train.py"),
        (StallContext("backward", trainer(*ENGINE), ranks=1), "waits", "/me/train.py"),
        (StallContext("backward", trainer(*ENGINE, state="R"), ranks=2), "busy", "/me/train.py"),
        (StallContext("other", trainer(holds=True)), "frozen", "/me/train.py"),
        (StallContext("other", trainer(LIB + "socket.py")), "socket", "/me/train.py"),
        (StallContext("backward", trainer(*EVENT)), "lock", "/me/train.py"),
        (StallContext("checkpoint", trainer(state="D")), "disk", "/me/train.py"),
        (StallContext("other", trainer(state="R", holds=True)), "busy", "/me/train.py"),
        (StallContext("other", seen((LIB + "x.py",))), "waits", LIB + "x.py"),
    ],
)
def test_causes(context: StallContext, code: str, file: str) -> None:
    """Each scene has one cause, and the line to look at is the user's where there is one."""
    found = find(context)
    assert found.frame is not None
    assert (found.code, found.frame.file) == (code, file)


def test_several_workers_at_one_lock() -> None:
    """All of them waiting for a lock is a deadlock between them, not one that hangs."""
    lock = ("/me/data.py", LIB + "multiprocessing/synchronize.py")[::-1]
    context = StallContext("data", trainer(*NEXT), (seen(lock), seen(lock)))
    assert find(context).code == "workers_locked"


@pytest.mark.parametrize(
    ("syscall", "code"),
    [
        ("recvfrom", "socket"),
        ("poll", "socket"),
        ("futex", "lock"),
        ("read", "reading"),
        ("fsync", "writing"),
        ("clock_nanosleep", "sleep"),
        ("wait4", "child"),
        ("ioctl", "device"),
        ("", "waits"),
    ],
)
def test_native_waits_are_told_by_the_system_call(syscall: str, code: str) -> None:
    """Where no frame of Python says what is waited for, the kernel does: recvfrom, poll, futex, …"""
    assert find(StallContext("other", trainer(syscall=syscall))).code == code


def test_without_a_stack_that_is_said() -> None:
    """No permission, no stack: the cause is unknown, why stands there, and what the kernel still knows."""
    waiting = Waits("device", "ioctl", "nv_wait")
    found = find(StallContext("data", Seen(Stacks(1, why="Permission denied"), "S", waiting)))
    assert (found.code, found.frame) == ("unknown", None)
    assert found.text == "no stack: Permission denied; it waits for a device driver (ioctl, nv_wait)"


def test_a_person_at_a_debugger_is_no_fault() -> None:
    """Whatever the debugger waits in, it is named as such."""
    assert find(StallContext("other", trainer(LIB + "cmd.py", LIB + "pdb.py"))).code == "debugger"


def test_a_compiler_at_work_is_known() -> None:
    """Compiling is told from running what was compiled."""
    at_work = trainer(LIB + "subprocess.py", SITE + "torch/_inductor/async_compile.py").stacks
    running = trainer(SITE + "torch/_dynamo/eval_frame.py").stacks
    assert (stall_causes.compiling(at_work), stall_causes.compiling(running)) == (True, False)


def test_looking_at_this_process() -> None:
    """State and stacks of a real one; one that is gone has neither."""
    here, gone = stall_causes.inspect_processes([os.getpid(), 2**22 + 1])
    assert here.state in ("R", "S")
    assert (gone.state, gone.stacks.threads) == ("", ())
