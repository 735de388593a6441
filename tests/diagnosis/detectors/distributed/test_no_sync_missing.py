"""Gradients exchanged more often than the optimizer needs them."""

from __future__ import annotations

import pytest
from windows import every, rank, window

from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.detectors.distributed.no_sync_missing import SMALL_SHARE, detect


def one(number: int = 0, *, every_n: int = 8, comm: float = 20.0, syncs: object = 1) -> Rank:
    """A rank that steps every `every_n` micro-batches."""
    facts = {"ddp": {"gradient_mb": 19.0, "location": "train.py:9"}}
    steps = every(every_n, 1.0, 0.0, 120)
    return rank(120, number, comm=comm, syncs=syncs, optimizer_steps=steps, backward_calls=1, facts=facts)


def two(**how: object) -> Window:
    return window(one(0, **how), one(1, **how))  # type: ignore[arg-type]


def test_eight_exchanges_for_one_optimizer_step_are_found():
    """Said once for both ranks, where DDP wrapped the model."""
    finding = detect(two())
    assert finding is not None
    assert (finding.severity, finding.ranks, finding.location) == ("warning", (0, 1), "train.py:9")
    assert finding.evidence["exchanges_per_optimizer_step"] == 8
    assert "no_sync()" in finding.snippet


def test_it_promises_the_needless_exchanges_and_no_more():
    """Seven of eight go: of 20 ms in a step of 36."""
    finding = detect(two())
    assert finding is not None
    assert finding.gain is not None
    assert finding.gain.share_of_step == pytest.approx(7 / 8 * 20 / 36)


def test_accumulation_inside_no_sync_is_fine():
    """One exchange for eight micro-batches."""
    assert detect(two(syncs=every(8, 1.0, 0.0, 120))) is None


def test_no_accumulation_is_fine():
    """One exchange, one optimizer step."""
    assert detect(two(every_n=1)) is None


def test_where_exchanging_costs_nothing_it_is_information():
    """Advice, no alarm."""
    cheap = detect(two(comm=16 * SMALL_SHARE))
    assert cheap is not None
    assert cheap.severity == "info"


def test_exchanges_that_were_not_measured_are_no_evidence():
    """Accumulation alone proves nothing."""
    assert detect(two(syncs=float("nan"))) is None


def test_a_gpus_share_comes_from_torchs_samples():
    """No phase comm there: 4 ms of 16 a backward pass, an eighth of which is needed."""
    facts = {"ddp": {"exposed_ms": 4.0, "sampled": 10, "device": "cuda"}}
    seen = rank(120, syncs=1, optimizer_steps=every(8, 1.0, 0.0, 120), facts=facts)
    finding = detect(window(seen))
    assert finding is not None
    assert finding.evidence["avoidable_share"] == pytest.approx(7 / 8 * 0.25, abs=0.001)
