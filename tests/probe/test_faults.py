"""What is registered for stacks: it costs nobody anything, takes nothing from the user, and is put back."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from monitor.probe import faults
from monitor.probe.faults import Faults, permit
from monitor.probe.patches import Patches

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="real-time signals, /proc")

PREPARE = """
import faulthandler, json, os, signal, sys, threading
from monitor.probe.faults import Faults
from monitor.probe.patches import Patches
path, patches = sys.argv[1], Patches()
first = signal.SIGRTMIN + 5
"""


def run(path: Path, code: str, *options: str) -> subprocess.CompletedProcess[str]:
    """A process of its own: pytest has put handlers of its own into this one."""
    command = [sys.executable, *options, "-c", PREPARE + code, str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def result(path: Path, code: str, *options: str) -> Any:
    """What such a process prints, as JSON."""
    done = run(path, code, *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_signal_writes_every_thread(tmp_path: Path) -> None:
    """Into the file, with the line each thread is at; the process goes on."""
    path = tmp_path / "stacks"
    code = """
faults = Faults(path, patches)
threading.Thread(target=threading.Event().wait, name="side", daemon=True).start()
os.kill(os.getpid(), faults.signal)
print(json.dumps({**faults.description(), "ident": threading.main_thread().ident, "first": first}))
"""
    found = result(path, code)
    assert (found["signal"], found["main"], found["file"]) == (found["first"], found["ident"], "stacks")
    text = path.read_text()
    assert f"0x{found['main']:016x}" in text
    assert text.count("most recent call first") == 2
    assert 'threading.py", line' in text
    assert path.stat().st_mode & 0o077 == 0


def test_it_writes_also_from_a_thread_and_after_a_fork(tmp_path: Path) -> None:
    """Attached outside the main thread; and a forked worker answers into the same file."""
    code = """
made = []
thread = threading.Thread(target=lambda: made.append(Faults(path, patches)))
thread.start(); thread.join()
def in_the_child():
    os.kill(os.getpid(), made[0].signal)
child = os.fork()
if not child:
    in_the_child()
    os._exit(0)
os.waitpid(child, 0)
print(json.dumps(made[0].description()))
"""
    assert result(tmp_path / "stacks", code)["signal"]
    assert "in in_the_child" in (tmp_path / "stacks").read_text()


def test_the_user_s_signal_is_left_alone(tmp_path: Path) -> None:
    """One that has a handler, is ignored, or is held back is passed over for the next free one."""
    code = """
signal.signal(first, lambda *_: None)
signal.signal(first + 1, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [first + 2])
faulthandler.register(first + 3, file=sys.stderr)
print(json.dumps(Faults(path, patches).signal - first))
"""
    assert result(tmp_path / "stacks", code) == 4


def test_a_handler_of_the_user_s_that_comes_later_wins(tmp_path: Path) -> None:
    """The signal is theirs then: it is no longer told, and detaching does not take it from them."""
    code = """
faults = Faults(path, patches)
before = faults.taken()
mine = lambda *_: None
signal.signal(first, mine)
print(json.dumps([before, faults.taken(), faults.signal, faults.taken()]), end="")
faults.release()
assert signal.getsignal(first) is mine
os.kill(os.getpid(), first)
"""
    assert result(tmp_path / "stacks", code) == [False, True, None, False]


def test_everything_is_put_back(tmp_path: Path) -> None:
    """After release no signal is handled that was not before, the file is closed, and twice is once."""
    code = """
def caught():
    mask = next(line for line in open("/proc/self/status") if line.startswith("SigCgt")).split()[1]
    return int(mask, 16) & ~(3 << 31)  # the C library takes 32 and 33 for itself, when it likes
