"""Memory that is nearly full for a while is told, by kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from devices import on_gpu
from windows import event, loader, rank, samples, window

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.memory.memory_pressure import CRITICAL, LASTING, WARNING, detect


def found(facts: dict[str, Any] | None = None, **host: Any) -> Finding | None:
    return detect(window(rank(facts=facts), hosts={"here": samples(10, **host)}))


@pytest.mark.parametrize(
    ("share", "severity"),
    [
        (WARNING - 0.005, None),
        (WARNING + 0.005, "warning"),
        (CRITICAL - 0.005, "warning"),
        (CRITICAL + 0.005, "critical"),
    ],
)
def test_it_speaks_from_its_thresholds_on(share: float, severity: str | None):
    """Below silent, above a warning, at the limit an emergency."""
    one = found(cgroup_memory_mb=1_000 * share, memory_limit_mb=1_000.0)
    assert (one.severity if one else None) == severity


def test_a_peak_is_no_state():
    """Memory that was full in all but one of the newest samples is not pressed."""
    used = np.full(10, 990.0)
    used[-LASTING] = 500
    assert found(cgroup_memory_mb=used, memory_limit_mb=1_000.0) is None


@pytest.mark.parametrize(
    ("used", "limit", "cause"),
    [
        ("cgroup_memory_mb", "memory_limit_mb", "memory limit"),
        ("host_memory_used_mb", "host_memory_total_mb", "host memory"),
        ("shm_used_mb", "shm_total_mb", "shared memory"),
    ],
)
def test_kinds_are_told_apart(used: str, limit: str, cause: str):
    """The cgroup's limit, the host, and /dev/shm, each by its name."""
    one = found(**{used: 95.0, limit: 100.0})
    assert one is not None
    assert one.cause == cause


def test_shared_memory_matters_only_with_workers():
    """Nobody hands batches over where there are no workers."""
    assert found(loader(num_workers=0), shm_used_mb=99.0, shm_total_mb=100.0) is None


def test_an_unknown_limit_is_not_guessed():
    """Without a limit nothing is said."""
    assert found(cgroup_memory_mb=1e6) is None


def on_device(*events: dict[str, Any], total: float = 80_000, **rows: Any) -> Finding | None:
    return detect(on_gpu(rows=rows, cuda={"total_mb": total}, events=list(events)))


def test_a_gpu_that_ran_out_is_told_with_what_it_held():
    """The program ended on it: what was asked for, what was left, and who held most."""
    holders = [{"what": "logits [8×4096×50257] bfloat16", "mb": 3_300.0, "location": "train.py:31"}]
    told = event(
        "oom", step=70, requested_mb=2_000, allocated_mb=70_000, split_mb=9_000, free_mb=None,
        holders=holders, location="train.py:31", caught=False,
    )  # fmt: skip
    one = on_device(told)
    assert one is not None
    assert (one.severity, one.cause, one.location) == ("critical", "GPU out of memory", "train.py:31")
    assert one.evidence == {
        "requested_mb": 2_000, "allocated_mb": 70_000, "split_mb": 9_000,
        "largest_holder": "logits [8×4096×50257] bfloat16", "largest_holder_mb": 3_300.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "cause"),
    [
        ({"cuda_ooms": [0] * 20 + [1]}, "GPU out of memory"),
        ({"cuda_retries": [0] * 19 + [1, 1]}, "GPU allocations that are retried"),
    ],
)
def test_errors_that_were_caught_and_retries_are_faults(rows: dict[str, Any], cause: str):
    """The run goes on, and pays for each with an emptied cache."""
    one = on_device(event("oom", caught=True), **rows)
    assert one is not None
    assert (one.severity, one.cause) == ("warning", cause)


def test_one_retry_and_those_of_the_warm_up_are_nothing():
    """The allocator finds its size."""
    assert on_device(cuda_retries=[0] * 20 + [1]) is None
    assert on_device(cuda_retries=[3] + [0] * 20, cuda_ooms=[1] + [0] * 20) is None


@pytest.mark.parametrize(("share", "severity"), [(0.91, None), (0.93, "info"), (0.98, "warning")])
def test_a_peak_near_the_device_s_end(share: float, severity: str | None):
    """The most that was ever in tensors counts; what is only reserved fills up in any run."""
    one = on_device(total=62_000 / share, cuda_reserved_mb=62_000 / share)
    assert (one and one.severity) == severity


def test_the_graver_of_host_and_gpu_speaks():
    """One finding a code."""
    hosts = {"here": samples(cgroup_memory_mb=93.0, memory_limit_mb=100.0)}
    both = detect(on_gpu(hosts=hosts, events=[event("oom", requested_mb=5)]))
    host = detect(on_gpu(hosts=hosts, cuda={"total_mb": 66_000}))
    assert both is not None
    assert host is not None
    assert (both.cause, host.cause) == ("GPU out of memory", "memory limit")
