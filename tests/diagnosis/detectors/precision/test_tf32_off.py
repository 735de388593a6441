"""TensorFloat-32 is advised where float32 matrix products take the step, on hardware that has it."""

from __future__ import annotations

from typing import Any

import pytest
from devices import MODEL, on_gpu

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.precision.tf32_off import COMPUTE_MS, COMPUTE_SHARE, detect

FLOAT32 = {"precision": {"autocast": False}, "model/1": MODEL}


def found(facts: dict[str, Any] | None = None, rows: Any = None, **cuda: Any) -> Finding | None:
    known = {"matmul_precision": "highest", "capability": [8, 0], **cuda}
    return detect(on_gpu(facts={**FLOAT32, **(facts or {})}, rows=rows, cuda=known))


def test_it_is_advice_and_promises_nothing() -> None:
    """It changes the last bits of results: the user decides."""
    one = found()
    assert one is not None
    assert (one.severity, one.gain) == ("info", None)
    assert one.evidence["compute_capability"] == "8.0"
    assert 'set_float32_matmul_precision("high")' in one.snippet


@pytest.mark.parametrize("cuda", [
    {"matmul_precision": "high"}, {"capability": [7, 5]}, {"capability": None},
    {"capability": [9, 4], "hip": "6.2"},
])  # fmt: skip
def test_where_it_is_on_or_missing_nothing_is_said(cuda: dict[str, Any]) -> None:
    """Ampere and newer have it; AMD's numbers mean something else."""
    assert found(**cuda) is None


@pytest.mark.parametrize("model", [
    {**MODEL, "dtypes": {"bfloat16": 1_000_000}},
    {**MODEL, "matmuls": [{"kind": "conv", "elements": 900_000}, {"kind": "linear", "elements": 1_000}]},
    {**MODEL, "device": "cpu"},
    {**MODEL, "matmuls": None},
])  # fmt: skip
def test_models_that_would_not_gain(model: dict[str, Any]) -> None:
    """16-bit ones, convolutional ones (which use it anyway), and those elsewhere."""
    assert found({"model/1": model}) is None


def test_under_autocast_it_hardly_matters() -> None:
    """The products are in 16 bits."""
    assert found({"precision": {"autocast": True}}) is None


@pytest.mark.parametrize(("factor", "speaks"), [(0.98, False), (1.02, True)])
def test_it_speaks_from_its_thresholds_on(factor: float, speaks: bool) -> None:
    """The GPU's own time counts, not the host's, which only launches."""
    times = {"gpu_forward_ms": COMPUTE_MS * factor, "gpu_backward_ms": 0, "gpu_step_ms": 12}
    assert (found(rows=times) is not None) == speaks
    times = {"gpu_forward_ms": 40, "gpu_backward_ms": 0, "gpu_step_ms": 40 / COMPUTE_SHARE / factor}
    assert (found(rows=times) is not None) == speaks


def test_a_gpu_that_waits_for_launches_gains_nothing() -> None:
    """Its kernels are over before the next one comes."""
    assert found(rows={"gpu_caught_up": 1, "gpu_starved_ms": 45}) is None
