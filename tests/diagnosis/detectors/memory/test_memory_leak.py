"""Memory that climbs and does not stop is a leak; a drift that settles, a start, a cache are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from devices import on_gpu
from hypothesis import given, settings
from hypothesis import strategies as st
from windows import rank, samples, window

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.memory.memory_leak import FIRST_EPOCH_MB, GROWTH_MB, SOON_S, detect

#: 500 steps of 16 ms from 1 s on: 8 s, with samples every half second.
STEPS = 500
AT = np.arange(18) * 0.5
GONE_BY = (AT - 1.08) / (8.5 - 1.08)


def found(
    tree: Any, main: Any = None, *, finished: bool = True, limit: float | None = None, **more: Any
) -> Finding | None:
    hosts = {"here": samples(memory_limit_mb=limit)} if limit else None
    taken = samples(len(tree), tree_pss_mb=tree, rss_mb=tree if main is None else main)
    return detect(window(rank(STEPS, samples=taken, **more), finished=finished, hosts=hosts))


@pytest.mark.parametrize(("growth", "speaks"), [(0.97, False), (1.1, True)])
def test_it_speaks_from_its_threshold_on(growth: float, speaks: bool):
    """Growth just below what counts is silent, just above it speaks."""
    assert (found(400 + GROWTH_MB * growth * GONE_BY) is not None) == speaks


def test_it_tells_how_much_a_step():
    """The leak in MB a step, and promises no speed."""
    one = found(400 + 600 * GONE_BY)
    assert one is not None
    assert one.evidence["mb_per_step"] == pytest.approx(600 * 0.016 / 7.42, rel=0.05)
    assert (one.cause, one.gain, one.severity) == ("main process", None, "warning")


def test_a_drift_that_settles_is_no_leak():
    """Allocators and caches grow at first, less and less."""
    assert found(400 + 600 * (1 - np.exp(-4 * np.clip(GONE_BY, 0, None)))) is None


def test_a_jump_is_no_leak():
    """A second model loaded midway is large, not leaking."""
    assert found(np.where(GONE_BY < 0.5, 400.0, 1_400.0)) is None


def test_workers_that_start_are_no_leak():
    """Memory taken before training began, or in its first second, does not count."""
    assert found(np.where(AT < 1.2, 100 + 600 * AT, 820.0)) is None


def test_growing_workers_are_told_apart():
    """The main process stays flat while copies of its pages pile up in the workers."""
    one = found(400 + 600 * GONE_BY, main=np.full(18, 400.0))
    assert one is not None
    assert (one.cause, "workers grow" in one.advice) == ("loader workers", True)


def test_a_tree_that_is_measured_rarely_hides_nothing():
    """Its last number is repeated for seconds; the main process is seen climbing all the same."""
    one = found(np.full(18, 361.7), main=400 + 600 * GONE_BY)
    assert one is not None
    assert one.cause == "main process"


@pytest.mark.parametrize(
    ("finished", "growth", "speaks"), [(False, 0.9, False), (False, 1.1, True), (True, 0.9, True)]
)
def test_a_first_epoch_may_fill_a_cache(finished: bool, growth: float, speaks: bool):
    """While the first epoch lasts more is asked for; when the run is over, it has not been a cache."""
    assert (found(400 + FIRST_EPOCH_MB * growth * GONE_BY, finished=finished) is not None) == speaks


def test_a_later_epoch_is_believed():
    """A cache would be full by now."""
    epoch = np.repeat([1, 2], STEPS // 2)
    assert found(400 + 300 * GONE_BY, finished=False, epoch=epoch) is not None


@pytest.mark.parametrize(("seconds", "severity"), [(0.8, "critical"), (1.3, "warning")])
def test_a_near_limit_is_an_emergency(seconds: float, severity: str):
    """Less time than it takes to act until the limit is reached."""
    rate = 700 / (8.5 - 1.08)
    one = found(400 + 700 * GONE_BY, finished=False, limit=1_100 + rate * SOON_S * seconds)
    assert one is not None
    assert one.severity == severity


@pytest.mark.parametrize(("count", "growth", "speaks"), [(2, 9.0, False), (3, 1.8, False), (3, 2.2, True)])
def test_few_samples_must_show_much(count: int, growth: float, speaks: bool):
    """A run of seconds has few samples: three of an even, steep climb are enough, two never."""
    taken = {
        "t_s": np.linspace(1.5, 9.0, count),
        "rss_mb": 400 + GROWTH_MB * growth * np.linspace(0, 1, count),
    }
    assert (detect(window(rank(STEPS, samples=taken), finished=True)) is not None) == speaks


def test_the_tree_counts_where_it_was_measured():
    """Without a measurement of the tree the main process counts, and is not called workers."""
    one = found(np.full(18, np.nan), main=400 + 600 * GONE_BY)
    assert one is not None
    assert one.cause == "main process"


@given(st.lists(st.floats(-15, 15), min_size=18, max_size=18))
@settings(deadline=None, max_examples=20)
def test_noise_is_no_leak(noise: list[float]):
    """Memory that swings does not climb."""
    assert found(400 + np.array(noise)) is None


def test_a_leak_on_the_device():
    """What torch has allocated climbs, and the device's memory is the limit."""
    climbing = 20_000 + 300 * np.arange(21)
    one = detect(on_gpu(rows={"cuda_allocated_mb": climbing}, epoch=np.repeat([1, 2], 200)))
    assert one is not None
    assert (one.cause, one.evidence["limit_mb"], one.severity) == ("GPU memory", 80_000, "critical")
    assert one.evidence["mb_per_step"] == pytest.approx(15, rel=0.05)
    assert "loss.item()" in one.advice


def test_gradients_that_come_and_go_on_the_device_are_no_leak():
    """Rows fall on steps with and without them."""
    swinging = 20_000 + 4_000 * (np.arange(21) % 2)
    assert detect(on_gpu(rows={"cuda_allocated_mb": swinging}, epoch=np.repeat([1, 2], 200))) is None


@pytest.mark.parametrize(
    ("lasted_s", "growth", "speaks"), [(3.5, 1.8, False), (3.5, 2.2, True), (4.5, 1.8, True)]
)
def test_little_time_must_show_much(lasted_s: float, growth: float, speaks: bool):
    """However often it was looked in a run of seconds."""
    taken = {
        "t_s": np.linspace(1.5, 1.5 + lasted_s, 12),
        "rss_mb": 400 + GROWTH_MB * growth * np.linspace(0, 1, 12),
    }
    one = rank(int((1.5 + lasted_s) / 0.016), samples=taken)
    assert (detect(window(one, finished=True)) is not None) == speaks


def test_few_steps_prove_nothing():
    """A heap may grow by hundreds of megabytes in its first steps, and then no more."""
    taken = {"t_s": np.linspace(2.0, 9.0, 12), "rss_mb": 400 + 900 * np.linspace(0, 1, 12)}
    slow = {"forward": 80.0, "backward": 80.0}
    assert detect(window(rank(55, samples=taken, **slow), finished=True)) is None
    assert detect(window(rank(500, samples=taken), finished=True)) is not None


def test_memory_that_is_being_let_go_hides_no_leak():
    """A short run whose last sample came while the process ended: less than its line, more than before."""
    steps = 150
    mb = 400 + 4 * np.clip((np.arange(8) * 0.5 - 1) / 0.016, 0, steps)
    mb[-1] = mb[-2] + 5
    one = detect(window(rank(steps, samples=samples(8, rss_mb=mb, tree_pss_mb=mb)), finished=True))
    assert one is not None
    assert one.evidence["mb_per_step"] == pytest.approx(4, rel=0.1)
