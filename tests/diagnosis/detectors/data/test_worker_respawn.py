"""Workers started anew each epoch are found by what their start costs, over whole epochs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from windows import env, event, loader, rank, window

from monitor.diagnosis.core.window import Window
from monitor.diagnosis.detectors.data.worker_respawn import INFO_SHARE, LOST_SHARE, detect

EPOCH = 20
BUSY_MS = 14.0


def respawning(start_ms: float, epochs: int = 10, scale: float = 1.0, **facts: object) -> Window:
    """Epochs of 20 steps of 14 ms of work and 2 of waiting, each beginning with `start_ms`."""
    wait = np.tile([start_ms, *[2.0] * (EPOCH - 1)], epochs) * scale
    known = {**env(), **loader(**{"persistent_workers": False, **facts})}
    work = {"forward": 5 * scale, "backward": 8 * scale, "optimizer": scale}
    epoch = np.repeat(np.arange(epochs), EPOCH)
    return window(rank(len(wait), data=wait, facts=known, epoch=epoch, **work))


#: What is not lost: the time that the first batches of two living workers would take.
FREE_MS = 2 * (BUSY_MS + 2)


def at_ms(share: float) -> float:
    """The wait at an epoch's start that loses exactly this share."""
    return (FREE_MS + share * ((EPOCH - 1) * (BUSY_MS + 2) + BUSY_MS)) / (1 - share)


@pytest.mark.parametrize(
    ("start", "severity"),
    [
        (at_ms(INFO_SHARE * 0.99), None),
        (at_ms(INFO_SHARE * 1.01), "info"),
        (at_ms(LOST_SHARE * 0.99), "info"),
        (at_ms(LOST_SHARE * 1.01), "warning"),
    ],
)
def test_it_speaks_from_its_thresholds_on(start: float, severity: str | None):
    """A tenth is advice, a fifth a fault, less is fine."""
    found = detect(respawning(start))
    assert (found.severity if found else None) == severity


def test_it_says_what_to_change():
    """persistent_workers=True in the user's own call, where it stands."""
    call = "DataLoader(data, batch_size=32, num_workers=2, worker_init_fn=open_index, persistent_workers=FIX)"
    found = detect(respawning(450.0, call=call))
    assert found is not None
    assert found.snippet == call.replace("=FIX", "=True")
    assert (found.cause, found.location) == ("persistent_workers=False", "train.py:31")


def test_persistent_workers_are_fine():
    """Workers that live on are not started anew, whatever an epoch's start costs."""
    assert detect(respawning(450.0, persistent_workers=True)) is None


def test_no_workers_are_fine():
    """Without workers there is nothing to start."""
    assert detect(respawning(450.0, num_workers=0)) is None


def test_the_first_start_is_free():
    """Somebody has to start the workers once."""
    wait = np.full(200, 2.0)
    wait[0] = 3_000.0
    facts = loader(persistent_workers=False)
    assert detect(window(data=wait, epoch=np.repeat(np.arange(4), 50), facts=facts)) is None


@pytest.mark.parametrize(("epochs", "found"), [(3, False), (4, True)])
def test_two_whole_epochs_must_have_been_seen(epochs: int, found: bool):
    """The window's first epoch may have begun before it; after it, two whole ones are needed."""
    assert (detect(respawning(450.0, epochs)) is not None) == found


def test_the_promise_is_amdahls():
    """The gain is never more than the waits at epoch starts, and nearly all of it."""
    found = detect(respawning(450.0))
    epoch = 450 + BUSY_MS + 19 * 16
    assert found is not None
    assert found.gain is not None
    assert 0.9 * epoch / (epoch - 448) <= found.gain.speedup <= epoch / (epoch - 448)


def test_slow_batches_are_not_its_business():
    """When every batch is slow, keeping the workers would not make the first one faster."""
    wait = np.tile([170.0, *[75.0] * (EPOCH - 1)], 10)
    slow = rank(200, data=wait, epoch=np.repeat(np.arange(10), EPOCH), facts=loader(persistent_workers=False))
    assert detect(window(slow)) is None


def test_the_time_to_start_processes_is_told_where_known():
    """The probe's own measurement of starting the workers is evidence."""
    starting = [event("epoch", workers_started_ms=30.0), event("epoch", workers_started_ms=34.0)]
    one = respawning(450.0)
    found = detect(
        Window(one.now_s, one.ranks, events=[{"rank": 0, "t_s": 0.0, **each} for each in starting])
    )
    assert found is not None
    assert found.evidence["workers_started_ms"] == 32.0


@given(scale=st.floats(0.1, 20))
@settings(deadline=None, max_examples=20)
def test_scaling_time_changes_nothing(scale: float):
    """The rule is relative: a faster or slower machine finds the same."""
    assert detect(respawning(450.0, scale=scale)) is not None
    assert detect(respawning(at_ms(INFO_SHARE) * 0.98, scale=scale)) is None
