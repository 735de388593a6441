"""Memory that is nearly full for a while is told, by kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from windows import loader, rank, samples, window

from monitor.diagnosis.detectors.memory_pressure import CRITICAL, LASTING, WARNING, detect
from monitor.diagnosis.finding import Finding


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
