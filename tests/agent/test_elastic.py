"""A rank that torchrun will start anew is waited for; one that ended for good is not."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from monitor.agent import proc
from monitor.agent.elastic import returns


def tape(**more: Any) -> Any:
    """A rank that raised, with one restart left; its launcher is this test."""
    env = {"restarts": 0, "restarts_allowed": 1, "launcher_pid": os.getpid(), **more.pop("env", {})}
    mine = proc.stat(os.getpid())
    assert mine is not None
    whole = {"facts": {"env": env}, "failure": {"type": "ValueError"}, "end": None}
    return SimpleNamespace(**{**whole, "start_ticks": mine.start_ticks + 1, **more})


def test_one_that_failed_returns():
    """As long as its launcher lives and may start it anew."""
    assert returns(tape())


def test_one_that_was_killed_returns():
    """It left no last words."""
    assert returns(tape(failure=None))


@pytest.mark.parametrize("reason", ["end of the script", "detached"])
def test_one_that_came_to_its_end_does_not(reason: str):
    """Nor does one that let go."""
    assert not returns(tape(failure=None, end={"reason": reason}))


@pytest.mark.parametrize("env", [{"restarts": 1}, {"restarts": None}, {"launcher_pid": "x"}])
def test_the_last_attempt_does_not(env: dict[str, Any]):
    """Nor one of which nothing is known."""
    assert not returns(tape(env=env))


def test_a_launcher_that_has_gone_starts_nobody():
    """And a younger process that got its number is none."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert not returns(tape(env={"launcher_pid": gone.pid}))
    assert not returns(tape(start_ticks=1))


def test_a_rank_that_told_nothing_does_not():
    """It died before its first words."""
    assert not returns(tape(facts={}))
