"""Waits that grow are found; a jump, a level, noise and larger batches are not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from windows import rank, samples, window

from monitor.diagnosis.detectors.data import data_starvation
from monitor.diagnosis.detectors.data.data_degrading import detect
from monitor.diagnosis.signals.loader_waits import GROWTH_MS, GROWTH_TIMES

RAMP = np.linspace(0, 1, 160)


def test_growth_over_the_run_is_found_and_not_called_starvation():
    """Waits from nothing to 15 ms beside 2 ms of work (loader_degrades_scan)."""
    one = window(rank(160, data=0.2 + 15 * RAMP, forward=1, backward=1, optimizer=0), finished=True)
    found = detect(one)
    assert found is not None
    assert (found.cause, found.severity) == ("over the run", "warning")
    assert data_starvation.detect(one) is None


@pytest.mark.parametrize(("rise", "found"), [(0.93, False), (1.1, True)])
def test_it_speaks_from_its_threshold_on(rise: float, found: bool):
    """A rise just below what counts is silent, just above it speaks."""
    # Medians of the first and the last of four quarters of a ramp lie three quarters of it apart.
    wait = 1.0 + GROWTH_MS * rise * RAMP * 4 / 3
    assert (detect(window(rank(160, data=wait, forward=1, backward=1, optimizer=0))) is not None) == found


def test_a_small_multiple_is_no_growth():
    """From 40 to 60 ms is starvation that varies, not growth."""
    assert GROWTH_TIMES > 1.5
    assert detect(window(rank(160, data=40 + 20 * RAMP))) is None


def test_a_jump_is_no_growth():
    """Storage that becomes slow at once is not a structure that grows."""
    assert detect(window(rank(160, data=np.where(RAMP < 0.5, 2.0, 40.0)))) is None


def test_growth_within_each_epoch_is_found():
    """Waits that start low in every epoch and climb again."""
    within = np.tile(np.linspace(0, 1, 40), 5)
    found = detect(window(data=1 + 40 * within, epoch=np.repeat(np.arange(5), 40)))
    assert found is not None
    assert found.cause == "within each epoch"


def test_larger_batches_are_no_fault():
    """A curriculum of longer inputs takes longer to load."""
    assert detect(window(rank(160, data=1 + 40 * RAMP, batch_elements=100 + 400 * RAMP))) is None


def test_the_promise_is_measured_from_where_it_began():
    """Growth from 20 to 80 ms: the 20 are not promised back."""
    found = detect(window(rank(160, data=20 + 60 * RAMP, forward=10, backward=0, optimizer=0)))
    assert found is not None
    assert found.gain is not None
    assert 1.7 < found.gain.speedup < 60 / 30


def test_the_promise_keeps_its_lower_bound():
    """From nothing on, at least 0.8 of what removing all waiting brings."""
    wait = 0.2 + 15 * RAMP
    found = detect(window(rank(160, data=wait, forward=1, backward=1, optimizer=0)))
    assert found is not None
    assert found.gain is not None
    assert 0.8 <= found.gain.speedup / ((wait.sum() + 320) / 320) <= 1


def test_arriving_neighbours_are_no_growth():
    """A few ms more while others take the CPUs prove nothing."""
    crowded = rank(160, data=1 + 8 * RAMP, forward=1, backward=1, samples=samples(runq_share=0.4))
    assert detect(window(crowded)) is None


@given(st.lists(st.floats(0, 4), min_size=160, max_size=160))
@settings(deadline=None, max_examples=20)
def test_noise_is_no_growth(noise: list[float]):
    """Waits that swing by a few ms do not grow."""
    assert detect(window(rank(160, data=2 + np.array(noise)))) is None
