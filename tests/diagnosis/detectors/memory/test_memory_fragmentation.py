"""Fragmentation is what was reserved and never needed at one time, lying in pieces."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from devices import on_gpu
from sources import ROOT

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.memory.memory_fragmentation import PEAK_TIMES, SPLIT_SHARE, detect

SNAPSHOTS = ROOT.parent / "shared/data/memory_snapshots"
MIB = 2**20 / 1e6
#: A torn allocator on a device of 80 GB: 50 reserved, 20 in use, never more than 30, 15 in pieces.
TORN = {
    "cuda_reserved_mb": 50_000,
    "cuda_allocated_mb": 20_000,
    "cuda_peak_mb": 30_000,
    "cuda_split_mb": 15_000,
}


def found(total: float = 80_000, expandable: bool = False, **rows: Any) -> Finding | None:
    facts = {"total_mb": total, "expandable_segments": expandable}
    return detect(on_gpu(rows={**TORN, **rows}, cuda=facts))


def test_it_tells_what_the_setting_would_free() -> None:
    """Reserved beyond the most that was ever needed, and the variable that helps."""
    one = found()
    assert one is not None
    assert (one.severity, one.gain, one.evidence["would_free_mb"]) == ("info", None, 20_000)
    assert one.snippet == "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
    assert one.evidence["split_share"] == 0.3


def test_where_memory_is_short_it_is_a_fault() -> None:
    """Near the device's end, or once allocations are retried."""
    short, retried = found(total=60_000), found(cuda_retries=1)
    assert short is not None
    assert retried is not None
    assert (short.severity, retried.severity) == ("warning", "warning")


def test_the_setting_is_not_advised_where_it_is_on() -> None:
    """Then other advice."""
    one = found(expandable=True)
    assert one is not None
    assert (one.snippet, "pad batches" in one.advice) == ("", True)


@pytest.mark.parametrize(("factor", "speaks"), [(0.98, False), (1.02, True)])
def test_it_speaks_from_its_thresholds_on(factor: float, speaks: bool) -> None:
    """Few pieces, or pieces that the next step needs again, are an allocator at work."""
    assert (found(cuda_split_mb=50_000 * SPLIT_SHARE * factor) is not None) == speaks
    assert (found(cuda_peak_mb=50_000 / PEAK_TIMES / factor) is not None) == speaks


def test_a_device_with_room_is_left_alone() -> None:
    """Nobody is short of what lies idle on a large device."""
    assert found(total=200_000) is None


def test_a_peak_is_no_state() -> None:
    """The newest three rows must show it."""
    last = [20_000.0] * 18 + [50_000.0] + [20_000.0] * 2
    assert found(cuda_reserved_mb=last, cuda_split_mb=[1_000.0] * 21) is None


def test_an_allocator_that_tells_no_pieces_is_not_judged() -> None:
    """cudaMallocAsync has none."""
    assert found(cuda_split_mb=math.nan) is None


@pytest.mark.parametrize(
    ("name", "reserved", "allocated", "split", "speaks"),
    [
        ("medium_1024_training", 24_012, 6_556, 6_410, True),
        ("medium_128_training", 6_900, 6_501, 71, False),
    ],
)
def test_recorded_allocators(name: str, reserved: int, allocated: int, split: int, speaks: bool) -> None:
    """Two real trainings: the numbers are the known ones, and only the torn one is told of."""
    path = SNAPSHOTS / f"{name}.json"
    if not path.exists():
        pytest.skip("needs the recorded data")
    summarise = pytest.importorskip("monitor.probe.cuda.oom").summarise
    told = summarise(json.loads(path.read_text())["segments"], [], 0)
    rows = {f"cuda_{key}": told[key] for key in ("reserved_mb", "allocated_mb", "split_mb")}
    assert [round(value / MIB) for value in rows.values()] == [reserved, allocated, split]
    one = found(total=24_576 * MIB, cuda_peak_mb=math.nan, **rows)
    assert (one is not None) == speaks
    if one is not None:
        assert (one.severity, one.evidence["would_free_mb"]) == ("warning", round(split * MIB))
        assert "peak_mb" not in one.evidence
