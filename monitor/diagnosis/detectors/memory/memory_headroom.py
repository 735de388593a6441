"""GPU memory and utilisation leave room for a larger batch.

What: peak memory, the 95th percentile of GPU utilisation (or a GPU that waits for launches) and of the CPUs
    are all below 70 %, and by this run's own memory a batch half as large again or more would fit.
    Information.
Why it costs: larger batches use the device better.
How to see it: `batch_size`, `batch_size_that_fits`, `peak_mb` against `gpu_memory_mb`.
How to fix it: a larger batch, with the learning rate adapted.
How sure we are: the batch size is extrapolated, and said to be: what a batch takes beyond what stays
    between steps is taken to grow with it, nine tenths of the device may be filled, and nothing beyond four
    times is guessed. Not run on a real GPU yet.

Columns: `cuda_allocated_mb`, `cuda_reserved_mb`, `cuda_peak_mb`, `samples`, `backward_calls`; `gpu_util`,
    `gpu_memory_used_mb`, `cpu_used`, `cpu_usable`
Facts: cuda: `total_mb`, `uuid`
"""

from __future__ import annotations

import numpy as np

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.cpu_contention import sample_values
from monitor.diagnosis.signals.cuda_device import (
    Allocator,
    allocator,
    cuda,
    gpu,
    launch_starved,
    utilisation,
    waiting_share,
)  # fmt: skip
from monitor.diagnosis.signals.facts import numbers, ranks_where
from monitor.diagnosis.signals.robust import median, quantile
from monitor.diagnosis.signals.training_steps import recent_steps

CODE = "memory_headroom"
NEEDS = frozenset({"allocator", "cuda", "gpu", "steps"})
CURVE = ("gpu", "gpu_memory_used_mb")

#: The 95th percentile of GPU and CPUs and the peak of memory below this share (SageMaker: 70 % each).
BUSY = 0.7

#: Share of wall time spent waiting above which a larger batch would change nothing (own).
WAITING_SHARE = 0.3

#: Share of the device that the larger batch may fill (TraceML warns at 92 %), and the growth that is worth
#: a word, and the largest that this run can tell of (own: what was not tried grows less sure with distance).
FILL = 0.9
WORTH = 1.5
MOST = 4.0

#: Memory that a batch must take for a guess, as a share of the device (own).
BATCH_SHARE = 0.005


def detect(window: Window) -> Finding | None:
    """Information: how much faster it gets, and whether training likes it, shows when it is tried."""
    ranks = ranks_where(window, lambda rank: _room(window, rank) is not None)
    if not ranks:
        return None
    rank = ranks[0]
    memory, own = allocator(rank), gpu(window, rank)
    assert memory is not None
    assert own is not None
    batch, fits = batch_size(rank), batch_size(rank) * (_room(window, rank) or 1.0)
    return Finding(
        CODE, "info", "Room for a larger batch", "GPU memory and GPU not full", {
            "batch_size": round(batch), "batch_size_that_fits": _rounded(fits),
            "peak_mb": round(memory.peak), "gpu_memory_mb": round(memory.total),
            "utilisation_percent_p95": round(utilisation(own[1])[1], 1),
        },
        message(
            "By this run's own memory a batch of about {fits} would fit (extrapolated, not tried): what a "
            "batch takes beyond weights and optimizer grows with it. Adapt the learning rate.",
            fits=_rounded(fits),
        ),
        snippet=f"batch_size={_rounded(fits)}", ranks=numbers(ranks),
    )  # fmt: skip


def batch_size(rank: Rank) -> float:
    """Samples of one forward and backward pass; NaN where they were not counted."""
    part = recent_steps(rank)
    passes = np.maximum(np.nan_to_num(part.column("backward_calls"), nan=1.0), 1)
    return median(part.column("samples") / passes)


def growth(memory: Allocator, others: float = 0.0) -> float:
    """How many times the batch may be, from what it takes beyond what stays between steps. At most MOST.

    Args:
        others: MB that other processes and the CUDA context hold.
    """
    batch = memory.peak - memory.allocated
    if not batch > BATCH_SHARE * memory.total:
        return 1.0
    return min((FILL * (memory.total - others) - memory.allocated) / batch, MOST)


def _room(window: Window, rank: Rank) -> float | None:
    memory, own = allocator(rank), gpu(window, rank)
    if memory is None or own is None or not batch_size(rank) >= 1 or not cuda(rank):
        return None
    # A busy GPU, or one that waits for something else, gains nothing by it. A starved one does.
    idle = utilisation(own[1])[1] < 100 * BUSY or launch_starved(rank)
    if not (idle and memory.peak < BUSY * memory.total and waiting_share(rank) < WAITING_SHARE):
        return None
    if _cpus(window) >= BUSY:
        return None
    used = median(sample_values(own[1], "gpu_memory_used_mb"))
    times = growth(memory, max(used - memory.reserved, 0.0) if used == used else 0.0)
    return times if times >= WORTH else None


def _cpus(window: Window) -> float:
    """95th percentile of the share of usable CPUs in use, of the busiest host; 0 where unknown."""
    shares = [
        quantile(
            sample_values(table, "cpu_used") / np.maximum(sample_values(table, "cpu_usable"), 1e-9), 0.95
        )
        for table in window.hosts.values()
    ]
    return float(np.nanmax([0.0, *shares]))


def _rounded(batch: float) -> int:
    """Down to a multiple of 8 where it is large enough."""
    return int(batch // 8 * 8) if batch >= 16 else int(batch)
