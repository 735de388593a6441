"""The loop waits for data: found when hiding the wait would pay, with the cause, the fix and the gain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from windows import env, every, loader, rank, samples, window

from monitor.diagnosis.core.window import Window
from monitor.diagnosis.detectors.data.data_starvation import COLD_EPOCH_S, LOST_SHARE, detect
from monitor.diagnosis.signals.loader_waits import CROWDED_HANDOVER_MS, HANDOVER_MS

OTHER_MS = 14.0

#: A wait at which exactly LOST_SHARE of the time could be hidden.
AT_MS = (HANDOVER_MS + LOST_SHARE * OTHER_MS) / (1 - LOST_SHARE)


def starved(wait: object = 50.0, /, count: int = 200, **facts: object) -> Window:
    extra = {key: facts.pop(key) for key in ("samples", "data_cpu_ms", "finished", "epoch") if key in facts}
    process = {key: facts.pop(key) for key in ("usable_cpus",) if key in facts}
    known = {**env(**process), **loader(num_workers=0, **facts)}
    finished = bool(extra.pop("finished", False))
    return window(rank(count, data=wait, facts=known, **extra), finished=finished)


@pytest.mark.parametrize(("wait", "found"), [(AT_MS * 0.99, False), (AT_MS * 1.01, True)])
def test_it_speaks_from_its_threshold_on(wait: float, found: bool):
    """Just below the share that counts it is silent, just above it speaks."""
    assert (detect(starved(wait, 600)) is not None) == found


@pytest.mark.parametrize(
    ("wait", "other", "workers"),
    [(2.3, 14.0, 2), (1.6, 3.5, 1), (0.18, 0.2, 0), (2.25, 46.0, 0), (2.4, 2.0, 4)],
)
def test_a_hand_over_is_no_fault(wait: float, other: float, workers: int):
    """What a ready batch costs cannot be hidden, however large its share of a small step (RULES.md)."""
    healthy = rank(2000, data=wait, forward=other, backward=0, optimizer=0, facts=loader(num_workers=workers))
    assert detect(window(healthy, finished=True)) is None


@pytest.mark.parametrize(("fetched", "found"), [(4, False), (1, True)])
def test_every_batch_of_a_step_has_its_hand_over(fetched: int, found: bool):
    """Four batches accumulated may take four hand-overs; one that is cut into four pieces takes one."""
    step = {"data": 9.0, "forward": 20.0, "backward": 0, "optimizer": 0}
    one = rank(600, micro_batches=4, samples=32 * fetched, facts=loader(batch_size=32), **step)
    assert (detect(window(one, finished=True)) is not None) == found


def test_it_promises_what_the_wait_costs():
    """The gain is Amdahl's for the waiting: never more, and at least 0.8 of it."""
    found = detect(starved(50.0))
    most = (50.0 + OTHER_MS) / OTHER_MS
    assert found is not None
    assert found.gain is not None
    assert 0.8 * most <= found.gain.speedup <= most


@given(wait=st.floats(20, 500), other=st.floats(0.5, 200))
@settings(deadline=None, max_examples=40)
def test_the_promise_always_keeps_its_bounds(wait: float, other: float):
    """Whatever the times, it lies between 0.8 and 1 of what eight workers, the most there are, bring."""
    one = rank(200, data=wait, forward=other, backward=0, optimizer=0, facts=loader(num_workers=0))
    found, most = detect(window(one, finished=True)), (wait + other) / max(other, wait / 8)
    if found is not None and found.gain is not None:
        assert 0.8 * min(most, 100) <= found.gain.speedup * 1.0001
        assert found.gain.speedup <= most * 1.0001


@pytest.mark.parametrize(("cpus", "workers"), [(1, 2), (2, 4), (16, 6)])
def test_the_promise_is_what_the_advised_workers_can_keep(cpus: int, workers: int):
    """Reading takes 60 ms a batch: so many workers have one ready every 60 ÷ workers, never sooner."""
    found = detect(starved(60.0, data_cpu_ms=1.0, usable_cpus=cpus, finished=True))
    assert found is not None
    assert found.gain is not None
    assert f"num_workers={workers}" in found.snippet
    best = (60.0 + OTHER_MS) / max(60.0 / workers, OTHER_MS)
    assert 0.8 * best <= found.gain.speedup <= best * 1.001


