"""Ranks beside each other: what is transfer, what is waiting, and what was not needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from windows import env, every, rank, window

from monitor.diagnosis.signals.communication import SAMPLED, bus_gb_s, exchange, redundant, sampled_share


def test_what_the_last_one_spends_is_the_transfer():
    """The rest is waiting: 30 ms of 100 are exchanged, the first rank waits 20 more."""
    seen = exchange(window(rank(comm=50, forward=41), rank(number=1, comm=30, forward=61)))
    assert seen is not None
    assert seen.transfer_share == pytest.approx(30 / 102, abs=0.01)
    assert seen.exposed_share == pytest.approx(40 / 102, abs=0.01)


def test_only_common_steps_are_compared():
    """A rank that is behind, or came late, is compared where both were."""
    seen = exchange(window(rank(60, comm=5.0), rank(60, number=1, first=30, comm=5.0)))
    assert seen is not None
    assert [list(one.steps["step"]) for one in seen.ranks] == [list(range(30, 60))] * 2


def test_ranks_without_common_steps_say_nothing():
    """Nothing can be said of steps that only one rank has taken."""
    assert exchange(window(rank(40, comm=5.0), rank(40, number=1, first=100, comm=5.0))) is None


def test_no_communication_is_no_exchange():
    """One rank, or ranks that were not measured."""
    assert exchange(window(rank())) is None


def test_a_rank_that_waits_for_nobody_takes_part():
    """The one that is always late may have no communication at all."""
    seen = exchange(window(rank(comm=20, syncs=1), rank(number=1, comm=0, syncs=1)))
    assert seen is not None
    assert len(seen.ranks) == 2


@pytest.mark.parametrize("period", [1, 4])
def test_needless_rounds_are_counted_over_whole_cycles(period: int):
    """Exchanges per optimizer step, wherever in a cycle the window ends."""
    one = rank(53, syncs=1, optimizer_steps=every(period, 1.0, 0.0, 53), facts=env())
    assert redundant(one) == period


def test_a_skipped_optimizer_step_is_one_too():
    """A scaler that skips has needed the gradients all the same."""
    one = rank(52, syncs=1, optimizer_steps=every(2, 0.0, 1.0, 52), amp_skipped=every(2, 1.0, 0.0, 52))
    assert redundant(one) == 1


def test_rounds_that_were_not_measured_are_unknown():
    """No number is made up, not even one."""
    assert redundant(rank(optimizer_steps=1)) is None


def test_bus_bandwidth():
    """Two ranks send and receive a buffer once: 100 MB in 100 ms is 1 GB a second; four 1.5 times that."""
    one = rank(collective_ms=100, collective_mb=100)
    assert bus_gb_s({"world_size": 2}, one) == pytest.approx(1.0)
    assert bus_gb_s({"world_size": 4}, one) == pytest.approx(1.5)
    assert bus_gb_s({"world_size": 2}, rank()) is None


def test_torchs_own_samples_speak_for_a_gpu():
    """8 ms of 16 in every step; too few samples are none."""
    few, enough = ({"ddp": {"exposed_ms": 8.0, "sampled": n}} for n in (SAMPLED - 1, SAMPLED))
    assert sampled_share(rank(facts=few)) is None
    assert sampled_share(rank(facts=enough)) == pytest.approx(0.5)


@pytest.mark.parametrize("ddp", [{"device": "cuda"}, {"device": "cpu", "exposed_ms": 8.0}])
def test_who_never_waits_is_not_taken_for_measured(ddp: dict[str, Any]):
    """A host that hands over to a GPU, or a module of which torch tells in samples: no waiting is no zero."""
    assert exchange(window(rank(syncs=1, facts={"ddp": ddp}))) is None
    assert exchange(window(rank(syncs=1, facts={"ddp": {"device": "cpu"}}))) is not None


def test_many_ranks_are_compared_quickly():
    """1,024 ranks of 500 steps are no burden for the hub (issue 6)."""
    ranks = [rank(500, number, comm=np.full(500, 5.0)) for number in range(1024)]
    seen = exchange(window(*ranks))
    assert seen is not None
    assert seen.comm_ms.shape == (1024, 495)
