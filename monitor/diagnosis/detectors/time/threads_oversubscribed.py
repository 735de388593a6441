"""More compute threads than CPUs: they take turns instead of working side by side.

What: more than 1.5 compute threads per usable CPU over all ranks of the host, and it shows as time waiting
    for a CPU; from four per CPU on it need not show.
Why it costs: every parallel region waits for the thread that has no CPU.
How to see it: `threads`, `usable_cpus`, `runq_share`.
How to fix it: `torch.set_num_threads`, or `OMP_NUM_THREADS`.
How sure we are: the count is certain; what it costs is not promised.

Columns: `runq_share`
Facts: threads (or env): `threads`; env: `usable_cpus`, `local_world_size`; loader
"""

from __future__ import annotations

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.cpu_contention import ranks_per_host, runq_share, usable_cpus
from monitor.diagnosis.signals.facts import fact, numbers, ranks_where
from monitor.diagnosis.signals.training_steps import train_loader

CODE = "threads_oversubscribed"
NEEDS = frozenset({"steps"})
CURVE = ("host", "cpu_used")

#: Threads that wait for one another look like a busy machine, and they are the run's own.
EXPLAINS = frozenset({"noisy_neighbour"})

#: Compute threads of all ranks of a host per usable CPU (own: the default on two ranks of one machine, 2,
#: hurts; hyper-threading makes up to 1.5 harmless).
TOO_MANY = 1.5

#: Up to this ratio it must show, as time runnable without a CPU (own: ranks that wait for one another can
#: share a CPU unharmed).
CERTAIN = 4.0
SHOWS_RUNQ = 0.1


def detect(window: Window) -> Finding | None:
    """One finding for all ranks of a run: they share the setting."""
    ranks = ranks_where(window, lambda rank: _oversubscribed(window, rank))
    if not ranks:
        return None
    rank = max(ranks, key=lambda one: _ratio(window, one))
    cpus, loader = usable_cpus(window, rank), train_loader(rank)
    assert cpus is not None
    wanted = max(1, int(cpus) // ranks_per_host(window, rank))
    waited = runq_share(rank)
    return Finding(
        CODE, "warning", "More compute threads than CPUs", "torch threads above usable CPUs",
        {
            "threads": _threads(rank), "ranks_on_host": ranks_per_host(window, rank), "usable_cpus": cpus,
            "workers": loader[1].get("num_workers") if loader else 0,
            **({"runq_share": round(waited, 3)} if waited == waited else {}),
        },
        message(
            "Use {wanted} threads per process: with more of them than CPUs every parallel region waits for "
            "the thread that has none.",
            wanted=wanted,
        ),
        snippet=f"torch.set_num_threads({wanted})",
        ranks=numbers(ranks),
    )  # fmt: skip


def _oversubscribed(window: Window, rank: Rank) -> bool:
    ratio, waited = _ratio(window, rank), runq_share(rank)
    if ratio <= TOO_MANY:
        return False
    return ratio >= CERTAIN or waited >= SHOWS_RUNQ


def _ratio(window: Window, rank: Rank) -> float:
    """Compute threads of the host's ranks per usable CPU; 0 where either is unknown."""
    cpus = usable_cpus(window, rank)
    return _threads(rank) * ranks_per_host(window, rank) / cpus if cpus else 0.0


def _threads(rank: Rank) -> int:
    return int(fact(rank, "threads").get("threads") or fact(rank, "env").get("threads") or 0)
