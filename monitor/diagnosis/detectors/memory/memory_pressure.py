"""Little is left below the memory limit, in /dev/shm, or on the GPU: next comes an end for lack of memory.

What: 92 % of the memory limit, the host's memory or /dev/shm is in use in three samples in a row; critical
    from 97 %. On a GPU: it ran out of memory (critical where the program ended on it), two allocations had
    to be retried, or the most that was ever allocated is 97 % of the device (information from 92 % on).
Why it costs: next the kernel kills the process, or a worker dies of a bus error. A retried allocation
    empties the GPU's cache and waits for the device.
How to see it: `used_mb` against `limit_mb`; on a GPU `requested_mb`, `allocated_mb`, `split_mb` and the
    largest holder at the moment it ran out.
How to fix it: smaller batches, fewer workers, a shorter queue, a higher limit. On a GPU: gradient
    accumulation, 16 bits, recomputed activations, sharding.
How sure we are: measured.

Columns: `cgroup_memory_mb` (without file cache), `memory_limit_mb`, `host_memory_used_mb`,
    `host_memory_total_mb`, `shm_used_mb`, `shm_total_mb`; `cuda_retries`, `cuda_ooms`, `cuda_peak_mb`
Facts: loader: `num_workers`; cuda: `total_mb`
Events: `oom`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monitor.diagnosis.core.finding import Finding, Severity
from monitor.diagnosis.core.ranking import gravity
from monitor.diagnosis.core.window import Rank, Table, Window
from monitor.diagnosis.signals.cpu_contention import sample_values
from monitor.diagnosis.signals.cuda_device import allocator, cuda_rows, number
from monitor.diagnosis.signals.facts import ranks_where
from monitor.diagnosis.signals.robust import total
from monitor.diagnosis.signals.training_steps import train_loader

CODE = "memory_pressure"
NEEDS = frozenset({"hosts"})
CURVE = ("proc", "tree_pss_mb")

#: Share of the limit in use (TraceML: 92 % warns, 97 % is critical).
WARNING = 0.92
CRITICAL = 0.97

#: Samples in a row that must show it (own: a peak while saving is no state).
LASTING = 3

#: Allocations that had to be tried again in the recent past, each after emptying the cache and waiting for
#: the device (own: after the warm-up one is an event, two are a state).
RETRIES = 2

_TITLE = "Memory is nearly full"
_SHARED = "shared memory"
_GPU, _GPU_OOM, _GPU_RETRIES = "GPU memory", "GPU out of memory", "GPU allocations that are retried"

#: What is compared with what, and what it is called.
_KINDS = (
    ("cgroup_memory_mb", "memory_limit_mb", "memory limit"),
    ("host_memory_used_mb", "host_memory_total_mb", "host memory"),
    ("shm_used_mb", "shm_total_mb", _SHARED),
)

_ADVICE = {
    _SHARED: "Loader workers hand batches over in /dev/shm: enlarge it (docker run --shm-size=8g), or lower "
    "num_workers, prefetch_factor or batch_size. When it is full a worker dies of a bus error.",
}
_GPU_ADVICE = (
    "Lower the batch size and accumulate gradients instead, compute in 16 bits, recompute activations "
    "(torch.utils.checkpoint), or shard the model (FSDP)."
)
_ELSE = (
    "Lower batch_size, num_workers or prefetch_factor, or raise the limit: at the limit the kernel kills "
    "the process."
)


def detect(window: Window) -> Finding | None:
    """The graver of two: the fullest kind of memory on the fullest host, and the GPU."""
    device, host = _device(window), _host(window)
    if device is None or host is None:
        return device or host
    return min(device, host, key=lambda one: gravity(one.severity))


def _host(window: Window) -> Finding | None:
    found = [
        (share, name, samples, used, limit)
        for samples in window.hosts.values()
        for used, limit, name in _KINDS
        if (share := _share(samples, used, limit)) >= WARNING and (name != _SHARED or _has_workers(window))
    ]
    if not found:
        return None
    share, name, samples, used, limit = max(found, key=lambda one: one[0])
    severity: Severity = "critical" if share >= CRITICAL else "warning"
    evidence = {
        "used_share": round(share, 3),
        "used_mb": round(float(sample_values(samples, used)[-1])),
        "limit_mb": round(float(sample_values(samples, limit)[-1])),
    }
    return Finding(
        CODE, severity, _TITLE, name, evidence, _ADVICE.get(name, _ELSE),
        ranks=tuple(sorted(window.ranks)),
    )  # fmt: skip


def _device(window: Window) -> Finding | None:
    """Out of memory, retries, or a peak near the device's end, whichever is gravest."""
    ooms = [event for event in window.events_of("oom") if not event.get("caught")]
    if ooms:
        return _ran_out(ooms[-1])
    tried = {
        number_: total(sample_values(cuda_rows(rank), "cuda_retries"))
        for number_, rank in window.ranks.items()
    }
    failed = {
        number_: total(sample_values(cuda_rows(rank), "cuda_ooms")) for number_, rank in window.ranks.items()
    }
    most_tried, most_failed = max(tried.values(), default=0.0), max(failed.values(), default=0.0)
    if not most_failed and most_tried < RETRIES:
        return _near_full(window)
    ranks = [n for n in sorted(tried) if (failed[n] if most_failed else tried[n] >= RETRIES)]
    return Finding(
        CODE, "warning", _TITLE, _GPU_OOM if most_failed else _GPU_RETRIES,
        {"retries": round(most_tried), "out_of_memory_errors": round(most_failed)},
        _GPU_ADVICE, ranks=tuple(ranks),
    )  # fmt: skip


