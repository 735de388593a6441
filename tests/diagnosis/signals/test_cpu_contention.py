"""How crowded a machine was, by whom, and how many CPUs a run may use."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from windows import env, loader, rank, samples, window

from monitor.diagnosis.core.window import Window
from monitor.diagnosis.signals.cpu_contention import (
    AFTER_S,
    BUSY_RUNQ,
    FULL_CPU,
    OTHERS_CPU,
    cpus_contended,
    others_cpu,
    ranks_per_host,
    recent_samples,
    runq_share,
    usable_cpus,
)


def crowd(runq: float = 0.0, used: float = 1.0, own: float = 0.9) -> bool:
    taken = samples(20, runq_share=runq, main_cpu=own, workers_cpu=0.0)
    one = rank(300, samples=taken)
    return cpus_contended(window(one, hosts={"here": samples(20, cpu_used=used, cpu_usable=2.0)}), one)


@pytest.mark.parametrize(("runq", "busy"), [(BUSY_RUNQ * 0.99, False), (BUSY_RUNQ * 1.01, True)])
def test_waiting_for_a_cpu_is_a_crowd(runq: float, busy: bool):
    """From just above the share of a busy machine on."""
    assert crowd(runq=runq) == busy


def test_full_cpus_are_a_crowd_if_others_fill_them():
    """All CPUs in use: by others a crowd, by this run none; half empty none either."""
    assert crowd(used=2 * FULL_CPU + 0.01, own=2 * FULL_CPU - 2 * OTHERS_CPU)
    assert not crowd(used=2.0, own=1.9)
    assert not crowd(used=1.7, own=0.1)


def test_the_warm_up_is_no_crowd():
    """Samples from before the training do not count."""
    taken = samples(20, runq_share=np.where(np.arange(20) * 0.5 < 1.1, 0.9, 0.0))
    assert runq_share(rank(300, samples=taken)) == 0.0


def test_what_comes_after_the_last_step_is_no_crowd():
    """A process that exports its model, or ends, does not train: its samples tell nothing of the steps."""
    taken = samples(40, runq_share=np.where(np.arange(40) * 0.5 > 5.8 + AFTER_S, 0.9, 0.0))
    assert runq_share(rank(300, samples=taken)) == 0.0


@pytest.mark.parametrize(("workers", "others"), [(1, 0.7), (2, 0.0), (0, 1.7)])
def test_a_worker_computes_on_one_cpu(workers: int, others: float):
    """Children that use more than the loader's workers can are other processes, started by the run."""
    one = rank(300, samples=samples(20, main_cpu=0.3, workers_cpu=1.7), facts=loader(num_workers=workers))
    both = window(one, hosts={"here": samples(20, cpu_used=2.0)})
    assert others_cpu(both) == pytest.approx(others, abs=0.01)


def test_without_samples_nobody_knows():
    """No sample is no crowd, and no number."""
    one = rank(300)
    assert math.isnan(runq_share(one))
    assert math.isnan(others_cpu(window(one)))
    assert not cpus_contended(window(one), one)


def test_all_ranks_are_our_own():
    """What others use is what is left after all ranks of the run."""
    ranks = [rank(300, number, samples=samples(20, main_cpu=0.5, workers_cpu=0.25)) for number in range(2)]
    one = window(*ranks, hosts={"here": samples(20, cpu_used=2.0)})
    assert others_cpu(one) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("facts", "hosts", "host_facts", "usable"),
    [
        (env(usable_cpus=6), {"here": samples(cpu_usable=8.0)}, {}, 6),
        ({}, {"here": samples(cpu_usable=8.0)}, {"here": {"cpu": {"usable": 4}}}, 8),
        ({}, {}, {"here": {"cpu": {"usable": 4}}}, 4),
        ({}, {}, {}, None),
    ],
)
def test_cpus_are_told_by_who_knows_best(facts: Any, hosts: Any, host_facts: Any, usable: float | None):
    """The process itself, then the host's samples, then its facts, else nobody."""
    one = rank(facts=facts)
    assert usable_cpus(Window(1.0, {0: one}, hosts=hosts, host_facts=host_facts), one) == usable


def test_ranks_share_their_host():
    """As the launcher says, otherwise ranks are spread evenly over the hosts."""
    four = [rank(30, number, facts={}) for number in range(4)]
    assert ranks_per_host(window(*four, hosts={"a": {}, "b": {}}), four[0]) == 2
    told = rank(facts=env(local_world_size=8))
    assert ranks_per_host(window(told), told) == 8


def test_old_samples_are_left_out():
    """Only the last minutes are recent."""
    assert recent_samples(samples(1000, 1.0))["t_s"][0] == pytest.approx(699)
