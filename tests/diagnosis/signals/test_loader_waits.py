"""A wait belongs to one finding only, and what can be saved never exceeds what was waited."""

from __future__ import annotations

import numpy as np
import pytest
from devices import gpu_rank, on_gpu
from hypothesis import given, settings
from hypothesis import strategies as st
from windows import event, every, loader, rank, samples, window

from monitor.diagnosis.detectors.data import data_degrading, data_spikes, data_starvation
from monitor.diagnosis.signals.loader_waits import (
    RHYTHM,
    Waits,
    keeps_growing,
    quarters_of_epochs,
    waits,
    worker_rhythm,
)


def judged(count: int = 200, **more: object) -> Waits:
    one = rank(count, **more)
    found = waits(window(one, finished=True), one)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("wait", "pattern"),
    [
        (2.0, "none"),
        (50.0, "steady"),
        (every(12, 600.0, 1.6), "spikes"),
        (every(2, 150.0, 1.6), "steady"),
        (np.linspace(1, 40, 200), "growing"),
        (every(150, 9_000.0, 1.6), "none"),
    ],
)
def test_patterns_are_told_apart(wait: object, pattern: str):
    """Healthy, starving, slow samples, the rhythm of two workers, growth, one long pause."""
    assert judged(data=wait).pattern == pattern


@given(st.lists(st.floats(0, 400), min_size=200, max_size=200))
@settings(deadline=None, max_examples=60)
def test_a_wait_belongs_to_one_finding(wait: list[float]):
    """Whatever the waits, at most one of the three detectors speaks."""
    one = window(data=np.array(wait), finished=True)
    found = [detector.detect(one) for detector in (data_starvation, data_spikes, data_degrading)]
    assert sum(each is not None for each in found) <= 1


@given(st.lists(st.floats(0, 400), min_size=60, max_size=60))
@settings(deadline=None, max_examples=60)
def test_no_more_is_saved_than_was_waited(wait: list[float]):
    """0 ≤ what hiding saves ≤ share of waiting ≤ 1."""
    one = judged(60, data=np.array(wait))
    assert 0 <= one.lost_share <= one.data_share <= 1
    assert 0 <= one.saved_share() <= one.data_share + 1e-9


def test_the_first_epoch_does_not_count_when_later_ones_can_be_seen():
    """It fills caches; without enough later steps it is all there is."""
    epoch = np.repeat([1, 2], [100, 100])
    assert judged(data=np.where(epoch == 1, 90.0, 2.0), epoch=epoch).pattern == "none"
    short = np.repeat([1, 2], [190, 10])
    assert judged(data=np.where(short == 1, 90.0, 2.0), epoch=short).pattern == "steady"


def test_a_later_epoch_in_the_window_is_not_taken_for_the_first():
    """A window that begins in the middle of a run drops nothing."""
    assert judged(first=5000, data=90.0, epoch=np.repeat([7, 8], 100)).rank.count == 200


def test_starts_of_epochs_are_set_aside_with_workers_only():
    """Without workers an epoch's first batch is like any other."""
    epoch = np.repeat(np.arange(10), 20)
    assert judged(epoch=epoch).starts.sum() == 8 * 3
    assert judged(epoch=epoch, facts=loader(num_workers=0)).starts.sum() == 0


@pytest.mark.parametrize(("workers", "regular"), [(4, True), (3, False), (1, False), (0, False)])
def test_the_rhythm_is_that_of_the_workers(workers: int, regular: bool):
    """Long waits every four batches are the rhythm of four workers, not of three, one or none."""
    assert worker_rhythm(every(4, 100.0, 1.0), workers) == regular


def test_an_unsteady_rhythm_is_a_rhythm():
    """Most gaps must be alike, not all."""
    wait = every(4, 100.0, 1.0)
    wait[3:40:4] = 1.0
    wait[5:40:6] = 100.0
    assert RHYTHM < 0.7
    assert worker_rhythm(wait, 4)


@pytest.mark.parametrize(
    ("levels", "grown"),
    [
        ((1, 3, 5, 9), True),
        ((1, 1, 1, 9), False),
        ((5, 6, 7, 8), False),
        ((9, 6, 3, 1), False),
        ((1, 9, 5, 9), False),
    ],
)
def test_growth_takes_part_in_every_quarter(levels: tuple[float, ...], grown: bool):
    """A jump, a little, the other way and up and down are no growth."""
    assert keeps_growing(levels) == grown


def test_quarters_of_epochs_are_taken_over_whole_ones():
    """Two whole epochs at least; unknown below."""
    wait = np.tile(np.repeat([1.0, 2.0, 3.0, 4.0], 5), 4)
    assert quarters_of_epochs(wait, np.array([0, 20, 40, 60])) == (1.0, 2.0, 3.0, 4.0)
    assert np.isnan(quarters_of_epochs(wait, np.array([0, 20]))).all()


def test_a_crowd_excuses_short_waits():
    """The same waits count on an idle machine and not on a busy one."""
    idle, busy = judged(data=9.0), judged(data=9.0, samples=samples(runq_share=0.4))
    assert (idle.lost_share > 0.2, busy.lost_share, busy.crowded) == (True, 0.0, True)


def test_a_stall_is_told_as_a_stall():
    """The step in which a worker hung counts for nothing here, not even as time."""
    wait = every(40, 40.0, 1.6)
    wait[70] = 9_000.0
    one = rank(data=wait)
    hung = waits(window(one, events=[event("stall", step=70)], finished=True), one)
    assert hung is not None
    assert (hung.wait_ms.max(), hung.data_share < 0.2) == (40.0, True)


def test_without_a_loader_there_is_nothing_to_judge():
    """No loader, or too few steps: no waits."""
    bare, short = rank(facts={}), rank(20)
    assert waits(window(bare), bare) is None
    assert waits(window(short), short) is None


@pytest.mark.parametrize(("runq", "lost"), [(0.2, True), (0.35, True), (0.6, False)])
def test_workers_wait_for_cpus_as_long_as_the_main_thread(runq: float, lost: bool):
    """Where the main thread waits for a CPU half of the time, so long a wait for batches is theirs."""
    one = judged(data=60.0, forward=30.0, backward=0, optimizer=0, samples=samples(runq_share=runq))
    assert one.lost_share == pytest.approx(50 / 90, abs=0.01)
    assert one.lost_at_least(0.15) == lost


@pytest.mark.parametrize(("idle", "lost"), [(0.0, 0.0), (11.0, 0.5), (22.0, 1.0), (40.0, 1.0)])
def test_a_gpu_that_works_on_meanwhile_loses_nothing(idle: float, lost: float):
    """The host is ahead of it, and waits for a batch while the GPU has enough to do."""
    rank = gpu_rank(data=22.0, rows={"gpu_idle_ms": idle})
    one = waits(on_gpu(rank), rank)
    host = waits(on_gpu(rank), gpu_rank(data=22.0, rows={"gpu_timed": 0}))
    assert one is not None
    assert host is not None
    assert (one.exposed, host.exposed) == (pytest.approx(lost), 1.0)
    assert one.lost_share == pytest.approx(lost * host.lost_share)
    assert one.saved_share() == pytest.approx(lost * host.saved_share())


def test_spikes_outlast_what_a_gpu_has_to_do():
    """It is never ahead by so much; and the few that were timed tell nothing of them."""
    rank = gpu_rank(data=every(12, 620.0, 1.6, 400), rows={"gpu_idle_ms": 0.1})
    one = waits(on_gpu(rank), rank)
    assert one is not None
    assert one.pattern == "spikes"
    assert one.lost_share > 0.4
