"""Low utilisation is told of where nothing else explains it."""

from __future__ import annotations

from typing import Any

import pytest
from devices import SAMPLE, gpu_rank, on_gpu
from windows import samples

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.gpu.gpu_underused import LOW, LOW_P95, UNEXPLAINED, detect


def found(util: Any = 30, **more: Any) -> Finding | None:
    return detect(on_gpu(gpu={"gpu_util": util}, **more))


def test_it_names_the_device_and_what_is_unexplained() -> None:
    """Two thirds of the time, for no reason that is known; nothing is promised."""
    one = found()
    assert one is not None
    assert (one.severity, one.gain, one.evidence["gpu"]) == ("warning", None, "here/0")
    assert one.evidence["unexplained_share"] == pytest.approx(0.68, abs=0.01)


@pytest.mark.parametrize(("factor", "speaks"), [(0.98, True), (1.02, False)])
def test_it_speaks_below_its_thresholds(factor: float, speaks: bool) -> None:
    """Usually low, and hardly ever high."""
    assert (found(LOW * factor) is not None) == speaks
    assert (found([30] * 15 + [LOW_P95 * factor] * 6) is not None) == speaks


@pytest.mark.parametrize(("factor", "speaks"), [(0.97, False), (1.03, True)])
def test_what_has_a_finding_of_its_own_is_not_told_twice(factor: float, speaks: bool) -> None:
    """Waiting for data, saving and evaluating explain an idle GPU."""
    explained = 0.7 - UNEXPLAINED * factor
    work = 50.0 * (1 - explained)
    assert (found(data=50.0 * explained, other=work - 19.0) is not None) == speaks


def test_a_gpu_that_waits_for_launches_is_explained() -> None:
    """That has a finding of its own, however grave."""
    assert found(rows={"gpu_caught_up": 1, "gpu_starved_ms": 45}) is None


def test_few_samples_prove_nothing() -> None:
    """Utilisation swings; where the driver does not tell it, nothing is said."""
    nothing = float("nan")
    assert found([nothing] * 21) is None


def test_only_the_device_that_does_little_is_named() -> None:
    """Of two, by the ranks that use it."""
    busy = gpu_rank(1, cuda={"uuid": "GPU-bb-11"})
    one = detect(on_gpu(
        gpu_rank(), busy, gpu={"gpu_util": 20}, gpus={"here/1": samples(21, 1.0, **SAMPLE)},
        listed=[{"gpu": "1", "uuid": "GPU-bb-11", "name": "Other"}],
    ))  # fmt: skip
    assert one is not None
    assert (one.ranks, one.evidence["device"]) == ((0,), "Big GPU")
