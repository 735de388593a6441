"""More workers than CPUs: a fault far above, and in between only where it shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from windows import env, loader, rank, samples, window

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.data.too_many_workers import LATE_FIRST_MS, MEMORY_SHARE, detect


def found(workers: int, cpus: int = 2, *, ranks: int = 1, hosts: Any = None, **more: Any) -> Finding | None:
    facts = {**env(usable_cpus=cpus), **loader(num_workers=workers)}
    return detect(window(*(rank(60, number, facts=facts, **more) for number in range(ranks)), hosts=hosts))


@pytest.mark.parametrize(
    ("workers", "severity"), [(2, None), (3, "info"), (4, "info"), (5, "warning"), (12, "warning")]
)
def test_it_speaks_from_its_thresholds_on(workers: int, severity: str | None):
    """Up to the CPUs silent, up to twice as many advice, beyond a warning."""
    one = found(workers)
    assert (one.severity if one else None) == severity


@pytest.mark.parametrize(("late", "severity"), [(0.99, "info"), (1.01, "warning")])
def test_a_late_first_batch_shows_it(late: float, severity: str):
    """Between one and two workers a CPU, a first batch that comes very late makes it a fault."""
    wait = np.full(60, 2.0)
    wait[0] = LATE_FIRST_MS * late
    one = found(4, data=wait)
    assert one is not None
    assert one.severity == severity


@pytest.mark.parametrize(("held", "severity"), [(0.99, "info"), (1.01, "warning")])
def test_memory_shows_it(held: float, severity: str):
    """So does a large part of the memory limit held by workers."""
    tree = 500.0 + MEMORY_SHARE * 8_000 * held
    one = found(
        4, samples=samples(rss_mb=500.0, tree_pss_mb=tree), hosts={"here": samples(memory_limit_mb=8_000.0)}
    )
    assert one is not None
    assert one.severity == severity


@pytest.mark.parametrize(("workers_cpu", "severity"), [(0.2, "info"), (1.5, "warning")])
def test_fighting_for_cpus_shows_it(workers_cpu: float, severity: str):
    """Waiting for a CPU shows it where the workers compute; workers that wait for storage do no harm."""
    one = found(4, samples=samples(runq_share=0.2, workers_cpu=workers_cpu))
    assert one is not None
    assert one.severity == severity


def test_ranks_of_a_host_share_its_cpus():
    """Three workers for each of two ranks are six for two CPUs."""
    one = found(3, ranks=2)
    assert one is not None
    assert (one.severity, one.ranks) == ("warning", (0, 1))


def test_it_says_how_many():
    """As many workers as CPUs, in the user's own call."""
    one = found(12)
    assert one is not None
    assert "num_workers=2" in one.snippet
    assert one.evidence["usable_cpus"] == 2


def test_unknown_cpus_are_not_guessed():
    """Where nobody told how many CPUs there are, nothing is said."""
    assert detect(window(facts=loader(num_workers=64))) is None
