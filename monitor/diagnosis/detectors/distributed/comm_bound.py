"""Ranks spend a large part of the step on exchanging, even the last one to come.

What: even the rank that comes last to the exchange spends a fifth of its step or more on it, beyond the
    millisecond that an all-reduce costs however little travels. Information where a poor setting (gloo on
    GPUs, small buckets, synchronised batch norm) costs a twentieth.
Why it costs: the ranks exchange more than they compute. Waiting for a slow rank is not counted here, that
    is `straggler`; nor are needless rounds, those are `no_sync_missing`.
How to see it: the `comm` band; `bus_gb_s` against what the network can do; `hidden_share`, the part of the
    exchange that ran beside arithmetic.
How to fix it: larger batches per rank, accumulation with `no_sync()`, compressed gradients, the right
    backend. With many small buckets their latency is the fault, and counts as such.
How sure we are: measured by torch itself on CPU, for every step; on a GPU in the iterations that torch
    measures anyway, the first ten and every hundredth. `benchmarks/ranks.py`, two ranks on two cores:
    within 3 points of torch.profiler for an MLP and FSDP2, 7 to 9 above it for an embedding, where copying
    10 MB back out of the buckets counts as exchange here and not there. What runs beside arithmetic slows
    that down too where both share the CPUs, and is not counted: without any exchange steps of the MLP were
    shorter by 10 to 35 points more than that.

Columns: `comm_ms`, `collective_ms`, `collective_mb`, `syncs`, `optimizer_steps`, `amp_skipped`;
    `runq_share`, `cpu_used`
Facts: ddp: `backend`, `world_size`, `buckets`, `bucket_cap_mb`, `has_sync_bn`, `device`, `location`; on a
    GPU, and where only a part of the model is wrapped, `exposed_ms`, `sampled`
"""

from __future__ import annotations

import math
from typing import Any

from monitor.diagnosis.core.finding import Finding, Severity, gain_from_share
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.communication import Exchange, bus_gb_s, exchange, redundant, sampled_share
from monitor.diagnosis.signals.cpu_contention import cpus_contended
from monitor.diagnosis.signals.facts import Fact, fact, on_gpu
from monitor.diagnosis.signals.robust import median
from monitor.diagnosis.signals.training_steps import step_range

CODE = "comm_bound"
NEEDS = frozenset({"steps", "exchange"})
CURVE = ("run", "run_comm_ms")

#: Share of the step that is exposed communication, waiting for late ranks not counted (gpuprof warns at 20
#: % and calls 40 % critical; a balanced run had 8 %, measurements.md#all-reduce-latency).
EXPOSED_SHARE = 0.2

#: An all-reduce costs this much however little travels, and in tiny steps that is no fault
#: (measurements.md#all-reduce-latency: 0.2 to 0.7 ms over gloo; two buckets of 0.8 MB took 2.2 ms on two
#: idle cores) …
LATENCY_MS = 1.0

#: … and this much where every hop waits for its turn on a CPU that others use (the same took 5.1 ms).
CROWDED_LATENCY_MS = 3.0

#: From here on a poor setting is worth a word (TraceLens: 5 % of exposed communication).
WORTH_A_WORD = 0.05

#: Smaller than this, buckets cost more in latency than their early start gains (torch's default is 25 MiB).
SMALL_BUCKET_MB = 5.0
MANY_BUCKETS = 10
#: The default of torch, in which the same gradients would travel.
USUAL_BUCKET_MB = 25.0

#: Micro-batches to accumulate over: a quarter of the exchange remains (own).
ACCUMULATE = 4

_ADVICE = {
    "gloo on GPUs": "Gradients travel through the host's memory: use init_process_group('nccl').",
    "small buckets": "Many small all-reduces cost latency: leave bucket_cap_mb at its default of 25 MiB.",
    "synchronised batch norm": "Every synchronised batch norm waits for all ranks, forward and backward: "
    "with batches of some dozens per rank plain batch norm does.",
    "gradient exchange": "Do more arithmetic per exchange: larger batches per rank, or accumulation inside "
    "no_sync(). Or send less: register_comm_hook(None, bf16_compress_hook) halves it.",
    "collectives": "Do more arithmetic per exchange: larger batches per rank, fewer collectives. Or "
    "start them early with async_op=True and wait late.",
}


