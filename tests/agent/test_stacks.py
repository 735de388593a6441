"""Stacks of real processes, from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import finishes, until

from monitor.agent import stacks
from monitor.agent.stacks import Dump, Frame, Recording, Stacks, Thread, parse, parse_recording, short, take

HERE = Path(__file__).parent


@pytest.fixture
def hang(tmp_path: Path) -> Iterator[Callable[[str], Any]]:
    """`hang(name)` starts a process that hangs in that way."""
    if stacks.find_program() is None:
        pytest.skip("needs py-spy")
    started: list[subprocess.Popen[str]] = []

    def start(name: str) -> subprocess.Popen[str]:
        script = f"import threading, hangs; print(1, flush=True); hangs.HANGS[{name!r}]()"
        process = subprocess.Popen(
            [sys.executable, "-c", script], cwd=HERE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def settled(pid: int, func: str) -> Stacks:
    """Stacks once the main thread is inside `func`."""

    def inside() -> Stacks | None:
        (found,) = take([pid])
        return found if found.main and found.main.own and found.main.own.func == func else None

    return until(inside, f"stacks in {func}")


@pytest.mark.parametrize("name", ["event", "reading", "frozen", "bare_lock"])
def test_the_user_s_innermost_line_is_found(hang: Callable[[str], Any], name: str) -> None:
    """Whatever the thread waits in, and also while the interpreter is frozen: file, line, function."""
    found = settled(hang(name).pid, name)
    assert found.main is not None
    assert found.main.own is not None
    text = (HERE / "hangs.py").read_text().splitlines()[found.main.own.line - 1]
    assert found.main.own.file.endswith("hangs.py")
    assert "(" in text
    assert found.main.holds_lock == (name == "frozen")


def test_a_stopped_process_has_stacks_too(hang: Callable[[str], Any]) -> None:
    """SIGSTOP holds the process, not the look at it; and the look changes nothing."""
    process = hang("sleeping")
    settled(process.pid, "sleeping")
    process.send_signal(signal.SIGSTOP)
    (found,) = take([process.pid])
    process.send_signal(signal.SIGCONT)
    assert found.main is not None
    assert process.poll() is None


def test_several_at_once(hang: Callable[[str], Any]) -> None:
    """Each of several processes answers for itself, in the order asked."""
    pids = [hang("event").pid, hang("sleeping").pid]
    assert [found.pid for found in take(pids)] == pids


def test_no_process_is_a_reason() -> None:
    """Nobody there: no threads, and the reason in one line."""
    if stacks.find_program() is None:
        pytest.skip("needs py-spy")
    (found,) = take([2**22 + 1])
    assert found.threads == ()
    assert found.why is not None
    assert "\n" not in found.why


def test_what_is_no_python_is_a_reason() -> None:
    """A process without an interpreter: likewise."""
    if stacks.find_program() is None:
        pytest.skip("needs py-spy")
    with subprocess.Popen(["sleep", "60"]) as process:
        (found,) = take([process.pid])
        process.kill()
    assert (found.main, bool(found.why)) == (None, True)


def test_without_py_spy_that_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not installed, or not to be started."""
    monkeypatch.setattr(stacks, "find_program", lambda: None)
    assert take([os.getpid()])[0].why == "py-spy is not installed"
    monkeypatch.setattr(stacks, "find_program", lambda: "/nowhere/py-spy")
    assert "does not start" in (take([os.getpid()])[0].why or "")


def test_a_dump_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is killed after its time, and that is the reason."""
    program = tmp_path / "py-spy"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setattr(stacks, "find_program", lambda: str(program))
    monkeypatch.setattr(stacks, "DUMP_S", 0.1)
    dump = Dump(os.getpid())
    assert dump.result().why == "py-spy took longer than 0.1 s"
    assert dump.done()


def test_a_dump_may_be_dropped(hang: Callable[[str], Any]) -> None:
    """Nobody need wait for it."""
    dump = Dump(hang("event").pid)
    dump.drop()
    assert dump.done()


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def test_a_recording_counts_the_main_thread_s_stacks(hang: Callable[[str], Any]) -> None:
    """Twenty looks in a second, most of them at the line that takes the time, innermost first."""
    process = hang("sleeping")
    settled(process.pid, "sleeping")
    found, why = Recording(process.pid, 1, 20).result()
    assert why is None
    assert sum(count for _, count in found) > 10
    assert found[0][0].frames[0].func == "sleeping"
    assert found[0][0].frames[0].file.endswith("/hangs.py")


def test_a_recording_ends_with_its_process(hang: Callable[[str], Any]) -> None:
    """What was seen until then is kept, and nobody waits for the rest."""
    process = hang("sleeping")
    settled(process.pid, "sleeping")
    recording = Recording(process.pid, 3600, 20)
    time.sleep(1.0)
    process.kill()
    process.wait()
    found, _ = finishes(recording.result)
    assert found


def test_a_recording_of_nobody_is_a_reason() -> None:
    """No process: nothing recorded, and why."""
    if stacks.find_program() is None:
        pytest.skip("needs py-spy")
    assert Recording(2**22 + 1, 1, 20).result()[0] == []
    assert Recording(2**22 + 1, 1, 20).result()[1]


def test_recordings_are_read_line_by_line() -> None:
    """Other threads, other lines and half ones are passed over; odd names survive."""
    text = """py-spy> Sampling process 20 times a second
