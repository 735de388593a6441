"""Many small tensors are told of where the GPU waits for the host, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
from devices import on_gpu

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.memory.small_allocations import ALLOCATIONS, EVERY_US, detect

#: 2,500 small tensors in a step of 50 ms, and a GPU that is done with each step early.
MANY = {"cuda_small_allocs": 50_000, "cuda_allocs": 60_000, "gpu_caught_up": 1.0}


def found(other: float = 30.0, **rows: Any) -> Finding | None:
    return detect(on_gpu(rows={**MANY, **rows}, other=other))


def test_it_is_advice() -> None:
    """With how many, and how often one is made."""
    one = found()
    assert one is not None
    assert (one.severity, one.gain) == ("info", None)
    assert one.evidence["small_allocations_per_step"] == 2_500
    assert one.evidence["every_us"] == pytest.approx(20, rel=0.1)


@pytest.mark.parametrize(("factor", "speaks"), [(0.97, False), (1.03, True)])
def test_it_speaks_from_its_thresholds_on(factor: float, speaks: bool) -> None:
    """So many in a step, so close to one another."""
    few = ALLOCATIONS * factor * 20
    assert (found(other=0.0, cuda_small_allocs=few) is not None) == speaks
    assert (found(other=2_500 * EVERY_US / 1e3 / factor - 20) is not None) == speaks


def test_behind_arithmetic_they_cost_nothing() -> None:
    """A GPU that is behind does not wait for them; nor is anything said where it was not timed."""
    assert found(gpu_caught_up=0.5) is None
    assert found(gpu_timed=0) is None