before = caught(), sorted(os.listdir("/proc/self/fd")), faulthandler.enable, faulthandler.is_enabled
faults = Faults(path, patches)
during = caught(), sorted(os.listdir("/proc/self/fd"))
patches.restore(); faults.release(); faults.release()
after = caught(), sorted(os.listdir("/proc/self/fd")), faulthandler.enable, faulthandler.is_enabled
print(json.dumps([before == after, during != before[:2], faults._fd]))
"""
    assert result(tmp_path / "stacks", code) == [True, True, -1]


def test_a_fatal_signal_leaves_its_trace(tmp_path: Path) -> None:
    """SIGSEGV: the trace is in the file, nothing is on stderr, and the process dies as it would have."""
    path = tmp_path / "stacks"
    code = "Faults(path, patches)\nimport ctypes\ndef inner(): ctypes.memset(0, 1, 1)\ninner()"
    done = run(path, code)
    assert (done.returncode, done.stderr) == (-11, "")
    assert path.read_text().startswith("Fatal Python error: Segmentation fault")
    assert "in inner" in path.read_text()


@pytest.mark.parametrize("how", ["-Xfaulthandler", "before", "after"])
def test_a_user_who_wants_the_trace_gets_it(tmp_path: Path, how: str) -> None:
    """faulthandler switched on by an option, before or after us writes where they want, also after detach."""
    enable = "if not faulthandler.is_enabled(): faulthandler.enable()\n"
    code = (enable if how == "before" else "") + "faults = Faults(path, patches)\n"
    code += (enable if how == "after" else "") + "patches.restore(); faults.release()\n"
    done = run(tmp_path / "stacks", f"{code}import ctypes; ctypes.memset(0, 1, 1)", *[how][: how[0] == "-"])
    assert done.returncode == -11
    assert done.stderr.startswith("Fatal Python error: Segmentation fault")


def test_a_handler_for_a_fatal_signal_is_left_alone(tmp_path: Path) -> None:
    """Some runtimes live on SIGSEGV: where anybody handles one of these, ours stay away."""
    code = "signal.signal(signal.SIGSEGV, lambda *_: None)\nprint(json.dumps(Faults(path, patches).fatal))"
    assert result(tmp_path / "stacks", code) is False


def test_where_nothing_can_be_had_nothing_is_said(tmp_path: Path) -> None:
    """No folder for the file: no signal, no exception, and releasing is harmless."""
    made = Faults(str(tmp_path / "none" / "stacks"), Patches())
    assert (made.signal, made.fatal) == (None, False)
    made.release()


def test_the_file_s_number_is_high(tmp_path: Path) -> None:
    """A program that closes all it has and opens anew does not get our number for its own file."""
    made = Faults(str(tmp_path / "stacks"), Patches())
    try:
        assert made.description()["fd"] >= faults.HIGH_FD
        assert not os.get_inheritable(made.description()["fd"])
    finally:
        made.release()


@pytest.mark.parametrize(("scope", "asked"), [("0", False), ("1", True), ("2", False), (None, False)])
def test_yama_is_asked_where_it_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: str | None, asked: bool
) -> None:
    """Only where parents alone may look is anything asked for, and then for the agent alone."""
    calls: list[int] = []
    monkeypatch.setattr(faults, "_prctl", lambda pid: calls.append(pid) or True)
    path = tmp_path / "ptrace_scope"
    if scope is not None:
        path.write_text(f"{scope}\n")
    assert permit(4321, path) is asked
    assert permit(None, path) is False
    assert calls == ([4321] if asked else [])


def test_a_kernel_without_yama_is_no_trouble() -> None:
    """The call itself is the kernel's own: refused or granted, never an exception."""
    assert faults._prctl(os.getpid()) in (True, False)
    faults.forbid()
    assert ctypes.CDLL(None).prctl is not None


def test_it_is_quick(tmp_path: Path) -> None:
    """Attaching pays a millisecond or so of CPU time for all of it, nothing per step; best of five."""
    took_s = []
    for number in range(5):
        began_s = time.process_time()
        Faults(str(tmp_path / f"stacks-{number}"), Patches()).release()
        took_s.append(time.process_time() - began_s)
    assert min(took_s) < 0.05
