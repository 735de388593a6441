"""nn.DataParallel is advice, and louder where it really copies the model about."""

from __future__ import annotations

from typing import Any

import pytest
from windows import env, window

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.distributed.data_parallel import SEVERAL, detect


def found(gpus: int | None, **model: Any) -> Finding | None:
    return detect(window(facts={**env(gpus=gpus), "model/1": {"class": "DataParallel", **model}}))


@pytest.mark.parametrize(("gpus", "severity"), [(None, "info"), (SEVERAL - 1, "info"), (SEVERAL, "warning")])
def test_severity_fits_the_devices(gpus: int | None, severity: str):
    """With several GPUs a fault, with one or none advice."""
    one = found(gpus, data_parallel=True)
    assert one is not None
    assert one.severity == severity


def test_other_wrappers_are_fine():
    """Distributed or bare models raise nothing."""
    assert found(8, data_parallel=False, distributed_data_parallel=True) is None


def test_the_place_is_told_where_known():
    """Where the wrapper was made."""
    one = found(1, data_parallel=True, location="train.py:18")
    assert one is not None
    assert one.location == "train.py:18"
