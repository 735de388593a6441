"""examples/digits.py, which scripts/demo runs: it trains, says where to look, and ends cleanly."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from sources import ROOT

COMMAND = [sys.executable, "-u", str(ROOT / "examples/digits.py")]


@pytest.fixture
def demo() -> Iterator[subprocess.Popen[str]]:
    """The example without an end of its own."""
    process = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate()


def test_the_example_ends_by_itself(monkeypatch: pytest.MonkeyPatch):
    """With --seconds: status 0, accuracies, and a summary of what the monitor saw."""
    monkeypatch.setenv("MONITOR_DASHBOARD", "off")
    done = subprocess.run([*COMMAND, "--seconds", "3"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "test accuracy" in done.stdout
    assert " steps, " in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it_without_a_traceback(demo: subprocess.Popen[str], number: signal.Signals):
    """Ctrl-C (and SIGTERM) while it trains: status 0 and nothing on stderr."""
    assert demo.stdout
    for line in demo.stdout:
        if line.startswith("epoch 1:"):
            break
    demo.send_signal(number)
    _, stderr = demo.communicate(timeout=30)
    assert (demo.returncode, stderr) == (0, "")


def test_it_says_where_to_look(demo: subprocess.Popen[str]):
    """The dashboard's address, with its token, is the first thing it prints."""
    assert demo.stdout
    lines = (line.strip() for line in demo.stdout)
    first = next(line for line in lines if line)
    assert first.startswith("Dashboard: http://127.0.0.1:")
    assert "token=" in first
