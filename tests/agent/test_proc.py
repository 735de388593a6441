"""/proc, read as it is: checked against what the process knows of itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import until

from monitor.agent import proc


@pytest.fixture
def child() -> Iterator[subprocess.Popen[str]]:
    """A child that waits for a line, with a child of its own; ready."""
    script = (
        "import subprocess, sys; c = subprocess.Popen(['sleep', '60']);"
        "print(c.pid, flush=True); sys.stdin.readline(); c.kill()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, "an argument"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "SEEN": "yes=1"},
    ) as process:
        yield process
        process.communicate("\n")


def test_stat_of_this_process() -> None:
    """Parent, threads and memory are those the process itself is told."""
    found = proc.stat(os.getpid())
    assert found is not None
    assert (found.parent, found.threads) == (os.getppid(), len(os.listdir("/proc/self/task")))
    assert found.rss_bytes > 1_000_000
    assert found.cpu_s == pytest.approx(sum(os.times()[:2]), abs=0.2)


def test_a_name_with_brackets_and_spaces_shifts_nothing() -> None:
    """The name is the process's own choice; the fields behind it are found all the same."""
    script = "open('/proc/self/comm', 'w').write('a) (b c'); print(1, flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", script], **pipes) as process:  # type: ignore[call-overload]
        process.stdout.readline()
        found = proc.stat(process.pid)
        process.communicate(b"\n")
    assert found is not None
    assert (found.name, found.parent) == ("a) (b c", os.getpid())


def test_what_is_gone_is_none() -> None:
    """No reader raises or makes up a number for a process that does not exist."""
    gone = 2**22 + 1
    assert proc.stat(gone) is None
    assert proc.run_queue_ns(gone) is None
    assert proc.environment(gone) is None
    assert proc.pss_bytes(gone) is None
    assert proc.command_line(gone) == proc.children(gone) == []
    assert proc.waiting_in(gone) == {}


def test_a_later_process_is_another(child: subprocess.Popen[str]) -> None:
    """The same number with another start time is not the same process."""
    found = proc.stat(child.pid)
    assert found is not None
    assert proc.is_same(child.pid, found.start_ticks)
    assert not proc.is_same(child.pid, found.start_ticks + 1)


def test_descendants_reach_grandchildren(child: subprocess.Popen[str]) -> None:
    """The tree is walked to its leaves, but not into what is excluded."""
    assert child.stdout is not None
    grandchild = int(child.stdout.readline())
    assert {child.pid, grandchild} <= set(proc.descendants(os.getpid()))
    assert grandchild not in proc.descendants(os.getpid(), frozenset({child.pid}))


def test_children_of_every_thread() -> None:
    """A child is found whichever thread started it."""
    found: list[subprocess.Popen[bytes]] = []
    done = threading.Event()

    def start() -> None:
        found.append(subprocess.Popen(["sleep", "60"]))
        done.wait(10)

    thread = threading.Thread(target=start)
    thread.start()
    until(lambda: bool(found))
    try:
        assert found[0].pid in proc.children(os.getpid())
    finally:
        done.set()
        thread.join()
        found[0].kill()
        found[0].wait()


def test_environment_and_arguments(child: subprocess.Popen[str]) -> None:
    """Both as the process was started with them."""
    assert child.stdout is not None
    child.stdout.readline()
    assert (proc.environment(child.pid) or {})["SEEN"] == "yes=1"
    assert proc.command_line(child.pid)[-1] == "an argument"


def test_proportional_memory_is_no_more_than_resident() -> None:
    """Shared pages count in parts."""
    found = proc.stat(os.getpid())
    pss = proc.pss_bytes(os.getpid())
    assert found is not None
    assert pss is not None
    assert 1_000_000 < pss <= found.rss_bytes * 1.05


def test_the_run_queue_only_grows() -> None:
    """Time spent runnable without a CPU is a count since the process began."""
    before = proc.run_queue_ns(os.getpid())
    if before is None:
        pytest.skip("this kernel does not count it")
    after = proc.run_queue_ns(os.getpid())
    assert after is not None
    assert 0 <= before <= after


def test_where_a_process_waits(child: subprocess.Popen[str]) -> None:
    """A child that reads from a pipe is seen in its system call, where the kernel tells."""
    assert child.stdout is not None
    child.stdout.readline()
    waiting = proc.waiting_in(child.pid)
    assert set(waiting) <= {"wchan", "syscall"}
    assert all(isinstance(value, str) and value for value in waiting.values())


def test_how_a_process_stands_with_signals() -> None:
    """Handled and pending ones by number; None for one that is gone."""
    code = "import signal, time; signal.signal(40, lambda *_: None); print(1, flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = proc.signals(process.pid)
        process.send_signal(signal.SIGSTOP)
        until(lambda: (now := proc.signals(process.pid)) and now.state == "T", "its stop")
        process.send_signal(40)
        pending = proc.signals(process.pid)
        process.kill()
    assert found is not None
    assert 40 in found.caught
    assert (found.pending, found.tracer) == (frozenset(), 0)
    assert pending is not None
    assert 40 in pending.pending
    assert proc.signals(2**22 + 1) is None


def test_bytes_from_and_to_files(tmp_path: Path) -> None:
    """What this process has just written is counted; of a process that is gone nothing is known."""
    before = proc.file_bytes(os.getpid())
    (tmp_path / "file").write_bytes(b"x" * 1_000_000)
    assert proc.file_bytes(os.getpid()) - before >= 1_000_000
    assert proc.file_bytes(2**22 + 1) == 0


def test_who_holds_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that is open tells; nobody else's files do."""
    if not any(Path("/dev").glob("nvidia*")):
        assert not proc.holds_gpu(os.getpid())
    readlink = os.readlink
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        place = readlink(f"/proc/self/fd/{fd}")
        named = {place: "/dev/nvidia0"}
        monkeypatch.setattr(os, "readlink", lambda path: named.get(readlink(path), readlink(path)))
        assert proc.holds_gpu(os.getpid())
    finally:
        os.close(fd)
    assert not proc.holds_gpu(2**22 + 1)
