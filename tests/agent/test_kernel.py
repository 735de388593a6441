"""What the kernel says of a process that waits, and of a machine in trouble."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import until

from monitor.agent import kernel
from monitor.agent.kernel import Waits, trouble, waits

WAYS = {
    "sleep": "import time; time.sleep(60)",
    "reading": "import os; os.read(os.pipe()[0], 1)",
    "socket": "import socket; a, b = socket.socketpair(); a.recv(1)",
    "child": "import subprocess; subprocess.Popen(['sleep', '60']).wait()",
    "writing": "import os; w = os.pipe()[1]\nwhile True: os.write(w, b'x' * 4096)",
}


@pytest.mark.skipif(not kernel._NAMES, reason="system calls are not named for this machine")
@pytest.mark.parametrize("what", WAYS)
def test_a_process_that_waits(what: str) -> None:
    """Real ones, each in the system call of its kind."""
    with subprocess.Popen([sys.executable, "-c", WAYS[what]], start_new_session=True) as process:
        try:
            found = until(lambda: now if (now := waits(process.pid)).what == what else None, what)
        finally:
            os.killpg(process.pid, 9)
    assert found.call in found.words
    assert found.plain()["syscall"] == found.call


def test_nobody_waits_for_nothing() -> None:
    """A process that is gone, or runs: nothing is said."""
    assert waits(2**22 + 1) == Waits()
    assert (Waits().words, Waits().plain()) == ("", {})


def test_numbers_and_names_are_one_to_one() -> None:
    """No number stands for two calls, on either machine."""
    for column in (1, 2):
        numbers = [call[column] for call in kernel._CALLS.values() if call[column] is not None]
        assert len(numbers) == len(set(numbers))


def test_a_machine_without_trouble() -> None:
    """This one has room and memory, or says what it lacks."""
    found = trouble(os.getpid())
    assert found is None or found.startswith(("no room left", "the machine is short of memory"))


def test_a_full_disk_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the folder where there is no room: the working folder by its name, not by /proc's."""
    monkeypatch.setattr(kernel, "FULL_BYTES", 1 << 62)
    monkeypatch.setattr(kernel, "SWAPPING_PERCENT", 101.0)
    assert (trouble(os.getpid()) or "").startswith(f"no room left: {os.getcwd()}")


def test_memory_pressure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The share of time in which everything waited for memory; None where the kernel does not count it."""
    path = tmp_path / "memory"
    path.write_text("some avg10=90.00 avg60=1 avg300=0 total=9\nfull avg10=34.50 avg60=1 avg300=0 total=9\n")
    assert kernel._pressure(str(path)) == 34.5
    path.write_text("full avg10=x")
    assert kernel._pressure(str(path)) is None
    assert kernel._pressure(str(tmp_path / "none")) is None
    monkeypatch.setattr(kernel, "_pressure", lambda: 34.5)
    assert "34 % of the time" in (trouble(os.getpid()) or "")
