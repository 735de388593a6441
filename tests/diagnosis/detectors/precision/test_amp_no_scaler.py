"""float16 autocast without a scaler is found once the optimizer has stepped; bfloat16 needs none."""

from __future__ import annotations

from typing import Any

import pytest
from windows import rank, window

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.precision.amp_no_scaler import SURE_STEPS, detect


def found(steps: int = 50, **precision: Any) -> Finding | None:
    known = {"autocast": True, "autocast_dtype": "float16", "autocast_location": "train.py:9", **precision}
    return detect(window(rank(steps, facts={"precision": known}, optimizer_steps=1.0)))


@pytest.mark.parametrize(("steps", "speaks"), [(SURE_STEPS - 1, False), (SURE_STEPS, True)])
def test_it_waits_until_it_is_sure(steps: int, speaks: bool):
    """A scaler may be made after the first forward, so a few optimizer steps must have gone by."""
    assert (found(steps) is not None) == speaks


@pytest.mark.parametrize("precision", [{"scaler": True}, {"autocast_dtype": "bfloat16"}, {"autocast": False}])
def test_what_needs_no_scaler_is_fine(precision: dict[str, Any]):
    """A scaler, bfloat16, and no autocast at all raise nothing."""
    assert found(**precision) is None


def test_the_place_is_the_autocast_block():
    """The finding points at the line where autocast begins."""
    one = found()
    assert one is not None
    assert (one.location, one.severity, one.gain) == ("train.py:9", "warning", None)


def test_evaluation_alone_is_fine():
    """Autocast without a single optimizer step trains nothing."""
    facts = {"precision": {"autocast": True, "autocast_dtype": "float16"}}
    assert detect(window(rank(50, facts=facts))) is None
