"""The loop waits for the device, or turns tensors into Python numbers one by one, in every step.

What: values are read out of tensors (`.item()`, `.cpu()`, `float(...)`) for 15 % of the time or more; or
    explicit synchronisations, one a step or more, wait that long. On a GPU a warning only where it stood
    idle for 15 % of the step between its last kernel and the next forward, waiting for data aside; else
    information, for such a line also waits for the step's own arithmetic.
Why it costs: on a GPU each one empties the queue; on a CPU hundreds of small calls add up.
How to see it: the line, from stacks taken from outside while the loop was in no known phase, or from
    counted calls of `torch.cuda.synchronize`; `gpu_idle_share_at_most`.
How to fix it: read every so many steps, stacked into one tensor. Time with CUDA events instead of
    synchronising.
How sure we are: the share is sampled, from two stacks on; the more `stacks`, the surer. Explicit
    synchronisations are counted. On a GPU nothing is promised.

Columns: `other_ms`, `gc_ms`; on a GPU `gpu_gap_ms`, `gpu_data_ms`, `gpu_step_ms`, `cuda_syncs`,
    `cuda_sync_ms`
Facts: model: `device`; syncs: `locations`
Events: `other_stack`
"""

from __future__ import annotations

from monitor.diagnosis.core.finding import Finding, Severity
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.cuda_device import cuda, cuda_rows, idle_share, per_step
from monitor.diagnosis.signals.facts import fact, facts_of, numbers, on_gpu, ranks_where
from monitor.diagnosis.signals.robust import mean
from monitor.diagnosis.signals.stack_attribution import promised, worst
from monitor.diagnosis.signals.training_steps import recent_steps, step_ms, step_range

CODE = "host_sync"
NEEDS = frozenset({"steps", "other_stacks"})
CURVE = ("run", "run_other_ms")

#: Share of wall time lost to it that counts (own: as for waiting, gpuprof's 15 %; printing a loss in every
#: step takes 0.6 %, measurements.md#evaluation-and-logging).
LOST_SHARE = 0.15

#: Explicit synchronisations in each step (own).
SYNCS = 1.0


def detect(window: Window) -> Finding | None:
    """From `LOST_SHARE` of wall time on, told by stacks sampled outside the known phases; or counted calls.

    On a GPU such a line also waits for the step's own arithmetic, so there it is a fault only where the
    device stood idle between the steps as well, and promises nothing.
    """
    return _read(window) or _synchronised(window)


def _read(window: Window) -> Finding | None:
    found = worst(window, "sync", LOST_SHARE)
    if found is None:
        return None
    loss, ranks = found
    first, last = step_range(loss.rank)
    gpu = any(on_gpu(model) for model in facts_of(loss.rank, "model"))
    basis = message("{ms:.1f} ms of each step go into reading values out of tensors", ms=loss.ms)
    idle = idle_share(cuda_rows(loss.rank)) if gpu else float("nan")
    return Finding(
        CODE, _severity(idle) if gpu else "warning", "Values are read one by one", "values read every step",
        {
            "sync_share": round(loss.share, 3), "sync_ms_per_step": round(loss.ms, 2),
            "line": loss.source[:120], "stacks": loss.samples,
            **({"gpu_idle_share_at_most": round(idle, 3)} if idle == idle else {}),
        },
        "Read them every so many steps, and together: stack the values into one tensor and call .tolist() "
        "once.",
        snippet="if step % 50 == 0:\n    values = torch.stack([t.norm() for t in tensors]).tolist()",
        gain=None if gpu else promised(loss, basis),
        ranks=ranks, first_step=first, last_step=last, location=loss.location,
    )  # fmt: skip


def _synchronised(window: Window) -> Finding | None:
    """Calls of torch.cuda.synchronize and the like, which the probe counts."""
    ranks = ranks_where(window, lambda rank: _waited_share(rank) >= LOST_SHARE)
    if not ranks:
        return None
    rank = max(ranks, key=_waited_share)
    table, idle = cuda_rows(rank), idle_share(cuda_rows(rank))
    first, last = step_range(recent_steps(rank))
    return Finding(
        CODE, _severity(idle), "The loop waits for the GPU", "explicit synchronisation",
        {
            "synchronisations_per_step": round(per_step(table, "cuda_syncs"), 2),
            "waited_share": round(_waited_share(rank), 3),
            **({"gpu_idle_share_at_most": round(idle, 3)} if idle == idle else {}),
        },
        "Leave torch.cuda.synchronize() out of the loop: nothing needs it, and after each the GPU idles "
        "until the next kernel is launched. Time with CUDA events instead.",
        ranks=numbers(ranks), first_step=first, last_step=last, location=_location(rank),
    )  # fmt: skip


def _severity(idle: float) -> Severity:
    return "warning" if idle >= LOST_SHARE else "info"


def _waited_share(rank: Rank) -> float:
    """Share of the step waited in explicit synchronisations, 0 below one a step."""
    table = cuda_rows(rank)
    if not (cuda(rank) and per_step(table, "cuda_syncs") >= SYNCS):
        return 0.0
    return per_step(table, "cuda_sync_ms") / max(mean(step_ms(recent_steps(rank))), 1e-9)


def _location(rank: Rank) -> str | None:
    """The line that waited longest."""
    locations = [one for one in fact(rank, "syncs").get("locations") or () if isinstance(one, dict)]
    longest = max(locations, key=lambda one: float(one.get("ms") or 0.0), default={})
    location = longest.get("location")
    return str(location) if location else None
