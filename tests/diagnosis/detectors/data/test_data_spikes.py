"""Single batches far slower than the rest are found by the tail of the waits, not by their median."""

from __future__ import annotations

import numpy as np
import pytest
from windows import every, loader, rank, samples, window

from monitor.diagnosis.detectors.data import data_starvation
from monitor.diagnosis.detectors.data.data_spikes import LOST_SHARE, detect
from monitor.diagnosis.signals.loader_waits import HANDOVER_MS, SEVERAL, SPIKE_MS

#: Every 20th wait this long loses exactly LOST_SHARE of 20 steps of 14 ms of work.
AT_MS = (LOST_SHARE * (19 * 16 + 14) + HANDOVER_MS) / (1 - LOST_SHARE)


@pytest.mark.parametrize(("spike", "found"), [(0.99, False), (1.01, True)])
def test_it_speaks_from_its_threshold_on(spike: float, found: bool):
    """Just below the share that counts it is silent, just above it speaks."""
    assert AT_MS * 0.99 > SPIKE_MS, "both must be spikes at all"
    assert (detect(window(rank(205, data=every(20, AT_MS * spike, 2.0, 205)))) is not None) == found


def test_slow_samples_are_found_and_not_called_starvation():
    """One batch in 12 takes half a second: spikes, with their period and where the loader is."""
    one = window(data=every(12, 600.0, 1.6), forward=2, backward=2)
    found = detect(one)
    assert found is not None
    assert (found.cause, found.evidence["period_batches"], found.location) == (
        "slow samples",
        12,
        "train.py:31",
    )
    assert data_starvation.detect(one) is None


def test_it_promises_what_the_waits_cost():
    """At least 0.8 of 1 ÷ (1 − the share waited), and never more than all of it."""
    found = detect(window(data=every(12, 624.0, 1.6, 150), count=150, forward=2.4, backward=2, optimizer=1))
    wait, whole = 12 * 624.0 + 138 * 1.6, 12 * 624.0 + 138 * 1.6 + 150 * 5.4
    assert found is not None
    assert found.gain is not None
    assert 0.8 <= found.gain.speedup * (1 - wait / whole) <= 1


@pytest.mark.parametrize(("times", "found"), [(SEVERAL - 1, False), (SEVERAL, True)])
def test_a_single_burst_is_no_alarm(times: int, found: bool):
    """Fewer than several long waits are chance, however long."""
    wait = np.full(200, 1.6)
    wait[20 : 20 + 50 * times : 50] = 2_000.0
    assert (detect(window(data=wait)) is not None) == found


def test_the_rhythm_of_the_workers_is_no_spike():
    """Eight workers that finish together make one long wait in eight: too few workers, not slow samples."""
    assert detect(window(data=every(8, 300.0, 1.6), facts=loader(num_workers=8))) is None


def test_starts_of_epochs_are_no_spikes():
    """Starting workers is somebody else's business."""
    wait = np.where(np.arange(200) % 20 == 0, 450.0, 1.5)
    assert detect(window(data=wait, epoch=np.repeat(np.arange(10), 20))) is None


def test_a_hidden_burst_is_fine():
    """What the queue hides never shows in the wait (ok_bursty_loader)."""
    assert detect(window(data=every(40, 8.4, 2.3))) is None


@pytest.mark.parametrize(("spike", "advised"), [(60.0, "prefetch_factor=6"), (2_000.0, "")])
def test_a_deeper_queue_is_advised_where_it_helps(spike: float, advised: str):
    """A queue that outlasts the spike, unless it would have to be absurdly deep."""
    found = detect(window(data=every(10, spike, 1.0), forward=4, backward=4))
    assert found is not None
    assert advised in found.snippet
    assert bool(found.snippet) == bool(advised)


def test_one_finding_for_all_ranks_alike():
    """Two ranks with spikes are one finding."""
    ranks = [rank(number=number, data=every(12, 600.0, 1.6)) for number in range(2)]
    found = detect(window(*ranks, rank(number=2)))
    assert found is not None
    assert found.ranks == (0, 1)


def test_noise_of_a_busy_machine_is_no_spike():
    """Waits of up to 25 ms while others have the CPUs."""
    wait = 2 + 23 * np.random.default_rng(0).random(200) ** 4
    assert detect(window(rank(data=wait, samples=samples(runq_share=0.3)))) is None
