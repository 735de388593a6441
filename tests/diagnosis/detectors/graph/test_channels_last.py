"""channels_last is advice where convolutions dominate, and silent elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from windows import rank, window

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.graph.channels_last import COMPUTE_MS, COMPUTE_SHARE, LAYERS, detect


def found(
    facts: dict[str, Any] | None = None, forward: float = 20.0, other: float = 0.0, **model: Any
) -> Finding | None:
    known = {"class": "Net", "conv_layers": 4, "conv_channels_last": 0, "device": "cpu", **model}
    times = {"forward": forward, "backward": 0, "optimizer": 0, "data": 0, "other": other}
    return detect(window(rank(60, facts={"model/1": known, **(facts or {})}, **times)))


def test_it_is_advice_and_promises_nothing():
    """Information, with the two lines to try."""
    one = found()
    assert one is not None
    assert (one.severity, one.gain, one.snippet.count("channels_last")) == ("info", None, 2)


@pytest.mark.parametrize(("layers", "speaks"), [(LAYERS - 1, False), (LAYERS, True)])
def test_it_needs_convolutions(layers: int, speaks: bool):
    """Too few convolutions do not make a convolutional model."""
    assert (found(conv_layers=layers) is not None) == speaks


@pytest.mark.parametrize(("forward", "speaks"), [(0.99, False), (1.01, True)])
def test_it_needs_compute(forward: float, speaks: bool):
    """Very short steps, or steps that are spent elsewhere, gain nothing."""
    assert (found(forward=COMPUTE_MS * forward) is not None) == speaks
    share = COMPUTE_SHARE * forward
    assert (found(forward=20.0, other=20 * (1 - share) / share) is not None) == speaks


@pytest.mark.parametrize("model", [{"conv_channels_last": 3}, {"channels_last": True}])
def test_what_is_done_already_is_fine(model: dict[str, Any]):
    """A model in channels_last needs no advice."""
    assert found(**model) is None


def test_on_gpus_it_goes_with_16_bits():
    """Tensor Cores are what profits there, so float32 is not advised."""
    assert found(device="cuda:0") is None
    half = {"precision": {"autocast": True, "autocast_dtype": "float16"}}
    assert found(half, device="cuda:0") is not None
