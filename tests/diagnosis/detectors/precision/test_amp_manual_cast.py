"""Trained parameters in 16 bits are found, unless float32 is kept somewhere."""

from __future__ import annotations

from typing import Any

import pytest
from windows import window

from monitor.diagnosis.core.doctor import examine
from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.precision.amp_manual_cast import MOST, detect

AUTOCAST = {"precision": {"autocast": True, "autocast_dtype": "float16", "scaler": False}}


def found(dtypes: dict[str, int], optimizer: dict[str, Any] | None = None, **model: Any) -> Finding | None:
    whole = sum(dtypes.values())
    facts = {"model/1": {"class": "Net", "parameters": whole, "trainable": whole, "dtypes": dtypes, **model}}
    return detect(window(facts={**facts, "optimizer/1": optimizer or {}}))


@pytest.mark.parametrize(("half", "speaks"), [(MOST - 0.01, False), (MOST, True)])
def test_it_speaks_from_its_threshold_on(half: float, speaks: bool):
    """A few layers cast on purpose are fine, half of the parameters is not."""
    assert (found({"float16": round(1000 * half), "float32": round(1000 * (1 - half))}) is not None) == speaks


@pytest.mark.parametrize(
    ("dtype", "severity"), [("float16", "warning"), ("bfloat16", "info"), ("float32", None)]
)
def test_severity_fits_the_type(dtype: str, severity: str | None):
    """float16 loses updates and soon everything; bfloat16 is common for fine-tuning."""
    one = found({dtype: 1000})
    assert (one.severity if one else None) == severity


def test_a_frozen_half_model_is_fine():
    """Adapters in float32 over frozen float16 weights are trained in float32."""
    assert found({"float16": 10_000, "float32": 100}, trainable=100) is None
    assert (
        found({"float16": 10_000, "float32": 100}, trainable=100, trainable_dtypes={"float32": 100}) is None
    )


def test_master_weights_are_fine():
    """An optimizer that steps on float32 copies keeps the small updates."""
    assert found({"float16": 1000}, optimizer={"param_dtypes": {"float32": 1000}}) is None


def test_it_explains_the_missing_scaler():
    """With parameters in float16 a scaler would not help, so its absence is not told beside it."""
    half = {"class": "Net", "parameters": 10, "trainable": 10, "dtypes": {"float16": 10}}
    seen = examine(window(facts={**AUTOCAST, "model/1": half}, optimizer_steps=1.0))
    assert [finding.code for finding in seen.findings] == ["amp_manual_cast"]
