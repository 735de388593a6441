"""Time outside every known phase is told, with its line where stacks showed one."""

from __future__ import annotations

from typing import Any

import pytest
from windows import event, rank, window

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.verdict import verdict
from monitor.diagnosis.detectors.time.untracked_time import SHARE, detect

WAITS = {
    "file": "/home/me/train.py", "line": 12, "func": "train", "count": 40, "source": "x = await queue.get()",
    "leaf_func": "select", "leaf_file": "/usr/lib/python3.11/selectors.py",
}  # fmt: skip


def found(other: float, *frames: dict[str, Any]) -> Finding | None:
    told = [event("other_stack", total=sum(one["count"] for one in frames), frames=list(frames))]
    return detect(window(rank(1000, other=other), events=told if frames else []))


@pytest.mark.parametrize(("factor", "speaks"), [(0.95, False), (1.05, True)])
def test_it_speaks_from_a_tenth_on(factor: float, speaks: bool):
    """Just below the share that counts it is silent, just above it speaks."""
    share = SHARE * factor
    assert (found(16 * share / (1 - share)) is not None) == speaks


def test_the_line_is_named_where_stacks_showed_it():
    """A loop that waits for a queue: where, and how many stacks said so; nothing is promised."""
    one = found(60.0, WAITS)
    assert one is not None
    assert (one.severity, one.location, one.gain) == ("info", "train.py:12", None)
    assert one.evidence["stacks"] == 40


def test_what_logging_takes_is_not_untracked():
    """A finding of its own accounts for it."""
    assert (
        found(8.0, {**WAITS, "leaf_func": "emit", "leaf_file": "/usr/lib/python3.11/logging/__init__.py"})
        is None
    )


def test_the_verdict_never_says_nothing_of_it():
    """With much time unexplained nobody knows that nothing slowed the run down."""
    one = found(60.0, WAITS)
    assert one is not None
    for status, key in (("finished", "finished_unexplained"), ("running", "unexplained")):
        assert verdict(status, [one], steps=200)["key"] == key
