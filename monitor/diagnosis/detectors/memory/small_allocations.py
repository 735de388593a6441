"""Very many small tensors on the GPU in every step, and a GPU that waits for the host.

What: a thousand or more allocations below 1 MB in every step, one every 40 µs or closer, and a GPU that is
    done before the host. Information.
Why it costs: each belongs to a kernel that is over before the next one is launched.
How to see it: `small_allocations_per_step`, `every_us`.
How to fix it: larger tensors, `torch._foreach` functions, a fused optimizer, `torch.compile`.
How sure we are: counted by the allocator. That small tensors are the reason is inferred. Not run on a real
    GPU yet.

Columns: `cuda_small_allocs`, `cuda_allocs`, `gpu_caught_up`
"""

from __future__ import annotations

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.cuda_device import CAUGHT_UP, cuda_rows, measured, per_step, timed
from monitor.diagnosis.signals.facts import numbers, ranks_where
from monitor.diagnosis.signals.robust import median
from monitor.diagnosis.signals.training_steps import recent_steps, step_ms

CODE = "small_allocations"
NEEDS = frozenset({"allocator", "cuda", "steps", "timing"})

#: Allocations below 1 MB in a step, and the time between two of them (own: a kernel is launched in about
#: 5 to 10 µs, so a step that makes a tensor every 40 µs is made of little else).
ALLOCATIONS = 1_000
EVERY_US = 40.0


def detect(window: Window) -> Finding | None:
    """Information, and only where the GPU is done before the host: otherwise it hides behind arithmetic."""
    ranks = ranks_where(window, _many)
    if not ranks:
        return None
    table = cuda_rows(ranks[0])
    small = per_step(table, "cuda_small_allocs")
    return Finding(
        CODE, "info", "Very many small GPU tensors", "small tensors in every step", measured({
            "small_allocations_per_step": round(small),
            "allocations_per_step": round(per_step(table, "cuda_allocs"), 1),
            "every_us": round(1e3 * _step_ms(ranks[0]) / small, 1),
        }),
        "Work on larger tensors (torch._foreach functions, one stacked tensor instead of a list), use a "
        "fused or foreach optimizer, or let torch.compile join the small operations.",
        ranks=numbers(ranks),
    )  # fmt: skip


def _many(rank: Rank) -> bool:
    table = cuda_rows(rank)
    small, done = per_step(table, "cuda_small_allocs"), timed(table, "gpu_caught_up")
    return small >= ALLOCATIONS and 1e3 * _step_ms(rank) / small <= EVERY_US and done >= CAUGHT_UP


def _step_ms(rank: Rank) -> float:
    return median(step_ms(recent_steps(rank)))
