"""What torch is asked of its device, and that versions that know less are no error."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from monitor.probe.cuda.device import Torch, describe

A100 = SimpleNamespace(
    name="NVIDIA A100-SXM4-40GB",
    major=8,
    minor=0,
    total_memory=42_298_834_944,
    multi_processor_count=108,
    uuid="c0ffee00-1111-2222-3333-444455556666",
)


RESERVED = {0: 0, 1: 0, 2: 4096}


@pytest.fixture(params=["built without CUDA", "built with CUDA"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Torch:
    """Torch's answers as one with CUDA gives them, at the edge where this one has none."""
    if request.param == "built with CUDA":
        counters = {i: {"reserved_bytes": {"all": {"current": size}}} for i, size in RESERVED.items()}
        monkeypatch.setattr(torch._C, "_cuda_memoryStats", counters.__getitem__, raising=False)
    else:
        monkeypatch.delattr(torch._C, "_cuda_memoryStats", raising=False)
    answers: dict[str, Any] = {
        "current_device": lambda: 1,
        "device_count": lambda: 3,
        "get_device_properties": lambda index: SimpleNamespace(**{**vars(A100), "uuid": f"uuid-{index}"}),
        "memory_reserved": RESERVED.__getitem__,
        "get_allocator_backend": lambda: "native",
        "mem_get_info": lambda: (3_000_000, 10_000_000),
    }
    for name, answer in answers.items():
        monkeypatch.setattr(torch.cuda, name, answer)
    return Torch()


def test_a_device_is_described() -> None:
    """In the units and the spelling that the agent and the page use."""
    assert describe(A100) == {
        "name": "NVIDIA A100-SXM4-40GB",
        "capability": [8, 0],
        "total_mb": 42298.8,
        "sm_count": 108,
        "uuid": "GPU-c0ffee00-1111-2222-3333-444455556666",
    }


@pytest.mark.parametrize("uuid", ["GPU-1", "MIG-1"])
def test_a_uuid_that_says_what_it_is_stays(uuid: str) -> None:
    """Some versions write it whole."""
    assert describe(SimpleNamespace(**{**vars(A100), "uuid": uuid}))["uuid"] == uuid


def test_a_torch_that_knows_no_uuid() -> None:
    """It is not known, then."""
    assert describe(SimpleNamespace(**{k: v for k, v in vars(A100).items() if k != "uuid"}))["uuid"] is None


def test_devices_that_hold_memory_are_named(device: Torch) -> None:
    """The current one first; those that the process never used are none of its own."""
    assert device.facts()["uuids"] == ["GPU-uuid-1", "GPU-uuid-2"]


def test_settings_are_told(device: Torch, monkeypatch: pytest.MonkeyPatch) -> None:
    """The allocator's by whichever name it was given."""
    monkeypatch.delenv("PYTORCH_ALLOC_CONF", raising=False)
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64, expandable_segments: True")
    found = device.facts()
    assert found["conf"] == "max_split_size_mb:64, expandable_segments: True"
    assert found["expandable_segments"] is True
    assert found["matmul_precision"] == "highest"
    assert found["cudnn_benchmark"] is False
    assert (found["device"], found["devices"], found["backend"]) == (1, 3, "native")


def test_without_setting_segments_do_not_expand(device: Torch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's default."""
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"):
        monkeypatch.delenv(name, raising=False)
    assert device.facts()["expandable_segments"] is False


def test_a_question_that_torch_refuses_is_left_out(device: Torch, monkeypatch: pytest.MonkeyPatch) -> None:
    """All others are answered."""

    def refuses(*_: Any) -> Any:
        raise RuntimeError("no")

    monkeypatch.setattr(torch.cuda, "get_device_properties", refuses)
    found = device.facts()
    assert "name" not in found
    assert found["cudnn_benchmark"] is False


def test_memory_that_is_free_is_in_megabytes(device: Torch) -> None:
    """1e6 bytes, as everywhere."""
    assert device.free_mb() == 3


def test_counters_come_from_the_quick_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the current device; flattening them costs more than all the rest."""
    monkeypatch.setattr(torch._C, "_cuda_memoryStats", lambda index: {"device": index}, raising=False)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 2)
    device = Torch()
    assert device.quick
    assert device.memory() == {"device": 2}


def test_counters_of_a_torch_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The public function, which then is asked less often."""
    monkeypatch.delattr(torch._C, "_cuda_memoryStats", raising=False)
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda: {"num_ooms": 0})
    device = Torch()
    assert not device.quick
    assert device.memory() == {"num_ooms": 0}


@pytest.mark.parametrize("light", [True, False])
def test_the_light_form_of_a_snapshot(light: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without traces where that can be asked for; older versions know no such word."""
    asked: list[Any] = []

    def newer(include_traces: bool = True) -> list[Any]:
        asked.append(include_traces)
        return [1]

    def older() -> list[Any]:
        return [1]

    monkeypatch.setattr(torch.cuda, "memory_snapshot", newer if light else older)
    assert Torch().segments() == [1]
    assert asked == ([False] if light else [])
