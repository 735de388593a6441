"""Communication that nobody's lateness explains."""

from __future__ import annotations

from typing import Any

import pytest
from windows import every, rank, samples, window

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.window import Window
from monitor.diagnosis.detectors.distributed.comm_bound import (
    CROWDED_LATENCY_MS,
    EXPOSED_SHARE,
    LATENCY_MS,
    detect,
)

DDP = {"backend": "gloo", "world_size": 2, "buckets": 2, "bucket_cap_mb": 25.0, "location": "train.py:9"}
#: Milliseconds of a step beside its communication.
WORK_MS = 16.0


def two(first: float, second: float | None = None, ddp: dict[str, Any] | None = None, **more: Any) -> Window:
    """Two ranks that spend so much on communication."""
    facts = {"ddp": {**DDP, **(ddp or {})}}
    each = (first, first if second is None else second)
    return window(*(rank(200, n, comm=each[n], facts=facts, **{"syncs": 1, **more}) for n in range(2)))


def found(seen: Window) -> Finding:
    finding = detect(seen)
    assert finding is not None
    return finding


#: Two buckets.
LEAST_MS = 2 * LATENCY_MS
AT_MS = (EXPOSED_SHARE * WORK_MS + LEAST_MS) / (1 - EXPOSED_SHARE)


@pytest.mark.parametrize(("comm", "is_found"), [(AT_MS * 0.98, False), (AT_MS * 1.02, True)])
def test_it_speaks_from_its_threshold_on(comm: float, is_found: bool):
    """Just below the share that counts it is silent."""
    assert (detect(two(comm)) is not None) == is_found


def test_one_finding_for_all_ranks():
    """They all exchange alike."""
    finding = found(two(30.0))
    assert (finding.severity, finding.ranks, finding.location) == ("warning", (0, 1), "train.py:9")
    assert finding.cause == "gradient exchange"


def test_waiting_for_a_late_rank_is_not_its_cost():
    """Rank 0 waits 60 ms for rank 1, whose own exchange takes 2: that is a straggler's."""
    late = two(62.0, 2.0, forward=5.0)
    assert detect(late) is None


def test_needless_exchanges_are_told_elsewhere():
    """Without seven of eight exchanges 3 ms of 19 remain."""
    assert detect(two(26.0, optimizer_steps=every(8, 1.0, 0.0))) is None
    assert found(two(26.0, optimizer_steps=1)).evidence["exposed_share"] == pytest.approx(24 / 42, abs=0.001)


@pytest.mark.parametrize(("runq", "least"), [(0.01, LATENCY_MS), (0.4, CROWDED_LATENCY_MS)])
def test_what_any_exchange_costs_is_no_fault_of_a_tiny_step(runq: float, least: float):
    """Two buckets, each with its latency; more of it where every hop waits for a CPU."""
    tiny = {"forward": 1.0, "backward": 1.0, "optimizer": 0.0, "data": 0.0}
    process = samples(runq_share=runq, main_cpu=0.5, workers_cpu=0.0)
    assert detect(two(2 * least, **tiny, samples=process)) is None
    assert detect(two(2 * least + 2.0, **tiny, samples=process)) is not None


def test_evidence_says_what_travels_and_how_fast():
    """MB a step, the wire's speed, and how much of the exchange was hidden behind arithmetic."""
    evidence = found(two(20.0, collective_ms=25.0, collective_mb=50.0)).evidence
    assert (evidence["mb_per_step"], evidence["bus_gb_s"], evidence["hidden_share"]) == (50.0, 2.0, 0.2)


CAUSES = {
    "gloo on GPUs": {"device": "cuda"},
    "small buckets": {"bucket_cap_mb": 1.0, "buckets": 30},
    "synchronised batch norm": {"has_sync_bn": True},
}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_poor_setting_is_the_cause_and_worth_a_word_before_it_costs_much(cause: str):
    """Information at 10 % beyond the latency, a warning above the threshold."""
    assert found(two(80.0, ddp=CAUSES[cause])).cause == cause
    latency_ms = LATENCY_MS * (1.0 if cause == "small buckets" else 2.0)
    quiet = found(two(latency_ms + 0.1 * (latency_ms + WORK_MS), ddp=CAUSES[cause]))
    assert (quiet.cause, quiet.severity, quiet.gain) == (cause, "info", None)


def test_collectives_without_ddp():
    """FSDP, or all_reduce by hand."""
    seen = window(*(rank(200, n, comm=30.0, facts={}) for n in range(2)))
    assert found(seen).cause == "collectives"


def test_on_a_gpu_torchs_own_samples_count():
    """12 ms of 16 in the iterations that torch measured itself."""
    facts = {"ddp": {**DDP, "backend": "nccl", "device": "cuda", "exposed_ms": 12.0, "sampled": 10}}
    finding = found(window(rank(200, syncs=1, facts=facts)))
    assert (finding.cause, finding.evidence["exposed_share"]) == ("gradient exchange", 0.75)


def test_the_promise_is_what_exchanging_a_quarter_as_often_brings():
    """Three quarters of what exceeds the latency: 24 of 42 ms."""
    gain = found(two(26.0)).gain
    assert gain is not None
    assert gain.share_of_step == pytest.approx(0.75 * 24 / 42)


def test_the_latency_of_many_small_buckets_is_the_fault_itself():
    """30 buckets for 20 MB, of which one or two would do: all that they take beyond those counts."""
    small = {"bucket_cap_mb": 1.0, "buckets": 30, "gradient_mb": 20.0}
    finding = found(two(20.0, ddp=small))
    assert (finding.cause, finding.severity) == ("small buckets", "warning")
    assert detect(two(20.0, ddp={**small, "bucket_cap_mb": 25.0})) is None
