"""The loop waits for its batches, again and again, for longer than a hand-over takes.

What: the loop waits for its next batch, again and again, for longer than a hand-over takes. Waits beyond
    2.5 ms a batch (10 ms on a busy machine) take 15 % of the wall time or more. On a GPU only waiting counts
    in which the device stood idle too: a host that is ahead of it may wait and lose nothing.
Why it costs: nothing else happens while the loop waits. A batch that a worker has ready still costs 1 to
    2.5 ms to hand over, which no setting removes: so tiny steps have a high data share and are healthy.
How to see it: the `data` band of the step-time chart; `wait_ms_p50`, `wait_ms_p95` and `hideable_share` of
    the finding. `rhythm_batches` says that every so many batches one is late, as many as there are workers.
How to fix it: by cause. `num_workers=0`: let workers read ahead. `too few workers`: use more. `CPU-bound
    transform`: no CPU is left, so make samples cheaper (decode once, keep the result, work on whole
    batches). `storage`: keep samples in memory or on a local disk, in few large files. `slow hand-over`:
    return few large tensors from `collate_fn`. `cold first epoch`: nothing to do, it is information.
How sure we are: the wait is measured, so the gain is certain. The cause is inferred from CPU time and the
    rhythm of the waits, and is wrong now and then where CPU time could not be measured.

Columns: `data_ms`, `epoch`, `data_cpu_ms`; `main_cpu`, `workers_cpu`, `runq_share`, `cpu_used`; on a GPU
    `gpu_idle_ms`, `gpu_timed`
Facts: loader: `num_workers`, `persistent_workers`, `call`, `location`, `role`; env: `usable_cpus`
Events: `epoch`, `stall`
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from monitor.diagnosis.core.finding import Finding, gain_from_share
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Window
from monitor.diagnosis.signals.cpu_contention import own_cpu, runq_share, usable_cpus
from monitor.diagnosis.signals.loader_waits import HANDOVER_MS, Waits, waits, worker_rhythm
from monitor.diagnosis.signals.robust import median, quantile, total
from monitor.diagnosis.signals.snippet import loader_call
from monitor.diagnosis.signals.training_steps import (
    MIN_STEPS,
    WARMUP_STEPS,
    epoch_starts,
    phase_ms,
    recent_steps,
    share,
    slice_steps,
    step_range,
)

CODE = "data_starvation"
NEEDS = frozenset({"steps", "loader"})
CURVE = ("run", "data_share")

#: Share of wall time lost to waits that could be hidden (gpuprof warns at 15 %, TraceML at 10 and 20 %,
#: XProf at 5 and 20 %; those count the hand-over too, this one does not).
LOST_SHARE = 0.15

#: The first epoch may only be cold (files not cached yet). While it is the only one, it must go on for
#: this long, or be the run's last, before it is called starved (own).
COLD_EPOCH_S = 8.0

#: CPU per second of waiting above which loading is computing, below which it is waiting for storage (own).
CPU_BOUND = 0.6

#: A worker this busy has no time to wait for storage (own; a worker that keeps a CPU measures 0.9 to 1).
WORKER_BUSY = 0.7

#: Workers that compute are enough when more would make steps no shorter than by this ratio (own).
ENOUGH = 1.1

#: Never advise more workers than this per usable CPU for storage (SageMaker: 70 to 200 % of cores).
WORKERS_PER_CPU = 2

TITLE = "Training waits for data"


@dataclass(frozen=True)
class Cause:
    """Why batches are late, and what to do.

    Attributes:
        workers: the number to use; None where another one would not help.
        best_ms: what a step takes at least with so many; 0 where nothing limits.
    """

    name: str
    advice: str
    workers: int | None = None
    best_ms: float = 0.0


def detect(window: Window) -> Finding | None:
    """Every rank is judged alone; the worst one speaks for all that starve."""
    judged = {number: waits(window, window.ranks[number]) for number in sorted(window.ranks)}
    starved = {number: one for number, one in judged.items() if one is not None and _starves(one)}
    if not starved:
        return _cold_first_epoch(window, judged)
    worst = max(starved.values(), key=lambda one: one.lost_share)
    if _may_only_be_cold(window, worst):
        return None
    cause = _cause(window, worst)
    first, last = step_range(worst.rank)
    return Finding(
        CODE, "warning", TITLE, cause.name, _evidence(worst), cause.advice,
        snippet=_snippet(worst, cause),
        gain=gain_from_share(_promised(worst, cause), _basis(worst, cause)),
        ranks=tuple(starved), first_step=first, last_step=last, location=worst.loader.get("location"),
    )  # fmt: skip


def _promised(one: Waits, cause: Cause) -> float:
    """Share of the time that is saved: all the waiting, or what so many workers on these CPUs take over."""
    total_ms = float(np.mean(one.wait_ms + one.other_ms))
    return min(one.saved_share(), 1 - cause.best_ms / total_ms) if total_ms > 0 else 0.0


def _basis(one: Waits, cause: Cause) -> str:
    total_ms, waited = float(np.mean(one.wait_ms + one.other_ms)), float(np.mean(one.wait_ms))
    if _promised(one, cause) < one.saved_share():
        return message(
            "of {whole:.1f} ms a step, {waited:.1f} ms are spent waiting for the batch; "
            "with {workers} workers one is ready every {best:.1f} ms",
            whole=total_ms, waited=waited, best=cause.best_ms, workers=cause.workers,
        )  # fmt: skip
    return message(
        "of {whole:.1f} ms a step, {waited:.1f} ms are spent waiting for the batch; with batches ready in "
        "time their hand-over remains",
        whole=total_ms, waited=waited,
    )  # fmt: skip


def _starves(one: Waits) -> bool:
    return one.pattern == "steady" and one.lost_at_least(LOST_SHARE)


def _may_only_be_cold(window: Window, one: Waits) -> bool:
    """Whether all that was judged is a first epoch that has not gone on for long."""
    first = step_range(one.rank)[0]
    if window.finished or first is None or first > WARMUP_STEPS:
        return False
    return float(np.sum(one.wait_ms + one.other_ms)) / 1e3 < COLD_EPOCH_S


def _cold_first_epoch(window: Window, judged: dict[int, Waits | None]) -> Finding | None:
    """Information only: the first epoch waited, the later ones did not."""
    for number, one in judged.items():
        all_steps = recent_steps(window.ranks[number])
        starts = epoch_starts(window, all_steps)
        if one is None or not len(starts) or starts[0] < MIN_STEPS or one.rank.count == all_steps.count:
            continue
        first = slice_steps(all_steps, 0, int(starts[0]))
        later = slice_steps(all_steps, int(starts[0]), all_steps.count)
        lost, later_lost = (
            share(np.maximum(phase_ms(part, "data") - HANDOVER_MS * one.batches, 0.0), part)
            for part in (first, later)
        )
        if max(later_lost, one.lost_share) < LOST_SHARE <= lost and one.pattern in ("none", "steady"):
            evidence = {
                "first_epoch_lost_share": round(lost, 3),
                "later_lost_share": round(later_lost, 3),
            }
            advice = (
                "Nothing to do: the first epoch filled the caches. Many short runs gain from a local copy."
            )
            return Finding(CODE, "info", TITLE, "cold first epoch", evidence, advice, ranks=(number,))
    return None


def _evidence(one: Waits) -> dict[str, Any]:
    evidence: dict[str, Any] = {
        "data_share": round(one.data_share, 3),
        "hideable_share": round(one.lost_share, 3),
        "wait_ms_p50": round(median(one.wait_ms), 2),
        "wait_ms_p95": round(quantile(one.wait_ms, 0.95), 2),
        "other_ms_p50": round(median(one.other_ms), 2),
        "num_workers": one.workers,
    }
    if worker_rhythm(one.wait_ms, one.workers):
        evidence["rhythm_batches"] = one.workers
    if one.crowded:
        evidence["runq_share"] = round(runq_share(one.rank), 3)
    return evidence


def _cause(window: Window, one: Waits) -> Cause:
    cpus = usable_cpus(window, one.rank)
    if one.workers == 0:
        return _without_workers(one, cpus)
    main = _main_cpu_share(one)
    if main is not None and main >= CPU_BOUND:
        return Cause(
            "slow hand-over",
            "The main process spends the wait unpacking batches. Return few large tensors from collate_fn, "
            "no lists of small objects, and convert in the dataset.",
        )
    busy = own_cpu(one.rank)[1] / one.workers
    if busy >= WORKER_BUSY and cpus is not None and one.workers + 1 >= cpus:
        return Cause(
            "CPU-bound transform",
            message(
                "All {workers} workers compute without pause and no CPU is left for more: make samples "
                "cheaper (decode once and keep the result, work on whole batches), or use more CPUs.",
                workers=one.workers,
            ),
        )
    batch_ms = one.workers * float(np.mean(one.wait_ms + one.other_ms))
    wanted = _wanted(one, batch_ms, cpus, busy >= WORKER_BUSY)
    if wanted > one.workers:
        advice = message(
            "{workers} workers cannot keep up: use {wanted}, or make samples cheaper.",
            workers=one.workers, wanted=wanted,
        )  # fmt: skip
        return Cause("too few workers", advice, wanted, batch_ms / wanted)
    return Cause(
        "storage",
        "Workers wait for storage, and these CPUs carry no more of them: keep the samples in memory or on a "
        "local disk, in few large files, or read ahead with a larger prefetch_factor.",
    )


def _without_workers(one: Waits, cpus: float | None) -> Cause:
    name, computes, batch_ms = "num_workers=0", _main_cpu_share(one), float(np.mean(one.wait_ms))
    if computes is None or computes < CPU_BOUND:
        wanted = _wanted(one, batch_ms, cpus, computes=False)
        advice = message(
            "Batches are read in the training loop itself: let {workers} read ahead.",
            workers=_workers(wanted),
        )
        return Cause(name, advice, wanted, batch_ms / wanted)
    limits = _computing_ms(one, cpus)
    wanted = next(n for n, ms in limits.items() if ms <= min(limits.values()) * ENOUGH)
    advice = message(
        "Batches are computed in the training loop itself: let {workers} do it meanwhile, and "
        "where CPUs are few make samples cheaper too (transform once and keep the result).",
        workers=_workers(wanted),
    )
    return Cause(name, advice, wanted, limits[wanted])


def _computing_ms(one: Waits, cpus: float | None) -> dict[int, float]:
    """What a step takes at least with 1, 2, … workers that compute: limited by them, CPUs and the rest."""
    batch_ms, other_ms = float(np.mean(one.wait_ms)), float(np.mean(one.other_ms))
    most = 8 if cpus is None else max(int(cpus), 1)
    together = (batch_ms + other_ms) / (most if cpus is None else max(cpus, 1.0))
    return {number: max(batch_ms / number, together, other_ms) for number in range(1, most + 1)}


def _workers(number: int) -> str:
    return "one worker" if number == 1 else message("{number} workers", number=number)


def _main_cpu_share(one: Waits) -> float | None:
    """CPU time of the main thread per time waited, 0 to 1; None where nothing tells."""
    spent = one.rank.column("data_cpu_ms")
    looked = ~np.isnan(spent)  # the probe reads the thread's CPU time in some steps only
    waited = float(one.wait_ms[looked].sum())
    if waited > 0:
        return min(1.0, total(spent) / waited)
    main = own_cpu(one.rank)[0]
    if math.isnan(main) or one.workers:
        return None
    return min(max((main - (1 - one.data_share)) / max(one.data_share, 1e-9), 0.0), 1.0)


def _wanted(one: Waits, batch_ms: float, cpus: float | None, computes: bool) -> int:
    """Workers that deliver a batch of `batch_ms` work within every step's other time."""
    wanted = math.ceil(batch_ms / max(float(np.mean(one.other_ms)), HANDOVER_MS * one.batches)) + 1
    most = 8.0 if cpus is None else max(cpus - 1, 1) if computes else WORKERS_PER_CPU * cpus
    return max(1, min(wanted, int(most)))


def _snippet(one: Waits, cause: Cause) -> str:
    if cause.workers is None:
        return ""
    more: dict[str, Any] = {} if one.loader.get("persistent_workers") else {"persistent_workers": True}
    return loader_call(one.loader, num_workers=cause.workers, **more)
