"""Single slow steps are told when they are several, rare, scattered, and cost something."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from windows import STEPS, rank, samples, window

from monitor.diagnosis.detectors.time.step_outliers import GC_SHARE, LOST_SHARE, SEVERAL, TIMES, detect

#: Working time of a healthy step.
WORK_MS = 14.0


def now_and_then(period: int, value: float, usual: float, count: int = STEPS) -> np.ndarray:
    """`usual`, and `value` about every `period` steps: what keeps time is no outlier."""
    column = np.full(count, usual)
    where = np.arange(period - 1, count, period)
    column[where - np.resize([0, period // 2, period // 4], len(where))] = value
    return column


def test_what_comes_in_a_rhythm_is_done_on_purpose():
    """A rollout before every sixteenth update: each of them takes its time by design."""
    rollout = np.full(STEPS, 5.0)
    rollout[15::16] = 300.0
    assert detect(window(forward=rollout)) is None


def test_more_backward_passes_take_longer():
    """LBFGS evaluates now five times, now once: the work of a step is what it runs."""
    calls = now_and_then(20, 8.0, 1.0)
    assert detect(window(rank(optimizer=calls * 20, backward_calls=calls))) is None


@pytest.mark.parametrize(("factor", "speaks"), [(0.97, False), (1.03, True)])
def test_it_speaks_from_its_threshold_on(factor: float, speaks: bool):
    """Just below the share that counts it is silent, just above it speaks."""
    lost = LOST_SHARE * factor
    extra = 20 * (WORK_MS + 2) * lost / (1 - lost)
    assert WORK_MS + extra > TIMES * WORK_MS, "both must be outliers at all"
    assert (detect(window(rank(205, forward=now_and_then(20, 5 + extra, 5.0, 205)))) is not None) == speaks


def test_the_phase_is_named():
    """Slow steps that are slow in backward are called so, and promise what they cost."""
    found = detect(window(backward=now_and_then(20, 200.0, 8.0)))
    assert found is not None
    assert found.gain is not None
    assert found.cause == "slow backward"
    assert found.gain.speedup == pytest.approx((20 * 16 + 192) / (20 * 16), rel=0.05)


def test_garbage_collection_is_named():
    """A few full collections of hundreds of ms, each longer than the last (gc_pauses)."""
    pauses = np.zeros(150)
    pauses[[20, 35, 52, 70, 91, 115, 140]] = np.linspace(100, 670, 7)
    found = detect(
        window(rank(150, data=0.4, forward=2, backward=2, optimizer=1, other=pauses + 0.5, gc_ms=pauses))
    )
    assert found is not None
    assert (found.cause, "gc.freeze()" in found.snippet) == ("garbage collection", True)


@pytest.mark.parametrize(("factor", "speaks"), [(0.97, False), (1.03, True)])
def test_collecting_in_every_step_is_told_too(factor: float, speaks: bool):
    """Its time is measured, so it needs no outlier to show."""
    share = GC_SHARE * factor
    collecting = 16 * share / (1 - share)
    columns = np.full(STEPS, collecting)
    columns[0] *= 1.5  # the longest does not count
    assert (detect(window(other=columns, gc_ms=columns)) is not None) == speaks


@pytest.mark.parametrize(("others_ms", "speaks"), [(5.0, False), (250.0, True)])
def test_one_collection_is_no_habit(others_ms: float, speaks: bool):
    """A second's collection in a run of three seconds happens by itself; several cost."""
    pauses = np.zeros(STEPS)
    pauses[[20, 60, 100]] = [others_ms, 1000.0, others_ms]
    assert (detect(window(other=pauses, gc_ms=pauses)) is not None) == speaks


def test_collecting_for_less_than_half_a_second_is_nobodys_trouble():
    """A run of a tenth of a second in which it takes a third."""
    tiny = {"data": 0.0, "forward": 0.2, "backward": 0.2, "optimizer": 0.1}
    assert detect(window(other=0.25, gc_ms=0.25, **tiny)) is None


@pytest.mark.parametrize(("times", "speaks"), [(SEVERAL - 1, False), (SEVERAL, True)])
def test_one_pause_is_no_alarm(times: int, speaks: bool):
    """Fewer than several slow steps are chance, however slow."""
    forward = np.full(200, 5.0)
    forward[20 : 20 + times * 40 : 40] = 2_000
    assert (detect(window(forward=forward)) is not None) == speaks


def test_accumulation_is_a_rhythm():
    """Steps in which the optimizer runs are compared among themselves (ok_grad_accum)."""
    due = np.arange(200) % 8 == 7
    heavy = {"optimizer": np.where(due, 60.0, 0.0), "optimizer_steps": np.where(due, 1.0, 0.0)}
    assert detect(window(**heavy)) is None


def test_large_batches_take_long():
    """A step whose batch is five times as large may take five times as long (ok_var_seqlen)."""
    size = now_and_then(10, 500.0, 100.0)
    assert detect(window(forward=size / 20, backward=size / 12, batch_elements=size)) is None
    assert detect(window(forward=size / 20, backward=size / 12)) is not None


def test_a_lasting_slowdown_is_no_outlier():
    """From some step on all are slow: another finding's business (regress_midway)."""
    assert detect(window(forward=np.where(np.arange(200) < 100, 5.0, 60.0))) is None
    assert detect(window(forward=np.where(np.arange(200) < 170, 5.0, 90.0))) is None


@pytest.mark.parametrize("phase", ["data", "checkpoint", "eval", "comm"])
def test_what_has_its_own_detector_is_left_alone(phase: str):
    """Slow waiting, saving, evaluating and communicating are others' business."""
    assert detect(window(**{phase: now_and_then(20, 900.0, 0.0)})) is None


def test_preemption_is_no_fault_of_the_steps():
    """While others take the CPUs any step may be slow."""
    assert detect(window(rank(forward=now_and_then(20, 200.0, 5.0), samples=samples(runq_share=0.3)))) is None


def test_less_than_half_a_second_is_nobodys_trouble():
    """A run of a third of a second with ten pauses of the machine's, of some ms each."""
    assert detect(window(data=0.1, forward=now_and_then(20, 7.5, 0.25), backward=0.4, optimizer=0.05)) is None


@given(scale=st.floats(0.5, 50))
@settings(deadline=None, max_examples=20)
def test_scaling_time_changes_nothing(scale: float):
    """The rule is relative."""
    times = {"data": 2 * scale, "backward": 8 * scale, "optimizer": scale}
    assert detect(window(forward=now_and_then(20, 150 * scale, 5 * scale), **times)) is not None
    assert detect(window(forward=now_and_then(20, 30 * scale, 5 * scale), **times)) is None


@given(st.lists(st.floats(0, 20), min_size=200, max_size=200))
@settings(deadline=None, max_examples=20)
def test_noise_below_the_threshold_changes_nothing(noise: list[float]):
    """Steps that swing to twice their time are no outliers."""
    assert detect(window(forward=10 + np.array(noise))) is None
