"""Stacks without py-spy: real processes answer a signal, and none is sent to who would die of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import until

from monitor.agent import faults, proc, stacks
from monitor.agent.faults import Faults, ask, last_words, parse, registered
from monitor.agent.stacks import Frame

HERE = Path(__file__).parent

SCRIPT = """
import os, sys, time, hangs
from monitor.probe.faults import Faults
from monitor.probe.patches import Patches
told = Faults(sys.argv[1], Patches()).description()
child = os.fork() if sys.argv[3:] else 1
os.write(1, f'{child} {told["signal"]} {told["fd"]} {told["main"]}\\n'.encode())
hangs.HANGS[sys.argv[3 if not child else 2]]()
"""


class Rank:
    """A process that has registered, hangs, and perhaps has a forked worker that hangs elsewhere."""

    def __init__(self, path: Path, *hangs: str) -> None:
        command = [sys.executable, "-c", SCRIPT, str(path), *hangs]
        self.process = subprocess.Popen(command, cwd=HERE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.pid = self.process.pid
        lines = [self.process.stdout.readline().split() for _ in hangs]
        self.worker = max(int(line[0]) for line in lines)
        number, fd, main = map(int, lines[0][1:])
        self.faults = Faults(number, fd, path, main)

    def end(self) -> None:
        for pid in {self.pid, self.worker} - {1}:
            os.kill(pid, signal.SIGKILL)
        self.process.communicate()


@pytest.fixture
def rank(tmp_path: Path) -> Iterator[Callable[..., Rank]]:
    made: list[Rank] = []

    def make(*hangs: str) -> Rank:
        made.append(Rank(tmp_path / "stacks", *hangs))
        return made[-1]

    yield make
    for each in made:
        each.end()


def settled(pid: int, asked: Faults, func: str) -> stacks.Stacks:
    """Stacks once the main thread is inside `func`."""

    def inside() -> stacks.Stacks | None:
        found = ask(pid, asked)
        return found if found.main and found.main.own and found.main.own.func == func else None

    return until(inside, f"stacks in {func}")


@pytest.mark.parametrize("hang", ["event", "frozen", "reading"])
def test_the_user_s_line_is_found(rank: Callable[..., Rank], hang: str) -> None:
    """Also while the interpreter is frozen; the process neither dies nor notices."""
    made = rank(hang)
    found = settled(made.pid, made.faults, hang)
    assert found.main is not None
    assert found.main.own is not None
    assert found.main.own.file.endswith("hangs.py")
    assert made.process.poll() is None


def test_a_forked_worker_answers_for_itself(rank: Callable[..., Rank]) -> None:
    """Into the same file, asked one after the other: each has its own stack."""
    made = rank("event", "sleeping")
    assert settled(made.worker, made.faults, "sleeping").pid == made.worker
    assert settled(made.pid, made.faults, "event").pid == made.pid


def test_nobody_is_killed_by_being_asked(tmp_path: Path) -> None:
    """A process that never registered, of which the signal would be the end, does not get it."""
    path = tmp_path / "stacks"
    path.touch()
    with subprocess.Popen(["sleep", "60"]) as process:
        found = ask(process.pid, Faults(39, 500, path, 0))
        assert (found.threads, found.why) == ((), "it has not registered the signal")
        assert process.poll() is None
        process.kill()


def in_states(monkeypatch: pytest.MonkeyPatch, states: str) -> None:
    """Everybody is seen in these states one after the other, then in the last one for good."""
    real, left = proc.signals, list(states)

    def signals(pid: int) -> proc.Signals | None:
        found = real(pid)
        state = left.pop(0) if len(left) > 1 else left[0]
        return None if found is None else replace(found, state=state)

    monkeypatch.setattr(faults.proc, "signals", signals)


def test_who_has_just_begun_has_not_registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while a page of its program comes from the disk: what will stay so is said first."""
    in_states(monkeypatch, "D")
    found = ask(os.getpid(), Faults(39, 500, tmp_path, 0))
    assert found.why == "it has not registered the signal"


