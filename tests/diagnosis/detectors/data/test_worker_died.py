"""The death of a loader worker is told with how it died, from whoever saw it."""

from __future__ import annotations

import pytest
from windows import event, window

from monitor.diagnosis.detectors.data.worker_died import detect

KILLED = "DataLoader worker (pid 4711) is killed by signal: Killed. "
BUS = (
    "DataLoader worker (pid 12) is killed by signal: Bus error. It is possible that dataloader's workers are "
    "out of shared memory. Please try to raise your shared memory limit."
)
GONE = "DataLoader worker (pid(s) 17, 18) exited unexpectedly"


def test_living_workers_are_no_finding():
    """Other exceptions are none of its business."""
    assert detect(window(events=[event("exception", message="CUDA error: out of memory")])) is None


@pytest.mark.parametrize(
    ("message", "cause", "pids"),
    [(KILLED, "Killed", "4711"), (BUS, "Bus error", "12"), (GONE, "unknown", "17, 18")],
)
@pytest.mark.parametrize(
    ("kind", "field"), [("exception", "message"), ("rank_end", "reason"), ("worker_died", "reason")]
)
def test_torchs_own_words_are_understood(message: str, cause: str, pids: str, kind: str, field: str):
    """The error torch raises tells who died and how, wherever it is seen."""
    found = detect(window(events=[event(kind, **{field: message})]))
    assert found is not None
    assert (found.cause, found.evidence["pids"], found.severity) == (cause, pids, "critical")


def test_the_agent_is_believed():
    """What the agent saw of the process itself needs no exception."""
    found = detect(window(events=[event("worker_died", pid=99, reason="killed by SIGKILL")]))
    assert found is not None
    assert (found.cause, found.evidence["pids"]) == ("Killed", "99")


def test_two_witnesses_tell_of_one_death():
    """Agent and exception name the same worker: one death, and the witness who knows how is believed."""
    events = [event("worker_died", pid=4711), event("exception", message=KILLED)]
    found = detect(window(events=events))
    assert found is not None
    assert (found.cause, found.evidence["workers_died"]) == ("Killed", 1)


def test_advice_fits_the_death():
    """Full shared memory has a remedy of its own; the loader's line is where to apply it."""
    found = detect(window(events=[event("exception", message=BUS)]))
    assert found is not None
    assert "shm" in found.advice
    assert found.location == "train.py:31"
