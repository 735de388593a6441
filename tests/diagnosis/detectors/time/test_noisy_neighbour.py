"""Others that take the CPUs are told only when they are seen doing it."""

from __future__ import annotations

from typing import Any

import pytest
from windows import env, rank, samples, window

from monitor.diagnosis.core.doctor import examine
from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.time.noisy_neighbour import LASTED_S, OTHERS_CORES, RUNQ, detect


def found(
    runq: float = 0.4, others: float = 1.0, own: float = 0.8, count: int = 30, **more: Any
) -> Finding | None:
    taken = samples(count, 0.2, runq_share=runq, main_cpu=own, workers_cpu=0.1)
    hosts = {"here": samples(count, 0.2, cpu_used=own + 0.1 + others, cpu_usable=2.0)}
    return detect(window(rank(samples=taken, **more), hosts=hosts))


@pytest.mark.parametrize(("factor", "speaks"), [(0.99, False), (1.01, True)])
def test_it_speaks_from_its_thresholds_on(factor: float, speaks: bool):
    """Waiting for CPUs and others that use them, each just below and just above what counts."""
    assert (found(runq=RUNQ * factor) is not None) == speaks
    assert (found(others=OTHERS_CORES * factor) is not None) == speaks


def test_a_run_in_its_own_way_is_not_a_neighbour():
    """Waiting for CPUs that only this run uses is its own doing."""
    assert found(runq=0.5, others=0.0, own=1.9) is None


def test_other_ranks_are_no_neighbours():
    """All ranks of the run count as its own."""
    taken = samples(30, 0.2, runq_share=0.4, main_cpu=1.0)
    hosts = {"here": samples(30, 0.2, cpu_used=2.0, cpu_usable=2.0)}
    assert detect(window(rank(number=0, samples=taken), rank(number=1, samples=taken), hosts=hosts)) is None


@pytest.mark.parametrize(("other", "speaks"), [(0.1, False), (0.4, True)])
def test_ranks_are_judged_by_their_mean(other: float, speaks: bool):
    """One of two ranks that waits is how ranks share CPUs; both waiting is a neighbour."""
    ranks = [rank(number=n, samples=samples(30, 0.2, runq_share=r)) for n, r in enumerate((0.4, other))]
    hosts = {"here": samples(30, 0.2, cpu_used=2.0, cpu_usable=2.0)}
    assert (detect(window(*ranks, hosts=hosts)) is not None) == speaks


def test_a_moment_proves_nothing():
    """However often it was looked, seconds must have passed: from the end of the warm-up, at 1 s, on."""
    assert found(count=int((1.0 + LASTED_S) * 5)) is None
    assert found(count=int((1.0 + LASTED_S) * 5) + 3) is not None


def test_too_many_threads_explain_it():
    """Threads of its own that wait for one another are the cause, not the neighbours."""
    taken = samples(30, 0.2, runq_share=0.5, main_cpu=0.8)
    hosts = {"here": samples(30, 0.2, cpu_used=2.0, cpu_usable=2.0)}
    seen = examine(window(rank(samples=taken, facts=env(threads=16)), hosts=hosts))
    assert [finding.code for finding in seen.findings] == ["threads_oversubscribed"]