def _ran_out(event: Mapping[str, Any]) -> Finding:
    """The program ended on it: what was asked for, and what there was."""
    evidence: dict[str, Any] = {
        "requested_mb": event.get("requested_mb"), "allocated_mb": event.get("allocated_mb"),
        "reserved_mb": event.get("reserved_mb"), "split_mb": event.get("split_mb"),
        "largest_free_mb": event.get("largest_free_mb"), "free_mb": event.get("free_mb"),
    }  # fmt: skip
    evidence = {name: round(number(event, name)) for name in evidence if number(event, name) >= 0}
    largest = next((one for one in event.get("holders") or () if isinstance(one, Mapping)), None)
    if largest is not None:
        evidence["largest_holder"] = str(largest.get("what") or "")
        evidence["largest_holder_mb"] = round(number(largest, "mb"), 1)
    return Finding(
        CODE, "critical", _TITLE, _GPU_OOM, evidence, _GPU_ADVICE, ranks=(int(event.get("rank") or 0),),
        location=event.get("location"), first_step=event.get("step"), last_step=event.get("step"),
    )  # fmt: skip


def _near_full(window: Window) -> Finding | None:
    """By the most that was in tensors: what is merely reserved can be given back, and fills up in any run."""
    held = {number_: found for number_, rank in window.ranks.items() if (found := allocator(rank))}
    full = {n: one.peak / one.total for n, one in held.items() if one.peak >= WARNING * one.total}
    if not full:
        return None
    worst = max(full, key=lambda n: full[n])
    return Finding(
        CODE, "warning" if full[worst] >= CRITICAL else "info", _TITLE, _GPU,
        {
            "used_share": round(full[worst], 3), "peak_mb": round(held[worst].peak),
            "limit_mb": round(held[worst].total),
        },
        _GPU_ADVICE, ranks=tuple(sorted(full)),
    )  # fmt: skip


def _share(samples: Table, used: str, limit: str) -> float:
    """Share of the limit in use in each of the newest samples, at least; 0 where it is not known."""
    part, limits = sample_values(samples, used)[-LASTING:], sample_values(samples, limit)[-LASTING:]
    if len(part) < LASTING or not (limits > 0).all():
        return 0.0
    least = float((part / limits).min())
    return least if least == least else 0.0


def _has_workers(window: Window) -> bool:
    def has(rank: Rank) -> bool:
        loader = train_loader(rank)
        return loader is not None and bool(loader[1].get("num_workers"))

    return bool(ranks_where(window, has))
