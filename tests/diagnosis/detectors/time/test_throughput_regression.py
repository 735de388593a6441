"""A lasting slowdown is told with its step and its cause; more work and busy machines are no fault."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from windows import rank, samples, window

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.time.throughput_regression import STEPS, TIMES, detect

COUNT = 400


def change(before: float, after: float, at: int = 200, count: int = COUNT) -> np.ndarray:
    return np.where(np.arange(count) < at, before, after)


def found(backward: np.ndarray, **more: Any) -> Finding | None:
    return detect(window(rank(len(backward), backward=backward, forward=4, optimizer=0, **more)))


@pytest.mark.parametrize(("times", "speaks"), [(TIMES - 0.02, False), (TIMES + 0.02, True)])
def test_it_speaks_from_its_threshold_on(times: float, speaks: bool):
    """Just below the factor that counts it is silent, just above it speaks."""
    assert (found(change(6.0, 10 * times - 4)) is not None) == speaks


def test_it_tells_when_and_how_much():
    """Step, phase, before and after, and what going back would bring (regress_midway: 4 → 11 ms)."""
    one = found(change(4.0, 18.0))
    assert one is not None
    assert one.gain is not None
    assert (one.cause, one.first_step, one.severity) == ("slower backward", 200, "warning")
    assert (one.evidence["before_ms"], one.evidence["after_ms"]) == (8.0, 22.0)
    assert one.gain.speedup == pytest.approx((195 * 10 + 200 * 24) / 3950)


@pytest.mark.parametrize(
    ("at", "speaks"),
    [(STEPS + 3, False), (STEPS + 6, True), (COUNT - STEPS, True), (COUNT - STEPS + 1, False)],
)
def test_both_sides_must_last(at: int, speaks: bool):
    """Enough steps before and after; a start that is fast for a moment is no norm."""
    assert (found(change(6.0, 60.0, at)) is not None) == speaks


def test_what_passes_is_no_regression():
    """Slow for a while and fast again at the end."""
    backward = change(6.0, 40.0, 200)
    backward[340:] = 6.0
    assert found(backward) is None


@pytest.mark.parametrize(("others", "severity"), [(0.1, "warning"), (1.5, "info")])
def test_others_that_took_the_cpus_from_there_on(others: float, severity: str):
    """The main thread queues for none itself while it waits for threads that do."""
    one = rank(COUNT, backward=change(4.0, 18.0), forward=4, optimizer=0, samples=samples(main_cpu=0.4))
    late = np.arange(20) * 0.5 > float(one.steps["t_s"][200])
    hosts = {"box": samples(cpu_used=np.where(late, 0.4 + others, 0.4), cpu_usable=2.0)}
    found = detect(window(one, hosts=hosts))
    assert found is not None
    assert found.severity == severity


def test_speeding_up_is_fine():
    """The other way round is good news."""
    assert found(change(40.0, 6.0)) is None


def test_anomaly_detection_is_named():
    """A debug switch that was left on."""
    one = found(change(6.0, 26.0), facts={"anomaly_mode": {"on": True}})
    assert one is not None
    assert (one.cause, one.severity) == ("anomaly detection is on", "warning")


@pytest.mark.parametrize(
    "column", ["batch_elements", "tokens", "samples", "backward_calls", "optimizer_steps"]
)
def test_more_work_is_no_fault(column: str):
    """A curriculum, larger batches, more passes a step: information."""
    one = found(change(6.0, 26.0), **{column: change(1.0, 2.0)})
    assert one is not None
    assert (one.severity, one.gain) == ("info", None)


def test_arriving_neighbours_are_no_fault():
    """Others took the CPUs from there on: information, and noisy_neighbour's business."""
    backward = change(6.0, 26.0)
    ends = 1 + np.cumsum(backward + 6) / 1e3
    taken = samples(30, 0.3, runq_share=np.where(np.arange(30) * 0.3 < ends[200], 0.0, 0.5))
    one = found(backward, samples=taken)
    assert one is not None
    assert (one.cause, one.severity) == ("noisy neighbour", "info")


@pytest.mark.parametrize("phase", ["data", "checkpoint", "eval", "comm"])
def test_what_has_its_own_detector_is_left_alone(phase: str):
    """Waiting, saving, evaluating and communicating that grow are others' business."""
    assert detect(window(rank(COUNT, **{phase: change(2.0, 80.0)}))) is None


def test_a_long_window_is_judged_in_blocks():
    """A hundred thousand steps: the change is found within a block's width."""
    backward = change(6.0, 26.0, 70_000, 100_000) / 10
    one = detect(window(rank(100_000, data=0.1, forward=0.4, optimizer=0, backward=backward)))
    assert one is not None
    assert one.first_step == pytest.approx(70_000, abs=60)


@given(seed=st.integers(0, 1000), swing=st.floats(0, 1.4))
@settings(deadline=None, max_examples=30)
def test_noise_is_no_regression(seed: int, swing: float):
    """Steps that swing several-fold at random have no before and after (ok_var_seqlen)."""
    noise = np.random.default_rng(seed).normal(0, swing / 2, COUNT)
    assert found(10 * np.exp(noise)) is None


@given(scale=st.floats(1, 50))
@settings(deadline=None, max_examples=20)
def test_scaling_time_changes_nothing(scale: float):
    """The rule is relative."""
    times = {"data": 2 * scale, "forward": 4 * scale, "optimizer": 0}
    assert detect(window(rank(COUNT, backward=change(6.0, 20.0) * scale, **times))) is not None
    assert detect(window(rank(COUNT, backward=change(6.0, 10.0) * scale, **times))) is None
