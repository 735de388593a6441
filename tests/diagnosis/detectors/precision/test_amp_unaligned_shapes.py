"""Layer sizes that are no multiples of 8 matter only where they are a large part, and only in 16 bits."""

from __future__ import annotations

from typing import Any

import pytest
from windows import window

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.precision.amp_unaligned_shapes import SHARE, detect

BF16 = {"precision": {"autocast": True, "autocast_dtype": "bfloat16"}}


def found(unaligned: list[list[Any]], parameters: int, device: str = "cpu", **facts: Any) -> Finding | None:
    model = {"class": "Net", "parameters": parameters, "device": device, "unaligned": unaligned}
    return detect(window(facts={**BF16, "model/1": model, **facts}))


@pytest.mark.parametrize(("share", "speaks"), [(SHARE * 0.99, False), (SHARE * 1.01, True)])
def test_it_speaks_from_its_threshold_on(share: float, speaks: bool):
    """A small head is fine, a large part of the weights is not."""
    assert (found([["head", 250, 1001]], round(250 * 1001 / share)) is not None) == speaks


def test_a_small_head_is_fine():
    """Ten classes at the end of a large model (most of the zoo)."""
    assert found([["4", 2048, 10]], 4_741_130) is None


@pytest.mark.parametrize(("device", "severity"), [("cpu", "info"), ("cuda:0", "warning")])
def test_it_is_loud_only_where_tensor_cores_idle(device: str, severity: str):
    """On a CPU it is advice."""
    one = found([["0", 250, 250]], 70_000, device)
    assert one is not None
    assert one.severity == severity


def test_float32_is_fine():
    """Without 16-bit compute sizes do not matter."""
    assert found([["0", 250, 250]], 70_000, precision={"autocast": False}) is None


def test_it_says_the_next_size():
    """The largest layer, rounded up."""
    one = found([["small", 3, 5], ["big", 250, 1001]], 300_000)
    assert one is not None
    assert one.snippet == "nn.Linear(256, 1008)  # now 250, 1001"


@pytest.mark.parametrize(
    ("capability", "severity"), [([6, 1], "info"), ([7, 0], "warning"), (None, "warning")]
)
def test_a_gpu_without_tensor_cores_loses_little(capability: Any, severity: str):
    """There it is advice as well; of a GPU that is not known the worst is assumed."""
    one = found([["0", 250, 250]], 70_000, "cuda:0", cuda={"capability": capability})
    assert one is not None
    assert one.severity == severity
