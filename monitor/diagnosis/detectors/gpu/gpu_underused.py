"""The GPU does little, and none of the other checks says why.

What: utilisation is below 50 % (95th percentile below 70 %), and 30 % of the time is idle beyond what
    waiting for data, communication, saving and evaluating explain. A GPU that waits for launches has its
    own finding.
Why it costs: the device idles.
How to see it: `utilisation_percent`, `unexplained_share`; the GPU chart beside the step-time chart.
How to fix it: see what the host does meanwhile; larger batches for small models.
How sure we are: utilisation is the driver's: that some kernel ran, not that the device was full. The reason
    is unknown, which is why it is told. Not run on a real GPU yet.

Columns: `gpu_util`, `gpu_tensor_activity`; all phases, `gpu_caught_up`, `gpu_starved_ms`
Facts: cuda: `uuid`; of the host: `gpus`
"""

from __future__ import annotations

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.window import Table, Window
from monitor.diagnosis.signals.cpu_contention import sample_values
from monitor.diagnosis.signals.cuda_device import (
    gpu,
    gpu_facts,
    launch_starved,
    on_devices,
    sample_mean,
    utilisation,
    waiting_share,
)  # fmt: skip

CODE = "gpu_underused"
NEEDS = frozenset({"cuda", "gpu", "steps"})
CURVE = ("gpu", "gpu_util")

#: Utilisation, per cent: busy less than half of the step (TensorBoard's plug-in), and the 95th percentile
#: below 70 (SageMaker).
LOW = 50.0
LOW_P95 = 70.0

#: Share of wall time idle beyond what the known phases explain (own).
UNEXPLAINED = 0.3

#: Samples that must have been taken (own).
SAMPLES = 5


def detect(window: Window) -> Finding | None:
    """The least busy device speaks. A GPU that waits for launches has a finding of its own."""
    found = {name: (table, ranks) for name, (table, ranks) in on_devices(window).items() if _low(table)}
    unexplained = {name: _unexplained(window, table, ranks) for name, (table, ranks) in found.items()}
    named = [name for name in unexplained if unexplained[name] >= UNEXPLAINED]
    if not named:
        return None
    name = max(named, key=lambda one: unexplained[one])
    table = found[name][0]
    usual, high = utilisation(table)
    tensor = sample_mean(table, "gpu_tensor_activity")
    return Finding(
        CODE, "warning", "The GPU does little", "low utilisation without a known reason", {
            "gpu": name, "device": str(gpu_facts(window, name).get("name") or ""),
            "utilisation_percent": round(usual, 1), "utilisation_percent_p95": round(high, 1),
            "unexplained_share": round(unexplained[name], 3),
            **({"tensor_activity_percent": round(tensor, 1)} if tensor == tensor else {}),
        },
        "Something on the host holds it up that belongs to no known phase: see what a step's time goes into, "
        "and the stacks of the main thread. Small models are served by larger batches.",
        ranks=tuple(sorted({rank for one in named for rank in found[one][1]})),
    )  # fmt: skip


def _low(table: Table) -> bool:
    usual, high = utilisation(table)
    return len(sample_values(table, "gpu_util")) >= SAMPLES and usual < LOW and high < LOW_P95


def _unexplained(window: Window, table: Table, ranks: tuple[int, ...]) -> float:
    """Share of the time idle, less what the device's ranks spend waiting for what has its own finding."""
    users = [window.ranks[number] for number in ranks]
    if any(launch_starved(rank) or gpu(window, rank) is None for rank in users):
        return 0.0
    return 1 - utilisation(table)[0] / 100 - max(waiting_share(rank) for rank in users)
