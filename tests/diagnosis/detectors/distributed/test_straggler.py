"""Who makes the others wait: named when it is always the same, and never in a balanced run."""

from __future__ import annotations

import numpy as np
import pytest
from windows import rank, samples, window

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.window import Window
from monitor.diagnosis.detectors.distributed.straggler import LOST_SHARE, detect

STEPS = 60
#: Milliseconds that a balanced step computes, and that an exchange takes.
WORK_MS, TRANSFER_MS = 50.0, 5.0


def run(
    seed: int,
    late_ms: float = 0.0,
    *,
    ranks: int = 2,
    late: int = 1,
    phase: str = "forward",
    noise: float = 0.1,
) -> Window:
    """Ranks that meet at the end of each step, with a noise of so much of the work; one of them is late."""
    random = np.random.default_rng(seed)
    work = WORK_MS * random.gamma(1 / noise**2, noise**2, (ranks, STEPS))
    more = np.zeros((ranks, STEPS))
    more[late] = late_ms
    comm = (work + more).max(axis=0) - work - more + TRANSFER_MS
    phases = [{"forward": w / 2, "backward": w / 2, "data": 0.0, "optimizer": 0.0} for w in work]
    for number, times in enumerate(phases):
        times[phase] = times.get(phase, 0.0) + more[number]
    return window(*(rank(STEPS, n, comm=comm[n], syncs=1, **phases[n]) for n in range(ranks)))


def found(seen: Window) -> Finding:
    finding = detect(seen)
    assert finding is not None
    return finding


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_a_delay_of_a_tenth_of_the_step_is_named_right_for_every_seed(ranks: int):
    """Twenty of twenty, with work that wanders by 5 % from step to step (issue 6)."""
    delay = 0.1 * (WORK_MS + TRANSFER_MS) * (1 if ranks == 2 else 1.5)
    named = [found(run(seed, delay, ranks=ranks, late=seed % ranks, noise=0.05)).ranks for seed in range(20)]
    assert named == [(seed % ranks,) for seed in range(20)]


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("noise", [0.02, 0.1, 0.4])
def test_nobody_is_named_in_a_balanced_run(ranks: int, noise: float):
    """None of twenty, however much steps differ: now one is last, now another."""
    assert [detect(run(seed, ranks=ranks, noise=noise)) for seed in range(20)] == [None] * 20


@pytest.mark.parametrize("phase", ["data", "forward", "optimizer", "other", "checkpoint", "eval"])
def test_it_says_in_which_phase(phase: str):
    """The phase in which it spends more than the others, and how much more."""
    finding = found(run(0, 30.0, phase=phase))
    assert finding.cause == f"rank 1 is late: {phase}"
    assert finding.evidence["more_in_phase_ms"] == pytest.approx(30.0, abs=3.0)


def test_it_promises_what_all_lose():
    """30 of 86 ms a step."""
    finding = found(run(0, 30.0))
    assert finding.gain is not None
    assert finding.gain.share_of_step == pytest.approx(30 / 87, abs=0.05)


def test_it_promises_no_more_than_the_late_one_spends():
    """The others wait 40 ms for 30: they wake up late. A tenth of the steps took three times as long."""
    seen = run(0, 30.0)
    woken_late, slow = seen.ranks[0].steps, np.arange(STEPS) % 10 == 9
    woken_late["comm_ms"] = woken_late["comm_ms"] + 10.0
    for one in seen.ranks.values():
        one.steps["other_ms"] = one.steps["other_ms"] + np.where(slow, 200.0, 0.0)
        one.steps["step_ms"] = one.steps["step_ms"] + np.where(slow, 200.0, 0.0) + 10.0
    finding = found(seen)
    assert finding.gain is not None
    assert finding.gain.share_of_step == pytest.approx(30 / (97 + 20), abs=0.05)


def test_an_exchange_by_cpus_comes_back_when_all_come_at_once():
    """The waiting ranks did their part of it meanwhile; then it is done beside the other's."""
    seen = run(0, 30.0)
    for one in seen.ranks.values():
        one.facts["ddp"] = {"device": "cpu"}
    assert found(seen).gain.share_of_step == pytest.approx((30 - min(TRANSFER_MS, 15)) / 87, abs=0.05)


@pytest.mark.parametrize(("share", "is_found"), [(LOST_SHARE * 0.9, False), (LOST_SHARE * 1.2, True)])
def test_it_speaks_from_its_threshold_on(share: float, is_found: bool):
    """Measured on steps without noise."""
    late_ms = share * (WORK_MS + TRANSFER_MS) / (1 - share)
    assert (detect(run(0, late_ms, noise=0.001)) is not None) == is_found


def test_a_slow_host_is_named_with_all_its_ranks():
    """Two of four are late by the same: they are told together."""
    steady = [
        rank(STEPS, n, comm=(35.0 if n < 2 else 5.0), forward=(20.0 if n < 2 else 50.0)) for n in range(4)
    ]
    finding = found(window(*steady))
    assert finding.ranks == (2, 3)
    assert finding.evidence["late_ranks"] == "2, 3"


def test_a_rank_that_was_late_only_for_a_while_is_not_always_late():
    """Late in the first third only: over by now."""
    late = np.where(np.arange(STEPS) < 22, 30.0, 0.0)
    ranks = [rank(STEPS, 0, comm=5 + late), rank(STEPS, 1, comm=5.0, forward=5 + late)]
    assert detect(window(*ranks)) is None


