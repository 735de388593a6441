"""Who held the memory when it ran out: right on recorded states of real allocators, and by name.

The recorded states (`shared/data/memory_snapshots`) have known totals; tensors on a device are stood in for
by CPU tensors that say so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from loops import error, net
from sources import ROOT
from torch import nn

from monitor.probe.cuda import oom
from monitor.probe.cuda.oom import Holding, in_frames, known, out_of_memory, requested_mb, summarise

SNAPSHOTS = ROOT.parent / "shared/data/memory_snapshots"
MIB = 2**20
recorded = pytest.mark.skipif(not SNAPSHOTS.exists(), reason="recorded data lies beside the repository")


def segment(at: int, *blocks: tuple[int, bool], device: int = 0) -> dict[str, Any]:
    """A segment at an address, of blocks of so many bytes, in use or not."""
    states = ["active_allocated" if used else "inactive" for _, used in blocks]
    sizes = [size for size, _ in blocks]
    parts = [{"size": size, "state": state} for size, state in zip(sizes, states, strict=True)]
    return {"address": at, "total_size": sum(sizes), "device": device, "blocks": parts}


def load(tokens: int) -> list[dict[str, Any]]:
    """A recorded state: GPT training with so many tokens of context."""
    found: list[dict[str, Any]] = json.loads((SNAPSHOTS / f"medium_{tokens}_training.json").read_text())[
        "segments"
    ]
    return found


@recorded
@pytest.mark.parametrize(
    ("tokens", "reserved", "allocated", "split"), [(1024, 24_012, 6_556, 6_410), (128, 6_900, 6_501, 71)]
)
def test_totals_of_recorded_states(tokens: int, reserved: int, allocated: int, split: int) -> None:
    """As data/README.md lists them, to the MiB."""
    found = summarise(load(tokens), [], 0)
    expected = {key: found[key] * 1e6 / MIB for key in ("reserved_mb", "allocated_mb", "split_mb")}
    assert expected == pytest.approx(
        {"reserved_mb": reserved, "allocated_mb": allocated, "split_mb": split}, abs=1
    )


@recorded
@pytest.mark.parametrize("tokens", [1024, 128])
def test_every_byte_is_somewhere(tokens: int) -> None:
    """Allocated, split or cached: together they are what is reserved."""
    found = summarise(load(tokens), [], 0)
    parts = found["allocated_mb"] + found["split_mb"] + found["reserved_cached_mb"]
    assert parts == pytest.approx(found["reserved_mb"])


@recorded
def test_holders_of_a_recorded_state_add_up_by_size() -> None:
    """Blocks that nobody knows are told in groups of one size, the largest sum first."""
    found = summarise(load(1024), [], 0)
    sizes = [holder["mb"] for holder in found["holders"]]
    assert len(sizes) <= 20
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) <= found["allocated_mb"] + 0.1
    assert "without a name" in found["holders"][0]["what"]


def test_a_free_piece_is_split_and_a_free_segment_is_cached() -> None:
    """Only what is caught between blocks in use is torn; a whole segment can go back to the driver."""
    found = summarise([segment(0, (10, True), (30, False)), segment(100, (50, False))], [], 0)
    assert found["split_mb"] == 30 / 1e6
    assert found["reserved_cached_mb"] == 50 / 1e6
    assert found["largest_free_mb"] == 50 / 1e6
    assert found["segments"] == 2


def test_another_devices_segments_are_left_out() -> None:
    """A snapshot holds those of all devices."""
    found = summarise([segment(0, (10, True), device=1), segment(0, (20, True))], [], 0)
    assert found["allocated_mb"] == 20 / 1e6


def test_blocks_belong_to_kinds() -> None:
    """By the address that a storage begins at, wherever in the block; the rest is other."""
    segments = [segment(0, (10, True), (10, True), (10, True), (70, True))]
    holdings = [
        Holding("optimizer", "Adam: exp_avg", 25),
        Holding("parameters", "weight", 0),
        Holding("gradients", "gradient of weight", 10),
    ]
    found = summarise(segments, holdings, 0)
    assert found["categories"] == pytest.approx(
        {"parameters": 1e-5, "gradients": 1e-5, "optimizer": 1e-5, "other": 7e-5}
    )


def test_a_block_counts_once() -> None:
    """Many views of one storage are one holder; a parameter that a function knows stays a parameter."""
    holdings = [Holding("other", "x", 0), Holding("parameters", "weight", 0), Holding("other", "y", 5)]
    found = summarise([segment(0, (10, True))], holdings, 0)
    assert found["categories"]["parameters"] == 1e-5
    assert [holder["what"] for holder in found["holders"]] == ["weight"]


@pytest.mark.parametrize("address", [-5, 10, 15, 999])
def test_addresses_elsewhere_claim_nothing(address: int) -> None:
    """A free block, or another allocator's memory."""
    found = summarise([segment(0, (10, True), (10, False))], [Holding("parameters", "w", address)], 0)
    assert found["categories"]["parameters"] == 0


