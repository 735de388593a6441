"""Other processes take the CPUs from this run.

What: the main thread waited for a CPU 30 % of the time, and other processes were using them.
Why it costs: the run's own times are not its own any more.
How to see it: `runq_share` and `others_cores`.
How to fix it: CPUs of its own (taskset, a cgroup), or another machine.
How sure we are: both are measured.

Columns: `runq_share`, `main_cpu`, `workers_cpu` (loader workers only), `cpu_used`
Facts: env: `usable_cpus`; loader: `num_workers`
"""

from __future__ import annotations

import numpy as np

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.cpu_contention import (
    others_cpu,
    runq_share,
    samples_while_training,
    usable_cpus,
)
from monitor.diagnosis.signals.facts import numbers, ranks_where
from monitor.diagnosis.signals.robust import mean

CODE = "noisy_neighbour"
NEEDS = frozenset({"steps", "memory", "hosts"})
CURVE = ("host", "cpu_used")

#: Share of time that the main thread was ready to run without a CPU (measurements.md#busy-machines: above
#: 0.15 the machine was busy; twice that, since few samples swing, and a little of it harms nobody).
RUNQ = 0.3

#: Cores that others use, at least, and as a share of those usable (own).
OTHERS_CORES = 0.5
OTHERS_SHARE = 0.25

#: Seconds that samples must span (own).
LASTED_S = 2.8


def detect(window: Window) -> Finding | None:
    """Waiting for CPUs alone proves nothing: others must be seen using them. Nothing is promised.

    Ranks share their CPUs, so they are judged by their mean.
    """
    ranks = ranks_where(window, lambda rank: _lasted_s(rank) >= LASTED_S)
    waited = mean(np.array([runq_share(rank) for rank in ranks]))
    if not waited >= RUNQ:
        return None
    others, cpus = others_cpu(window), usable_cpus(window, ranks[0])
    if not (others >= OTHERS_CORES and others >= OTHERS_SHARE * (cpus or 0.0)):
        return None
    return Finding(
        CODE, "warning", "Other processes take the CPUs", "CPUs shared with others",
        {"runq_share": round(waited, 3), "others_cores": round(others, 2), "usable_cpus": cpus},
        "Times measured now are not the run's own. Give it CPUs of its own (taskset, a cgroup, another "
        "machine), or wait until the others are done.",
        ranks=numbers(ranks),
    )  # fmt: skip


def _lasted_s(rank: Rank) -> float:
    times = samples_while_training(rank).get("t_s")
    return float(times[-1] - times[0]) if times is not None and len(times) else 0.0