def detect(window: Window) -> Finding | None:
    """The transfer itself: waiting for late ranks is `straggler`'s, needless rounds `no_sync_missing`'s."""
    seen = exchange(window)
    rank = _speaker(window, seen)
    share = _transfer(window, seen, rank) if seen is not None else sampled_share(rank) or 0.0
    share = _without_needless(share, redundant(rank))
    ddp = fact(rank, "ddp")
    cause = _cause(rank, ddp)
    loud = share >= EXPOSED_SHARE
    if not loud and (cause in ("gradient exchange", "collectives") or share < WORTH_A_WORD):
        return None
    severity: Severity = "warning" if loud else "info"
    first, last = step_range(rank)
    saved = share * (1 - 1 / ACCUMULATE)
    basis = message("exchanging once in {times} times as much work", times=ACCUMULATE)
    return Finding(
        CODE, severity, "Ranks spend their time exchanging", cause, _evidence(share, seen, rank, ddp),
        _ADVICE[cause],
        gain=gain_from_share(saved, basis) if loud else None,
        ranks=tuple(sorted(window.ranks)), first_step=first, last_step=last, location=ddp.get("location"),
    )  # fmt: skip


def _speaker(window: Window, seen: Exchange | None) -> Rank:
    if seen is not None:
        return seen.ranks[0]
    known = [rank for rank in window.ranks.values() if sampled_share(rank) is not None]
    return min(known or window.ranks.values(), key=lambda rank: (sampled_share(rank) or 0.0, rank.rank))


def _transfer(window: Window, seen: Exchange, rank: Rank) -> float:
    """Share of the step that the transfer takes beyond what any exchange costs, 0 to 1."""
    latency_ms = CROWDED_LATENCY_MS if cpus_contended(window, rank) else LATENCY_MS
    syncs = median(rank.column("syncs"))
    rounds = _buckets(fact(rank, "ddp")) * (1.0 if math.isnan(syncs) else syncs)
    median_step_ms = median(seen.step_ms.mean(axis=0))
    return (
        max(median(seen.transfer_ms) - latency_ms * rounds, 0.0) / median_step_ms
        if median_step_ms > 0
        else 0.0
    )


def _buckets(ddp: Fact) -> int:
    """Buckets whose latency any exchange has: more of them, because they are small, is a fault."""
    buckets = int(ddp.get("buckets") or 1)
    if not _small(ddp):
        return buckets
    return min(buckets, 1 + math.ceil(float(ddp.get("gradient_mb") or 0.0) / USUAL_BUCKET_MB))


def _small(ddp: Fact) -> bool:
    small = 0 < float(ddp.get("bucket_cap_mb") or 0.0) < SMALL_BUCKET_MB
    return small and int(ddp.get("buckets") or 0) >= MANY_BUCKETS


def _without_needless(share: float, rounds: float | None) -> float:
    """The share that is left once gradients are exchanged once per optimizer step."""
    if rounds is None or rounds <= 1:
        return share
    left = share / rounds
    return left / (1 - share + left)


def _cause(rank: Rank, ddp: Fact) -> str:
    if not ddp:
        return "collectives"
    on_device = ddp.get("device") == "cuda" or any(map(on_gpu, rank.facts_of("model").values()))
    if on_device and ddp.get("backend") == "gloo":
        return "gloo on GPUs"
    if _small(ddp):
        return "small buckets"
    return "synchronised batch norm" if ddp.get("has_sync_bn") else "gradient exchange"


def _evidence(share: float, seen: Exchange | None, rank: Rank, ddp: Fact) -> dict[str, Any]:
    evidence: dict[str, Any] = {"exposed_share": round(share, 3)}
    if seen is not None:
        median_step_ms = median(seen.step_ms.mean(axis=0))
        exposed, all_ms = median(seen.comm_ms[0]), median(seen.ranks[0].column("collective_ms"))
        evidence |= {
            "step_ms_p50": round(median_step_ms, 2),
            "transfer_ms_p50": round(median(seen.transfer_ms), 2),
            "with_waiting_share": round(seen.exposed_share, 3),
        }
        if all_ms > 0:
            evidence["hidden_share"] = round(max(1 - exposed / all_ms, 0.0), 3)
        size_mb = median(seen.ranks[0].column("collective_mb"))
        if size_mb > 0:
            evidence["mb_per_step"] = round(size_mb, 2)
    elif ddp.get("exposed_ms") is not None:
        evidence |= {"exposed_ms_p50": round(float(ddp["exposed_ms"]), 2), "samples": ddp.get("sampled")}
    speed = bus_gb_s(ddp, rank)
    if speed is not None:
        evidence["bus_gb_s"] = round(speed, 2)
    for key in ("backend", "world_size", "buckets"):
        if ddp.get(key):
            evidence[key] = ddp[key]
    return evidence
