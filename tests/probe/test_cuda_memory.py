"""The allocator's counters become one row's numbers, nested or flat, of this torch or an older one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fakecuda import counters

from monitor.probe.cuda.memory import row, value
from monitor.schema import keys_of


def flat(nested: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The same counters as torch itself flattens them for `torch.cuda.memory_stats`."""
    monkeypatch.setattr(torch.cuda.memory, "memory_stats_as_nested_dict", lambda device=None: nested)
    return dict(torch.cuda.memory_stats())


def test_what_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Megabytes are 1e6 bytes."""
    now = counters(allocated=1_000_000, reserved=3_000_000, split=500_000, peak=2_000_000)
    found = row(now, now)
    assert found["cuda_allocated_mb"] == 1
    assert found["cuda_reserved_mb"] == 3
    assert found["cuda_split_mb"] == 0.5
    assert found["cuda_peak_mb"] == 2
    assert found["cuda_segments"] == 234


def test_what_came_since_the_row_before() -> None:
    """Counts of retries, errors, segments and allocations."""
    before = counters(num_alloc_retries=2, num_ooms=1, num_device_alloc=10, allocations=100, small=60)
    now = counters(num_alloc_retries=5, num_ooms=1, num_device_alloc=14, allocations=130, small=80)
    found = row(now, before)
    assert found["cuda_retries"] == 3
    assert found["cuda_ooms"] == 0
    assert found["cuda_device_allocs"] == 4
    assert (found["cuda_allocs"], found["cuda_small_allocs"]) == (30, 20)


def test_flat_and_nested_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The public function flattens; where the private name is gone, that is what there is."""
    now, before = counters(allocations=130), counters(allocations=100)
    assert row(flat(now, monkeypatch), flat(before, monkeypatch)) == row(now, before)


def test_a_reset_by_the_program_is_no_negative_count() -> None:
    """`reset_accumulated_memory_stats` sets them to 0: what came since then is what came."""
    assert row(counters(allocations=30), counters(allocations=100))["cuda_allocs"] == 30


def test_the_first_row_counts_from_where_we_began() -> None:
    """Nothing is known of before: it counts whole."""
    assert row(counters(allocations=30), {})["cuda_allocs"] == 30


def test_another_allocator_reports_zeros_that_mean_nothing() -> None:
    """cudaMallocAsync keeps no blocks: what it cannot know is left out."""
    found = row(counters(), counters(), native=False)
    assert "cuda_split_mb" not in found
    assert "cuda_segments" not in found
    assert found["cuda_reserved_mb"] == 24_000


@pytest.mark.parametrize("missing", ["num_alloc_retries", "inactive_split_bytes", "allocation"])
def test_a_torch_that_knows_less_tells_less(missing: str) -> None:
    """A name that is missing is not measured, not zero."""
    now: dict[str, Any] = counters()
    del now[missing]
    found = row(now, now)
    assert len(found) < len(row(counters(), counters()))
    assert all(number == number for number in found.values())


@pytest.mark.parametrize("odd", [{"a": None}, {"a": {"b": "text"}}, {"a": 3}, {}])
def test_counters_of_another_shape_are_not_read(odd: dict[str, Any]) -> None:
    """Whatever a later torch makes of them, nothing is raised and nothing invented."""
    assert value(odd, ("a", "b")) is None


def test_every_number_has_its_place_in_the_schema() -> None:
    """So that store, page and detectors know it."""
    assert set(row(counters(), counters())) <= set(keys_of("cuda"))
