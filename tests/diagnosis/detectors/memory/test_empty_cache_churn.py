"""A cache that is emptied in every step is told, with the line that does it."""

from __future__ import annotations

from typing import Any

import pytest
from devices import half, on_gpu

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.memory.empty_cache_churn import detect

EMPTIED = {"cuda_device_allocs": 160, "cuda_device_frees": 160, "cuda_empty_cache": 20}


def found(**rows: Any) -> Finding | None:
    return detect(on_gpu(rows={**EMPTIED, **rows}, cuda={"empty_cache_location": "train.py:44"}))


def test_the_call_is_named() -> None:
    """How much is fetched anew in each step, and where the cache is emptied."""
    one = found()
    assert one is not None
    assert (one.severity, one.location) == ("warning", "train.py:44")
    assert one.cause == "torch.cuda.empty_cache() in the loop"
    assert one.evidence["segments_fetched_per_step"] == 8
    assert one.evidence["empty_cache_per_step"] == 1


def test_without_calls_another_cause_is_given() -> None:
    """Settings can empty it as well, and no line is blamed."""
    one = found(cuda_empty_cache=0)
    assert one is not None
    assert (one.location, "garbage_collection_threshold" in one.advice) == (None, True)


@pytest.mark.parametrize(("per_row", "speaks"), [(19, False), (20, True)])
def test_it_speaks_from_one_segment_a_step_on(per_row: int, speaks: bool) -> None:
    """Given back and fetched: one alone is growth, or the end of it."""
    assert (found(cuda_device_frees=per_row) is not None) == speaks
    assert (found(cuda_device_allocs=per_row) is not None) == speaks


def test_emptying_it_once_an_epoch_is_fine() -> None:
    """What costs is doing it in every step."""
    assert found(cuda_device_allocs=[160] + [0] * 20, cuda_device_frees=[160] + [0] * 20) is None


def test_the_warm_up_counts_for_nothing() -> None:
    """Segments are fetched when training begins."""
    assert found(cuda_device_allocs=half(0, 900), cuda_device_frees=0) is None


def test_retries_are_another_matter() -> None:
    """They empty the cache too, for want of memory."""
    assert found(cuda_retries=1) is None
