"""Whether a run that recorded no end goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from monitor.report.liveness import alive, host_name, lost

NOW = 1_000_000.0
HERE = host_name()


@pytest.fixture
def dead_pid() -> int:
    """A process id that was somebody's and is nobody's."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    return gone.pid


@pytest.fixture
def zombie() -> Iterator[int]:
    """A process that has ended and that nobody has waited for."""
    child = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.read()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    yield child.pid
    child.wait()
    child.stdout.close()


def meta(trainer: int | None, agent: int | None, host: str = HERE) -> dict:
    return {
        "processes": {"0": {"pid": trainer, "host": host}},
        "agents": {host: {"pid": agent}},
        "started_unix_s": NOW - 500,
    }


def heard(seconds_ago: float, host: str = HERE) -> dict:
    return {host: {"received_unix_s": NOW - seconds_ago, "seq": 3, "sent_s": 1.0}}


def test_alive(dead_pid: int, zombie: int) -> None:
    """A process that runs is alive, one that is gone or a zombie is not."""
    assert alive(os.getpid())
    assert not alive(dead_pid)
    assert not alive(zombie)


def test_the_trainer_lives(dead_pid: int) -> None:
    """A run goes on while its trainer lives, however long its agent was silent."""
    assert lost(meta(os.getpid(), dead_pid), heard(3600), NOW) is None


def test_the_agent_lives(dead_pid: int) -> None:
    """While the agent lives it will tell of the end itself."""
    assert lost(meta(dead_pid, os.getpid()), heard(1), NOW) is None


def test_both_are_gone(dead_pid: int) -> None:
    """Trainer and agent are gone and no end was recorded: lost, at once."""
    why = lost(meta(dead_pid, dead_pid), heard(1), NOW)
    assert why is not None
    assert why.startswith("lost: ")


def test_another_machine() -> None:
    """Of another machine only its silence is known: a minute of it."""
    assert lost(meta(1, 2, "far"), heard(59, "far"), NOW) is None
    assert (
        lost(meta(1, 2, "far"), heard(130, "far"), NOW) == "lost: silent for 2 min, and no end was recorded"
    )


def test_nothing_known() -> None:
    """Without a word of any process, silence since the start decides."""
    assert lost({"started_unix_s": NOW - 10}, {}, NOW) is None
    assert lost({"started_unix_s": NOW - 100}, {}, NOW) is not None
    assert lost({}, {}, NOW) is not None
