"""A larger batch is advised where memory and GPU leave room, from this run's numbers, and called a guess."""

from __future__ import annotations

from typing import Any

import pytest
from devices import SAMPLE, on_gpu
from windows import samples

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.memory.memory_headroom import BUSY, FILL, MOST, detect, growth
from monitor.diagnosis.signals.cuda_device import Allocator

#: 6 GB stay between steps, a batch of 32 takes 14 more, of 80 GB.
SMALL = {"cuda_allocated_mb": 6_000, "cuda_peak_mb": 20_000, "cuda_reserved_mb": 22_000}


def found(util: Any = 55, used: float = 22_500, hosts: Any = None, **more: Any) -> Finding | None:
    rows = {**SMALL, **more.pop("rows", {})}
    return detect(on_gpu(rows=rows, gpu={"gpu_util": util, "gpu_memory_used_mb": used}, hosts=hosts, **more))


def test_the_batch_that_fits_is_extrapolated_and_said_to_be() -> None:
    """What a batch takes beyond what stays grows with it; it promises no speed."""
    one = found()
    assert one is not None
    assert (one.severity, one.gain, one.evidence["batch_size"]) == ("info", None, 32)
    assert one.evidence["batch_size_that_fits"] == 128
    assert "extrapolated, not tried" in one.advice
    assert one.snippet == "batch_size=128"


def test_growth_is_what_is_left_over_what_a_batch_takes() -> None:
    """Up to nine tenths of the device, others' memory counted, and never more than four times."""
    memory = Allocator(6_000, 22_000, 0, 36_000, 80_000)
    assert growth(memory) == pytest.approx((FILL * 80_000 - 6_000) / 30_000)
    assert growth(memory, others=10_000) == pytest.approx((FILL * 70_000 - 6_000) / 30_000)
    assert growth(Allocator(1_000, 3_000, 0, 2_000, 80_000)) == MOST
    assert growth(Allocator(1_000, 3_000, 0, 1_010, 80_000)) == 1, "what a batch takes is not seen"


@pytest.mark.parametrize(("factor", "speaks"), [(0.98, True), (1.02, False)])
def test_it_speaks_below_its_thresholds(factor: float, speaks: bool) -> None:
    """GPU, memory and CPUs must leave room."""
    assert (found(util=100 * BUSY * factor) is not None) == speaks
    rows = {"cuda_peak_mb": 80_000 * BUSY * factor, "cuda_allocated_mb": 20_000}
    assert (found(rows=rows) is not None) == (speaks and growth(
        Allocator(20_000, 22_000, 0, 80_000 * BUSY * factor, 80_000)
    ) >= 1.5)  # fmt: skip
    hosts = {"here": samples(cpu_used=10 * BUSY * factor, cpu_usable=10)}
    assert (found(hosts=hosts) is not None) == speaks


def test_a_gpu_that_is_busy_now_and_then_is_busy() -> None:
    """The 95th percentile counts."""
    assert found(util=[40] * 18 + [97] * 3) is None


def test_a_run_that_waits_for_data_gains_nothing_by_it() -> None:
    """The GPU idles for another reason."""
    assert found(data=60.0) is None


def test_it_needs_the_batch_size() -> None:
    """Where samples are not counted nothing can be extrapolated."""
    assert found(samples=float("nan")) is None
    assert SAMPLE["gpu_util"] > 70
    assert detect(on_gpu()) is None