def test_more_workers_promise_what_they_can_keep():
    """Two workers that read deliver one batch a step; four, the most that two CPUs carry, two."""
    facts = {**env(usable_cpus=2), **loader(num_workers=2)}
    found = detect(window(rank(300, data=86.0, facts=facts, samples=samples(60, workers_cpu=0.1))))
    assert found is not None
    assert found.gain is not None
    assert found.gain.speedup == pytest.approx(2.0, rel=0.01)


def test_no_workers_that_read_get_workers():
    """num_workers=0 with an idle CPU: workers read ahead; the snippet is the user's own call."""
    call = "DataLoader(FromDisk(steps(100) * 16), batch_size=16, num_workers=0)"
    found = detect(starved(50.0, call=call, data_cpu_ms=2.0, persistent_workers=False))
    assert found is not None
    assert (found.cause, found.location) == ("num_workers=0", "train.py:31")
    assert (
        found.snippet
        == "DataLoader(FromDisk(steps(100) * 16), batch_size=16, num_workers=4, persistent_workers=True)"
    )


@pytest.mark.parametrize(
    ("wait", "cpus", "workers", "speedup"),
    [
        (50.0, 4, 3, 64 / (50 / 3)),
        (50.0, 2, 2, 2.0),
        (15.0, 2, 1, 29 / 15),
        (50.0, 1, 1, 1.0),
        (50.0, 16, 4, 64 / 14),
    ],
)
def test_what_computes_is_promised_no_more_than_the_cpus_give(
    wait: float, cpus: int, workers: int, speedup: float
):
    """num_workers=0 and computing: all work shared by the CPUs there are, and cheaper samples are advised."""
    spent = {"data_cpu_ms": wait * 0.97, "finished": True}
    found = detect(starved(wait, persistent_workers=False, usable_cpus=cpus, **spent))
    assert found is not None
    assert found.gain is not None
    assert f"num_workers={workers}" in found.snippet
    assert "cheaper" in found.advice
    assert found.gain.speedup == pytest.approx(speedup, rel=0.1)
    assert found.gain.speedup <= speedup + 0.01


def test_cpu_time_may_be_read_now_and_then():
    """Where it was read in every eighth step only, those steps tell."""
    spent = np.where(np.arange(200) % 8 == 0, 48.0, np.nan)
    found = detect(starved(50.0, data_cpu_ms=spent))
    assert found is not None
    assert "computed in the training loop" in found.advice


def test_the_rhythm_of_the_workers_is_named():
    """Long waits every `num_workers` batches: the workers are too few."""
    wait = every(2, 150.0, 1.6)
    found = detect(window(data=wait, finished=True, facts={**env(usable_cpus=8), **loader(num_workers=2)}))
    assert found is not None
    assert (found.cause, found.evidence["rhythm_batches"]) == ("too few workers", 2)


@pytest.mark.parametrize(
    ("workers_cpu", "cpus", "cause"),
    [(1.9, 2, "CPU-bound transform"), (1.9, 16, "too few workers"), (0.1, 2, "too few workers")],
)
def test_causes_of_slow_workers_are_told_apart(workers_cpu: float, cpus: int, cause: str):
    """Workers that compute without pause, with CPUs left or without, or that wait for storage."""
    facts = {**env(usable_cpus=cpus), **loader(num_workers=2)}
    slow = rank(300, data=40.0, facts=facts, samples=samples(60, main_cpu=0.2, workers_cpu=workers_cpu))
    found = detect(window(slow))
    assert found is not None
    assert found.cause == cause


def test_storage_is_named_when_more_workers_cannot_help():
    """As many workers as the CPUs carry, all of them waiting: storage."""
    facts = {**env(usable_cpus=2), **loader(num_workers=4)}
    found = detect(window(rank(300, data=80.0, facts=facts, samples=samples(60, workers_cpu=0.2))))
    assert found is not None
    assert (found.cause, found.snippet) == ("storage", "")


def test_unpacking_in_the_main_process_is_named():
    """With workers, a main thread that computes while it waits unpacks batches."""
    found = detect(window(rank(600, data=20.0, data_cpu_ms=18.0)))
    assert found is not None
    assert found.cause == "slow hand-over"


