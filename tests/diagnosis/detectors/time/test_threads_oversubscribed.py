"""More compute threads than CPUs: certain far above, and in between only where it shows."""

from __future__ import annotations

from typing import Any

import pytest
from windows import env, rank, samples, window

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.time.threads_oversubscribed import CERTAIN, SHOWS_RUNQ, TOO_MANY, detect

SHOWS = samples(runq_share=SHOWS_RUNQ * 1.01)


def found(threads: int, cpus: int = 100, ranks: int = 1, **more: Any) -> Finding | None:
    facts = env(threads=threads, usable_cpus=cpus)
    return detect(window(*(rank(60, number, facts=facts, **more) for number in range(ranks))))


@pytest.mark.parametrize(
    ("threads", "speaks"), [(100, False), (TOO_MANY * 100, False), (TOO_MANY * 100 + 1, True), (1_600, True)]
)
def test_it_speaks_from_its_threshold_on(threads: float, speaks: bool):
    """Where it shows, from just above the ratio that counts."""
    assert (found(int(threads), samples=SHOWS) is not None) == speaks


@pytest.mark.parametrize(("threads", "speaks"), [(CERTAIN * 100 - 1, False), (CERTAIN * 100, True)])
def test_far_above_it_needs_no_proof(threads: float, speaks: bool):
    """So many threads cannot but wait for one another."""
    assert (found(int(threads)) is not None) == speaks


@pytest.mark.parametrize(("runq", "speaks"), [(0.99, False), (1.01, True)])
def test_in_between_it_must_show(runq: float, speaks: bool):
    """Twice as many threads as CPUs are a fault only if they wait."""
    assert (found(200, samples=samples(runq_share=SHOWS_RUNQ * runq)) is not None) == speaks


def test_ranks_of_a_host_share_its_cpus():
    """Two ranks of two threads on two CPUs are twice too many."""
    one = found(2, cpus=2, ranks=2, samples=SHOWS)
    assert one is not None
    assert (one.snippet, one.ranks) == ("torch.set_num_threads(1)", (0, 1))


def test_the_newest_setting_counts():
    """A later call of set_num_threads is seen."""
    facts = {**env(threads=2), "threads": {"threads": 16, "usable_cpus": 2}}
    assert detect(window(rank(60, facts=facts))) is not None


def test_unknown_cpus_are_not_guessed():
    """Without a number of CPUs nothing is said."""
    assert detect(window(rank(60, facts={"env": {"threads": 64}}))) is None
