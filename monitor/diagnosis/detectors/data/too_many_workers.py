"""More DataLoader workers than the CPUs, or the memory, can feed.

What: more loader workers than usable CPUs: information up to twice as many, a warning beyond, or earlier
    when the first batch is 3 s late, the workers hold a quarter of the memory limit, or they fight for
    CPUs.
Why it costs: each worker starts, opens its files and holds its copy; none gets a CPU of its own.
How to see it: `num_workers` against `usable_cpus` (affinity and container quota, not the machine's CPUs),
    `first_wait_ms`, `workers_mb`.
How to fix it: at most as many workers as usable CPUs, divided by the ranks on the host. Workers that only
    wait for slow storage may be more.
How sure we are: the count is certain; what it costs is not promised.

Columns: `data_ms` of step 0; `tree_pss_mb`, `rss_mb`, `runq_share`, `workers_cpu`, `memory_limit_mb`
Facts: loader; env: `usable_cpus`, `local_world_size`
"""

from __future__ import annotations

from typing import Any

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.cpu_contention import (
    BUSY_RUNQ,
    own_cpu,
    ranks_per_host,
    runq_share,
    sample_values,
    usable_cpus,
)
from monitor.diagnosis.signals.robust import mean
from monitor.diagnosis.signals.snippet import loader_call
from monitor.diagnosis.signals.training_steps import train_loader

CODE = "too_many_workers"
NEEDS = frozenset({"workers"})
CURVE = ("host", "cpu_used")

#: Workers per usable CPU: torch itself warns above 1, SageMaker's range ends at 2. Above the range it is
#: a fault; between the two it is one only when it shows.
TORCH_WARNS = 1.0
TOO_MANY = 2.0

#: It shows when the first batch is this late, in ms (own: starting workers takes 450 to 1,900 ms,
#: measurements.md#worker-start), …
LATE_FIRST_MS = 3_000.0

#: … or when the workers hold this share of the memory limit (own).
MEMORY_SHARE = 0.25

#: Workers that compute less than this share of a CPU each wait for storage: more of them than CPUs can
#: be right (own).
IDLE_WORKER = 0.1


def detect(window: Window) -> Finding | None:
    """One finding for all ranks; the rank with most workers speaks."""
    ranks = [window.ranks[number] for number in sorted(window.ranks)]
    crowded = [one for one in ranks if _ratio(window, one) > TORCH_WARNS]
    if not crowded:
        return None
    rank = max(crowded, key=lambda one: _ratio(window, one))
    loader, cpus = train_loader(rank), usable_cpus(window, rank)
    assert loader is not None
    assert cpus is not None
    fault = _ratio(window, rank) > TOO_MANY or _shows(window, rank)
    wanted = max(1, int(cpus) // ranks_per_host(window, rank))
    return Finding(
        CODE, "warning" if fault else "info", "More loader workers than CPUs", "more workers than CPUs",
        _evidence(window, rank, cpus),
        message(
            "Use {wanted} workers: more than CPUs start slowly, take memory each and fetch nothing faster.",
            wanted=wanted,
        ),
        snippet=loader_call(loader[1], num_workers=wanted),
        ranks=tuple(one.rank for one in crowded), location=loader[1].get("location"),
    )  # fmt: skip


def _ratio(window: Window, rank: Rank) -> float:
    """Workers of all ranks of the host per usable CPU; 0 where either is unknown."""
    loader, cpus = train_loader(rank), usable_cpus(window, rank)
    workers = int(loader[1].get("num_workers") or 0) if loader else 0
    return workers * ranks_per_host(window, rank) / cpus if cpus else 0.0


def _shows(window: Window, rank: Rank) -> bool:
    late = (_first_wait_ms(rank) or 0.0) >= LATE_FIRST_MS
    limit = _limit_mb(window)
    heavy = limit is not None and (_workers_mb(rank) or 0.0) >= MEMORY_SHARE * limit
    loader = train_loader(rank)
    workers = int(loader[1]["num_workers"]) if loader else 1
    fighting = runq_share(rank) > BUSY_RUNQ and own_cpu(rank)[1] / workers >= IDLE_WORKER
    return late or heavy or fighting


def _evidence(window: Window, rank: Rank, cpus: float) -> dict[str, Any]:
    loader = train_loader(rank)
    known = {
        "num_workers": loader[1]["num_workers"] if loader else None,
        "usable_cpus": cpus,
        "ranks_on_host": ranks_per_host(window, rank),
        "first_wait_ms": _first_wait_ms(rank),
        "workers_mb": _workers_mb(rank),
    }
    return {key: value for key, value in known.items() if value is not None}


def _first_wait_ms(rank: Rank) -> float | None:
    """The wait before the run's first step; None where the window no longer holds it."""
    if not rank.count or rank.steps["step"][0] != 0:
        return None
    first = float(rank.column("data_ms")[0])
    return round(first, 1) if first == first else None


def _workers_mb(rank: Rank) -> float | None:
    """What the workers hold beyond the main process."""
    mb = mean(sample_values(rank.samples, "tree_pss_mb")[-5:]) - mean(
        sample_values(rank.samples, "rss_mb")[-5:]
    )
    return round(mb, 1) if mb > 0 else None


def _limit_mb(window: Window) -> float | None:
    limits = [mean(sample_values(samples, "memory_limit_mb")) for samples in window.hosts.values()]
    return min((limit for limit in limits if limit == limit), default=None)