def test_a_short_first_epoch_may_only_be_cold():
    """The only epoch so far, not gone on for long: silent; longer, or the run's last: it speaks."""
    steps = int(COLD_EPOCH_S * 1e3 / (50 + OTHER_MS))
    assert detect(starved(50.0, steps)) is None
    assert detect(starved(50.0, steps, finished=True)) is not None
    assert detect(starved(50.0, steps + 20)) is not None


def test_a_cold_first_epoch_is_information():
    """The first epoch waited, the later ones do not: said, and no alarm."""
    epoch = np.repeat([1, 2, 3, 4], 50)
    found = detect(starved(np.where(epoch == 1, 60.0, 1.0), epoch=epoch))
    assert found is not None
    assert (found.severity, found.cause, found.gain) == ("info", "cold first epoch", None)


def test_starving_epochs_after_a_cold_one_are_starved():
    """The later epochs are what counts, and they starve."""
    found = detect(starved(50.0, epoch=np.repeat([1, 2, 3, 4], 50)))
    assert found is not None
    assert found.severity == "warning"


def test_waits_at_the_start_of_epochs_are_not_its_business():
    """Starting workers is slow and belongs to worker_respawn."""
    epoch = np.repeat(np.arange(10), 20)
    wait = np.where(np.arange(200) % 20 == 0, 450.0, 1.5)
    assert detect(window(data=wait, epoch=epoch, finished=True)) is None


def test_a_single_burst_is_no_alarm():
    """Two very long waits in a run are chance, not starvation."""
    wait = np.full(200, 1.5)
    wait[[60, 130]] = 3000.0
    assert detect(window(data=wait, finished=True)) is None


def test_rare_spikes_are_not_its_business():
    """Rare long waits belong to data_spikes."""
    assert detect(window(data=every(12, 600.0, 1.6), finished=True)) is None


@pytest.mark.parametrize(("runq", "found"), [(0.05, True), (0.3, False)])
def test_a_busy_machine_excuses_waits(runq: float, found: bool):
    """While others have the CPUs, waits that are healthy on an idle machine's terms prove nothing."""
    wait = CROWDED_HANDOVER_MS - 1
    one = rank(600, data=wait, samples=samples(60, runq_share=runq))
    assert (detect(window(one)) is not None) == found


def test_a_busy_machine_does_not_hide_starvation():
    """Waits far beyond what neighbours cause are found all the same, and the neighbours are noted."""
    found = detect(window(rank(200, data=60.0, samples=samples(60, runq_share=0.3)), finished=True))
    assert found is not None
    assert found.evidence["runq_share"] == 0.3


def test_one_finding_for_all_ranks_alike():
    """Two starving ranks are one finding, told by the worse."""
    ranks = [rank(200, number, data=wait) for number, wait in enumerate((40.0, 60.0, 1.0))]
    found = detect(window(*ranks, finished=True))
    assert found is not None
    assert (found.ranks, round(found.evidence["wait_ms_p50"])) == ((0, 1), 60)


@given(order=st.permutations([0, 1, 2]))
@settings(deadline=None, max_examples=6)
def test_the_order_of_ranks_changes_nothing(order: list[int]):
    """Whichever rank waits, the same is found about it."""
    waits = (40.0, 60.0, 1.0)
    found = detect(
        window(*(rank(200, number, data=waits[at]) for number, at in enumerate(order)), finished=True)
    )
    assert found is not None
    assert {order[number] for number in found.ranks} == {0, 1}


@given(scale=st.floats(1.0, 50.0))
@settings(deadline=None, max_examples=20)
def test_a_slower_machine_starves_alike(scale: float):
    """All times longer by one factor: still starved."""
    one = rank(200, data=30 * scale, forward=5 * scale, backward=8 * scale, optimizer=scale)
    assert detect(window(one, finished=True)) is not None


@given(noise=st.lists(st.floats(0.0, 0.4), min_size=200, max_size=200))
@settings(deadline=None, max_examples=20)
def test_noise_below_a_hand_over_changes_nothing(noise: list[float]):
    """Waits that swing below what a hand-over costs are never an alarm."""
    assert detect(window(data=2.0 + np.array(noise), finished=True)) is None