def test_a_page_fault_is_waited_out(
    rank: Callable[..., Rank], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lasts for moments; who stays in the kernel is not asked."""
    made = rank("sleeping")
    in_states(monkeypatch, "DDS")
    assert ask(made.pid, made.faults).threads
    in_states(monkeypatch, "D")
    assert "no signal reaches it" in (ask(made.pid, made.faults).why or "")


def test_who_closed_the_file_is_not_asked(rank: Callable[..., Rank], tmp_path: Path) -> None:
    """Its number may be some other file by now, which nobody may write into."""
    made = rank("sleeping")
    other = tmp_path / "other"
    other.touch()
    found = ask(made.pid, Faults(made.faults.signal, made.faults.fd, other, 0))
    assert (found.why, other.read_text()) == ("it no longer holds the file open", "")


def test_who_cannot_answer_is_not_asked(rank: Callable[..., Rank]) -> None:
    """A stopped process would answer much later, and a detached one not at all."""
    made = rank("sleeping")
    assert ask(made.pid, made.faults, lambda: True).why == "it has detached"
    made.process.send_signal(signal.SIGSTOP)
    until(lambda: "stopped" in (ask(made.pid, made.faults).why or ""), "its stop")
    made.process.send_signal(signal.SIGCONT)
    assert made.process.poll() is None


def test_nobody_there_is_a_reason(tmp_path: Path) -> None:
    """No such process, or no signal told of."""
    for asked in (Faults(39, 500, tmp_path / "none", 0), Faults(None, 500, tmp_path / "none", 0)):
        assert ask(2**22 + 1, asked).why == "no signal to ask it by"
    assert ask(os.getpid(), Faults(None, 500, tmp_path / "none", 0)).why == "no signal to ask it by"


TEXT = """Thread 0x00007f20e69286c0 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 982 in run
  ...

Current thread 0x00007f20e767fb80 [pt_main] (most recent call first):
  File "/me/tr\\xe4in \\u4f60.py", line 6 in f
  File "<stdin>", line ??? in <module>
"""


def test_the_text_is_read() -> None:
    """The main thread first, by its identity; letters that are not ASCII as they were."""
    found = parse(7, TEXT, 0x7F20E767FB80)
    assert [thread.name for thread in found.threads] == ["MainThread", ""]
    assert found.main is not None
    assert found.main.frames == (Frame("/me/träin 你.py", 6, "f"), Frame("<stdin>", 0, "<module>"))
    other = parse(7, TEXT, 0x7F20E69286C0)
    assert other.main is not None
    assert other.main.frames[0].func == "run"


def test_an_unknown_main_thread_is_the_oldest() -> None:
    """Threads are listed newest first."""
    found = parse(7, TEXT, 0)
    assert found.main is not None
    assert found.main.frames[0].func == "f"


@settings(deadline=None)
@given(st.text() | st.text(alphabet='Threadcurnt 0x1f[]():\n File", line in \\u').map(lambda t: TEXT + t))
def test_no_text_is_misread(text: str) -> None:
    """Whatever stands there: stacks, or a reason."""
    found = parse(7, text, 1)
    assert bool(found.threads) != bool(found.why)


@pytest.mark.parametrize(
    "event",
    [{}, {"fd": 5, "file": "../../x"}, {"fd": "5", "file": "x"}, {"fd": 5}],
)
def test_a_registration_that_makes_no_sense_is_none(event: dict[str, Any], tmp_path: Path) -> None:
    """It comes from another process; no path of its choosing is opened."""
    assert registered(event, tmp_path) is None


def test_a_registration(tmp_path: Path) -> None:
    """Signal, descriptor, file below the spool, main thread; a signal that is none is none."""
    told = {"signal": 39, "fd": 500, "file": "rank-0-1.stacks", "main": 11}
    assert registered(told, tmp_path) == Faults(39, 500, tmp_path / "rank-0-1.stacks", 11)
    assert registered({**told, "signal": 0}, tmp_path) == Faults(None, 500, tmp_path / "rank-0-1.stacks", 11)


FATAL = """Fatal Python error: Aborted

Current thread 0x0000000000000001 (most recent call first):
  File "/me/worker.py", line 1 in work
Fatal Python error: Segmentation fault

Thread 0x0000000000000002 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 982 in run

Current thread 0x0000000000000001 (most recent call first):
  File "/usr/lib/python3.11/ctypes/__init__.py", line 9 in memset
  File "/me/train.py", line 33 in step
"""


def test_last_words(tmp_path: Path) -> None:
    """Of the last crash of that kind: the trace, and the user's innermost line in the thread that crashed."""
    left = Faults(39, 500, tmp_path / "stacks", 1)
    assert last_words(left, signal.SIGSEGV) == {}
    left.file.write_text(FATAL)
    found = last_words(left, signal.SIGSEGV)
    assert found["frame"] == Frame("/me/train.py", 33, "step")
    assert found["trace"].startswith("Fatal Python error: Segmentation fault\n")
    assert last_words(left, signal.SIGABRT)["frame"] == Frame("/me/worker.py", 1, "work")
    assert [last_words(*args) for args in ((left, signal.SIGKILL), (left, None), (None, 11))] == [{}] * 3
    assert faults.TRACE_CHARS > 0