thread (7): MainThread;<module> (/me/my (new) dir/t.py:9);log; (x.py:2) 21
thread (7): MainThread;<module> (/me/my (new) dir/t.py:9);log (/me/t.py:2) 20
thread (8): bg;run (/usr/t.py:982) 39
thread (7);<module> (<string>:1) 3
thread (7): MainThread;<module> (t.py:1)
"""
    found = [(thread.frames[0], count) for thread, count in parse_recording(7, text)]
    assert found[1:] == [(Frame("/me/t.py", 2, "log"), 20), (Frame("<string>", 1, "<module>"), 3)]


@given(st.text(max_size=200))
def test_any_recording_is_survived(text: str) -> None:
    """Nothing raises, whatever is printed."""
    assert isinstance(parse_recording(7, f"{text}\nthread (7): x;{text} 3\n"), list)


@given(st.binary(max_size=50) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_answer_is_survived(text: bytes) -> None:
    """What is not a list of threads is no stack, and raises nothing."""
    found = parse(7, text)
    assert found.threads == () or found.why is None


@pytest.mark.parametrize(
    ("file", "foreign"),
    [
        ("/home/me/train.py", False),
        ("train.py", False),
        ("<string>", False),
        ("<frozen runpy>", True),
        ("/usr/lib/python3.11/threading.py", True),
        ("/home/me/.venv/lib/python3.12/site-packages/torch/nn/modules/module.py", True),
        ("/usr/lib/python3/dist-packages/numpy/core.py", True),
        (stacks.__file__, True),
    ],
)
def test_whose_code_it_is(file: str, foreign: bool) -> None:
    """Standard library, installed packages and we ourselves are not the user's."""
    assert Frame(file, 1, "f").foreign == foreign


def test_paths_are_shown_from_the_working_folder() -> None:
    """Below it they are relative, elsewhere as they are."""
    assert short("/work/me/src/train.py", "/work/me") == "src/train.py"
    assert short("/work/meadow/train.py", "/work/me") == "/work/meadow/train.py"
    assert short("train.py", None) == "train.py"
    assert stacks.working_folder(os.getpid()) == os.getcwd()
    assert stacks.working_folder(2**22 + 1) is None


def test_the_text_of_a_line(tmp_path: Path) -> None:
    """Found by the whole path or from the working folder; empty where there is none."""
    (tmp_path / "t.py").write_text("a = 1\n    b(a)\n")
    assert stacks.source(Frame("t.py", 2, "f"), str(tmp_path)) == "b(a)"
    assert stacks.source(Frame(f"{tmp_path}/t.py", 1, "f"), None) == "a = 1"
    assert stacks.source(Frame("none.py", 1, "f"), str(tmp_path)) == ""


def test_the_main_thread_is_known_by_name_where_ids_are_not() -> None:
    """py-spy tells no system ids of threads on Python 3.10; another thread is never taken for it."""
    main, other = (Thread(name, 0, False, False, ()) for name in ("MainThread", "worker"))
    assert Stacks(5, (other, main)).main is main
    assert Stacks(5, (Thread("MainThread", 9, False, False, ()),)).main is None


def test_the_main_thread_comes_first() -> None:
    """Whatever order they were found in."""
    found = parse(5, json.dumps([{"os_thread_id": 9, "frames": []}, {"os_thread_id": 5, "frames": []}]))
    assert [thread.native_id for thread in found.threads] == [5, 9]
    assert found.main == Thread("", 5, False, False, ())