def test_nothing_at_all() -> None:
    """An allocator that holds nothing."""
    assert summarise([], [], 0)["allocated_mb"] == 0


@pytest.mark.parametrize(
    ("text", "mb"),
    [
        ("CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has", 20 * MIB / 1e6),
        ("Tried to allocate 2.50 GiB (GPU 0; 10.00 GiB total", 2.5 * 2**30 / 1e6),
        ("Tried to allocate 512 bytes.", 512 / 1e6),
        ("something else", None),
    ],
)
def test_what_was_asked_for(text: str, mb: float | None) -> None:
    """As torch's message says it, in several versions."""
    assert requested_mb(text) == (None if mb is None else pytest.approx(mb))


def test_the_error_is_found_among_causes() -> None:
    """Frameworks wrap it in an exception of their own."""
    inner = torch.cuda.OutOfMemoryError("CUDA out of memory")
    outer = RuntimeError("training failed")
    outer.__cause__ = inner
    assert out_of_memory(outer) is inner


def test_other_errors_are_none() -> None:
    """Also a host's memory error, and causes in a ring."""
    assert out_of_memory(MemoryError()) is None
    assert out_of_memory(None) is None
    first, second = ValueError(), ValueError()
    first.__context__, second.__context__ = second, first
    assert out_of_memory(first) is None


@pytest.fixture
def on_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tensor lies on a device: here their CPU addresses stand for those there."""
    monkeypatch.setattr(
        oom,
        "_address",
        lambda value: value.untyped_storage().data_ptr() if isinstance(value, torch.Tensor) else 0,
    )


@pytest.mark.usefixtures("on_device")
def test_model_and_optimizer_are_known() -> None:
    """Parameters, gradients, buffers and the optimizer's state, each by its name."""
    model = nn.Sequential(net(), nn.BatchNorm1d(1))
    optimizer = torch.optim.Adam(model.parameters())
    error(model, (torch.randn(8, 6), torch.randn(8, 1))).backward()
    optimizer.step()
    found = {(holding.kind, holding.what) for holding in known([model], [optimizer])}
    assert ("parameters", "0.0.weight") in found
    assert ("parameters", "1.running_mean") in found
    assert ("gradients", "gradient of 0.0.weight") in found
    assert ("optimizer", "Adam: exp_avg_sq") in found


@pytest.mark.usefixtures("on_device")
def test_a_model_that_nobody_named_is_known_by_its_optimizer() -> None:
    """Its parameters are in the optimizer's groups."""
    found = known([], [torch.optim.SGD(net().parameters(), lr=0.1)])
    assert {holding.kind for holding in found} == {"parameters"}


def test_tensors_on_the_host_hold_nothing_there() -> None:
    """Neither do lazy parameters, sparse tensors or none at all."""
    assert known([net(), nn.LazyLinear(3)], []) == []
    assert oom._address(torch.eye(3).to_sparse()) == 0
    assert oom._address(None) == 0


def broken(x: torch.Tensor) -> None:
    """A function of the user's that fails with a large tensor in hand."""
    logits = x.repeat(4, 1)
    raise torch.cuda.OutOfMemoryError(f"CUDA out of memory {len(logits)}")


@pytest.mark.usefixtures("on_device")
def test_tensors_that_functions_know_are_named() -> None:
    """With their shape and the line that was running: what cannot be read off the model."""
    try:
        broken(torch.zeros(2, 5))
    except torch.cuda.OutOfMemoryError as error:
        found = {holding.what: holding.location for holding in in_frames(error)}
    assert "x [2×5] float32" in found
    location = found["logits [8×5] float32"]
    assert location is not None
    assert Path(location.rpartition(":")[0]).name == "test_cuda_oom.py"
