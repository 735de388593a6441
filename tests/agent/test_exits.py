"""Real processes that end in every way, and who is believed about it."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from monitor.agent import exits, proc
from monitor.agent.exits import Exit, explain

WAYS = [("raise SystemExit(3)", (3, None)), ("import os; os._exit(0)", (0, None))]
SIGNALS = [(9, (None, 9)), (11, (None, 11)), (15, (None, 15)), (6, (None, 6))]
ALL = WAYS + [(f"import os; os.kill(os.getpid(), {number})", known) for number, known in SIGNALS]


def ended(script: str) -> tuple[subprocess.Popen[bytes], int, int]:
    """A process that has ended and is not reaped; its pidfd and its start time."""
    process = subprocess.Popen([sys.executable, "-c", f"input(); {script}"], stdin=subprocess.PIPE)
    found, pidfd = proc.stat(process.pid), exits.open_pidfd(process.pid)
    assert found is not None
    assert process.stdin is not None
    if pidfd is None:
        pytest.skip("this system has no pidfds")
    process.stdin.write(b"\n")
    process.stdin.close()
    select.select([pidfd], [], [])
    return process, pidfd, found.start_ticks


@pytest.mark.parametrize(("script", "known"), ALL)
def test_a_zombie_says_how_it_ended(script: str, known: tuple[int | None, int | None]) -> None:
    """Exit code or signal are read from /proc before the parent reaps it."""
    process, pidfd, ticks = ended(script)
    assert exits.from_status(exits.zombie_status(process.pid, ticks)) == known
    assert exits.zombie_status(process.pid, ticks + 1) is None
    process.wait()
    os.close(pidfd)


@pytest.mark.parametrize(("script", "known"), ALL)
def test_the_pidfd_says_it_after_the_reaping(script: str, known: tuple[int | None, int | None]) -> None:
    """A recent kernel still knows once the parent has taken the status."""
    process, pidfd, _ = ended(script)
    process.wait()
    status = exits.pidfd_status(pidfd)
    os.close(pidfd)
    if status is None and tuple(map(int, os.uname().release.split(".")[:2])) < (6, 15):
        pytest.skip("needs Linux 6.15")
    assert exits.from_status(status) == known


def test_a_living_process_has_no_status() -> None:
    """Neither way invents an end."""
    pidfd, found = exits.open_pidfd(os.getpid()), proc.stat(os.getpid())
    assert pidfd is not None
    assert found is not None
    assert exits.pidfd_status(pidfd) is None
    assert exits.zombie_status(os.getpid(), found.start_ticks) is None
    os.close(pidfd)


def test_what_is_no_pidfd_has_no_status() -> None:
    """An older kernel's refusal is no status."""
    fd = os.open(os.devnull, os.O_RDONLY)
    assert exits.pidfd_status(fd) is None
    os.close(fd)


def test_the_launcher_s_word(tmp_path: Path) -> None:
    """`exit-R.json` of the right rank, written after the process began."""
    (tmp_path / "exit-1.json").write_text(json.dumps({"code": None, "signal": 11}))
    assert exits.launcher_exit(tmp_path, 1, 0) == (None, 11)
    assert exits.launcher_exit(tmp_path, 0, 0) is None
    assert exits.launcher_exit(tmp_path, 1, time.time_ns() + 10**9) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"code": "0"}', '{"code": true, "signal": null}', "{}", "[" * 99999]
)
def test_nonsense_from_the_launcher_is_no_word(tmp_path: Path, text: str) -> None:
    """Half a file, or another one, is not believed."""
    (tmp_path / "exit-0.json").write_text(text)
    assert exits.launcher_exit(tmp_path, 0, 0) is None


END = {"code": None, "reason": "end of the script"}
FAILURE = {"type": "RuntimeError", "message": "boom"}


@pytest.mark.parametrize(
    ("known", "end", "failure", "expected", "clean"),
    [
        ((0, None), END, None, Exit(0, None, "end of the script"), True),
        ((0, None), None, None, Exit(0, None, "end of the script"), True),
        ((3, None), END, None, Exit(3, None, "exit code 3"), False),
        (
            (1, None),
            {"code": 1, "reason": "RuntimeError: boom"},
            FAILURE,
            Exit(1, None, "RuntimeError: boom"),
            False,
        ),
        ((None, 9), None, None, Exit(None, 9, "killed by SIGKILL"), False),
        ((None, 40), None, None, Exit(None, 40, "killed by signal 40"), False),
        (None, END, None, Exit(None, None, "end of the script"), True),
        (None, {"code": 0, "reason": "detached"}, None, Exit(0, None, "detached"), True),
        (None, {"code": 1, "reason": "x"}, FAILURE, Exit(1, None, "RuntimeError: boom"), False),
        (None, None, None, Exit(None, None, exits.UNKNOWN), False),
        (None, {"code": "1", "reason": 7}, None, Exit(None, None, exits.UNKNOWN), False),
    ],
)
def test_words(known, end, failure, expected, clean) -> None:  # type: ignore[no-untyped-def]
    """The certain knowledge comes first, last words explain it, and nothing is guessed."""
    found = explain(known, end, failure)
    assert (found, found.clean) == (expected, clean)


def test_a_kill_for_memory_is_named() -> None:
    """Only SIGKILL at the time of such a kill is one."""
    assert explain((None, 9), None, None, oom_kill=True).reason == "killed by SIGKILL: out of memory"
    assert explain((None, 11), None, None, oom_kill=True).reason == "killed by SIGSEGV"
