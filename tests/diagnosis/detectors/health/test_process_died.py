"""A death is told with how, when and where, and who died first."""

from __future__ import annotations

from typing import Any

import pytest
from windows import event, rank, samples, window

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.health.process_died import detect


def died(**end: Any) -> Finding | None:
    return detect(window(rank(ended={"code": None, "signal": None, "clean": False, "t_s": 9.0, **end})))


@pytest.mark.parametrize("ended", [None, {"code": 0, "signal": None, "clean": True}, {"code": 0}])
def test_the_living_and_the_finished_are_not_dead(ended: dict[str, Any] | None):
    """A rank that lives, or came to a clean end, is no finding."""
    assert detect(window(rank(ended=ended))) is None


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        ({"signal": 9}, "SIGKILL"),
        ({"code": -11}, "SIGSEGV"),
        ({"code": 137}, "SIGKILL"),
        ({"signal": "SIGABRT"}, "SIGABRT"),
        ({"signal": 9, "oom_kill": True}, "out of memory"),
        ({"code": 3}, "exit status 3"),
        ({"code": 1, "reason": "RuntimeError: shapes differ"}, "RuntimeError"),
        ({"code": 1, "reason": "torch.OutOfMemoryError: CUDA"}, "torch.OutOfMemoryError"),
        ({}, "no clean end"),
        ({"signal": 200}, "signal 200"),
        ({"signal": "SIGABRT", "on_stall": True}, "on_stall=abort"),
    ],
)
def test_how_it_died_is_named(end: dict[str, Any], cause: str):
    """Signals by name, exceptions by class, memory kills as such; always critical."""
    found = died(**end)
    assert found is not None
    assert (found.cause, found.severity) == (cause, "critical")


@pytest.mark.parametrize("end", [{"signal": 2}, {"code": 130}, {"code": 1, "reason": "KeyboardInterrupt"}])
def test_stopping_by_hand_is_no_alarm(end: dict[str, Any]):
    """Ctrl-C is information."""
    found = died(**end)
    assert found is not None
    assert found.severity == "info"


def test_a_crash_of_native_code_has_its_line():
    """Where the rank left a trace: the line of the user's own that called into it."""
    found = died(signal=11, location="train.py:33", function="step")
    assert found is not None
    assert (found.location, found.evidence["function"]) == ("train.py:33", "step")


def test_the_last_of_it_is_kept():
    """Last step, phase and memory, and workers it left behind."""
    end = {"signal": 9, "clean": False, "last_step": 151, "last_phase": "backward", "orphans": [71, 72]}
    found = detect(window(rank(ended=end, samples=samples(rss_mb=612.0))))
    assert found is not None
    known = {key: found.evidence[key] for key in ("last_step", "last_phase", "last_rss_mb", "orphans")}
    assert known == {"last_step": 151, "last_phase": "backward", "last_rss_mb": 612.0, "orphans": "71, 72"}


def test_the_tape_tells_the_last_step_when_nobody_else_does():
    """Without a word from the watchdog, the last step in the window and the last phase seen are told."""
    found = detect(window(rank(120, ended={"signal": 9}, phase=("data", 3.0))))
    assert found is not None
    assert (found.last_step, found.evidence["last_phase"]) == (119, "data")


def test_the_first_to_die_unasked_is_the_cause():
    """A launcher ends the other ranks with SIGTERM: they are not the cause, though they are dead too."""
    told = rank(number=0, ended={"signal": 15, "t_s": 8.0})
    cause = rank(number=1, ended={"signal": 11, "t_s": 9.0})
    found = detect(window(told, cause, rank(number=2)))
    assert found is not None
    assert (found.cause, found.evidence["rank"], found.ranks) == ("SIGSEGV", 1, (0, 1))


def test_the_line_of_the_exception_is_named():
    """Where an exception was seen, its place is the finding's."""
    crashed = rank(ended={"code": 1, "reason": "ValueError: no"})
    found = detect(window(crashed, events=[event("exception", location="train.py:40")]))
    assert found is not None
    assert found.location == "train.py:40"
