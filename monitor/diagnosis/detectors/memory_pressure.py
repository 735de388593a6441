"""Little is left below the memory limit, or in /dev/shm: next comes the kernel's killer."""

from __future__ import annotations

from monitor.diagnosis.facts import ranks_where
from monitor.diagnosis.finding import Finding, Severity
from monitor.diagnosis.machine import values
from monitor.diagnosis.steady import train_loader
from monitor.diagnosis.window import Rank, Table, Window

CODE = "memory_pressure"
NEEDS = frozenset({"hosts"})

#: Share of the limit in use (TraceML: 92 % warns, 97 % is critical).
WARNING = 0.92
CRITICAL = 0.97

#: Samples in a row that must show it (own: a peak while saving is no state).
LASTING = 3

_SHARED = "shared memory"

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
_ELSE = (
    "Lower batch_size, num_workers or prefetch_factor, or raise the limit: at the limit the kernel kills "
    "the process."
)


def detect(window: Window) -> Finding | None:
    """The fullest kind of memory on the fullest host."""
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
        "used_mb": round(float(values(samples, used)[-1])),
        "limit_mb": round(float(values(samples, limit)[-1])),
    }
    return Finding(
        CODE, severity, "Memory is nearly full", name, evidence, _ADVICE.get(name, _ELSE),
        ranks=tuple(sorted(window.ranks)),
    )  # fmt: skip


def _share(samples: Table, used: str, limit: str) -> float:
    """Share of the limit in use in each of the newest samples, at least; 0 where it is not known."""
    part, whole = values(samples, used)[-LASTING:], values(samples, limit)[-LASTING:]
    if len(part) < LASTING or not (whole > 0).all():
        return 0.0
    least = float((part / whole).min())
    return least if least == least else 0.0


def _has_workers(window: Window) -> bool:
    def has(rank: Rank) -> bool:
        loader = train_loader(rank)
        return loader is not None and bool(loader[1].get("num_workers"))

    return bool(ranks_where(window, has))
