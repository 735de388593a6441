"""Mixed precision is advised only where the hardware is fast at it and the arithmetic dominates."""

from __future__ import annotations

from typing import Any

import pytest
from devices import on_gpu
from windows import env, rank, window

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.precision.amp_off import COMPUTE_MS, COMPUTE_SHARE, ROWS, detect

CNN = {"class": "Net", "conv_layers": 3, "dtypes": {"float32": 1000}, "device": "cpu"}
MLP = {**CNN, "conv_layers": 0}
FAST = {"cpu_capabilities": ["amx_bf16", "avx512_bf16"]}


def found(
    model: dict[str, Any] = CNN,
    process: dict[str, Any] = FAST,
    /,
    forward: float = 30.0,
    other: float = 0.0,
    **precision: Any,
) -> Finding | None:
    facts = {**env(**process), "model/1": model, "precision": {"autocast": False, **precision}}
    times = {"forward": forward, "backward": 0, "optimizer": 0, "data": 0, "other": other}
    return detect(window(rank(60, facts=facts, **times)))


def test_it_is_advice_and_promises_nothing():
    """Information, with the block to try, for the right device."""
    one = found()
    assert one is not None
    assert (one.severity, one.gain) == ("info", None)
    assert 'torch.autocast("cpu", dtype=torch.bfloat16)' in one.snippet


@pytest.mark.parametrize("process", [{}, {"cpu_capabilities": []}])
def test_slow_hardware_is_left_alone(process: dict[str, Any]):
    """Emulated bfloat16 is slower than float32."""
    assert found(CNN, process) is None


def test_small_linear_layers_on_cpus_are_left_alone():
    """Casting the weights costs more than it saves when few rows use them."""
    assert found(MLP) is None
    assert found({**MLP, "linear_rows": ROWS - 1}) is None
    assert found({**MLP, "linear_rows": ROWS}) is not None


@pytest.mark.parametrize(("capability", "speaks"), [([6, 1], False), ([7, 0], True), (None, False)])
def test_gpus_need_tensor_cores(capability: list[int] | None, speaks: bool):
    """From the first generation with Tensor Cores on, for any kind of layer."""
    gpu = {**MLP, "device": "cuda:0"}
    assert (found(gpu, {"device_capability": capability}) is not None) == speaks


@pytest.mark.parametrize(("factor", "speaks"), [(0.99, False), (1.01, True)])
def test_it_speaks_from_its_thresholds_on(factor: float, speaks: bool):
    """Tiny steps and steps spent elsewhere gain nothing."""
    assert (found(forward=COMPUTE_MS * factor) is not None) == speaks
    share = COMPUTE_SHARE * factor
    assert (found(other=30 * (1 - share) / share) is not None) == speaks


def test_what_is_on_already_is_fine():
    """Autocast, or parameters in 16 bits, need no advice."""
    assert found(autocast=True) is None
    assert found({**CNN, "dtypes": {"bfloat16": 1000}}) is None


def on_device(rows: Any = None, gpu: Any = None, **cuda: Any) -> Finding | None:
    facts = {"precision": {"autocast": False}}
    return detect(on_gpu(rows=rows, gpu=gpu, cuda=cuda, facts=facts))


def test_on_a_gpu_its_own_time_counts():
    """The host only launches: what forward and backward take of it says nothing."""
    one = on_device()
    assert one is not None
    assert (one.evidence["hardware"], one.evidence["tensor_activity_percent"]) == ("Tensor Cores", 40)
    assert one.evidence["compute_share"] == pytest.approx(47 / 50)
    assert on_device({"gpu_forward_ms": 3, "gpu_backward_ms": 4}) is None
    assert on_device({"gpu_caught_up": 1, "gpu_starved_ms": 45}) is None, "it waits for launches"


def test_only_nvidia_s_numbers_are_read_as_such():
    """AMD's devices have numbers of another kind; an old one has no Tensor Cores."""
    assert on_device(capability=[6, 1]) is None
    assert on_device(hip="6.2") is None