def test_larger_batches_are_the_cause_where_they_are_larger():
    """A sampler that deals out unevenly, not a slow machine."""
    ranks = [
        rank(STEPS, 0, comm=35.0, forward=20.0, tokens=1000),
        rank(STEPS, 1, comm=5.0, forward=50.0, tokens=2000),
    ]
    finding = found(window(*ranks))
    assert (finding.cause, finding.evidence["batch_ratio"]) == ("rank 1 is late: larger batches", 2.0)


def uneven(seed: int, spread: float) -> Window:
    """Sequences of different lengths: whoever has the longest batch comes last."""
    random = np.random.default_rng(seed)
    tokens = 1000 * random.uniform(1 - spread, 1 + spread, (4, 200))
    work = tokens / 20
    comm = work.max(axis=0) - work + TRANSFER_MS
    return window(*(rank(200, n, forward=work[n], comm=comm[n], tokens=tokens[n]) for n in range(4)))


def test_lengths_that_differ_are_told_apart_from_a_slow_rank():
    """It wanders, and follows the batches: said for all ranks, and none is blamed."""
    finding = found(uneven(0, 0.6))
    assert (finding.cause, finding.ranks) == ("batches of unequal size", (0, 1, 2, 3))
    assert detect(uneven(0, 0.1)) is None


def test_one_rank_has_nobody_to_wait_for():
    """Nor has a run whose other ranks were not seen."""
    assert detect(window(rank(STEPS, comm=20.0, syncs=1))) is None


@pytest.mark.parametrize(("late_ms", "is_found"), [(5.0, False), (15.0, True)])
def test_on_a_crowded_machine_a_little_is_nobodys_fault(late_ms: float, is_found: bool):
    """Other processes slow one of two equal ranks by as much; a third of the step is more than that."""
    busy = samples(runq_share=0.4, main_cpu=0.6, workers_cpu=0.0)
    ranks = [
        rank(STEPS, 0, comm=5.0 + late_ms, forward=40.0, samples=busy),
        rank(STEPS, 1, comm=5.0, forward=40.0 + late_ms, samples=busy),
    ]
    assert (detect(window(*ranks)) is not None) == is_found


def drifting(
    seed: int, *, late: int | None = None, phase: str = "other", busy: bool = False, ranks: int = 2
) -> Window:
    """As on a real machine: each rank's pace wanders for seconds, more so where others want its CPUs.

    Of 300 steps; a late rank spends a tenth of the step more in one phase.
    """
    random = np.random.default_rng(seed)
    count, wander, noise = 300, (0.12 if busy else 0.03), (0.15 if busy else 0.06)
    drift = np.zeros((ranks, count))
    for step in range(1, count):
        drift[:, step] = 0.97 * drift[:, step - 1] + random.normal(0, wander * 0.24, ranks)
    work = WORK_MS * np.exp(drift) * random.gamma(1 / noise**2, noise**2, (ranks, count))
    more = np.zeros((ranks, count))
    if late is not None:
        more[late] = 0.1 * (WORK_MS + TRANSFER_MS)
    comm = (work + more).max(axis=0) - work - more + TRANSFER_MS
    crowd = {"samples": samples(runq_share=0.3, main_cpu=0.6, workers_cpu=0.0)} if busy else {}
    made = []
    for number in range(ranks):
        times = {"forward": work[number] * 0.4, "backward": work[number] * 0.6, "data": 0.0, "optimizer": 0.0}
        times[phase] = times.get(phase, 0.0) + more[number]
        made.append(rank(count, number, comm=comm[number], syncs=1, **times, **crowd))
    return window(*made)


@pytest.mark.parametrize(("ranks", "busy"), [(2, False), (4, False), (2, True)])
def test_pauses_of_a_tenth_of_the_step_are_named_though_paces_wander(ranks: int, busy: bool):
    """Twenty of twenty, also while other processes slow now one and now another: they add no such pauses."""
    runs = [drifting(seed, late=seed % ranks, busy=busy, ranks=ranks) for seed in range(20)]
    assert [finding and finding.ranks for finding in map(detect, runs)] == [
        (seed % ranks,) for seed in range(20)
    ]


def test_among_many_that_wander_more_it_is_named_or_nobody_is():
    """Where another one comes last anyway, a late rank costs nothing, and the wrong one is never named."""
    named = [detect(drifting(seed, late=seed % 4, busy=True, ranks=4)) for seed in range(20)]
    assert {finding.ranks == (seed % 4,) for seed, finding in enumerate(named) if finding} == {True}
    assert sum(finding is not None for finding in named) >= 15


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("ranks", [2, 4])
def test_paces_that_wander_are_nobodys_fault(ranks: int, busy: bool):
    """None of twenty."""
    assert [detect(drifting(seed, busy=busy, ranks=ranks)) for seed in range(20)] == [None] * 20


def test_a_phase_that_is_merely_elsewhere_is_no_fault():
    """One rank spends more in `other` and as much less in the optimizer: nobody waits for it."""
    ranks = [
        rank(STEPS, 0, comm=5.0, other=1.0, optimizer=9.0),
        rank(STEPS, 1, comm=5.0, other=9.0, optimizer=1.0),
    ]
    assert detect(window(*ranks)) is None
