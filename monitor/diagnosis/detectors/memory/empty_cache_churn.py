"""The GPU allocator's cache is emptied again and again, and fetched anew from the driver.

What: at least one segment is fetched from the driver and one given back in every step, and not for want of
    memory.
Why it costs: giving a segment back waits for the device, and fetching it again takes a millisecond or more.
How to see it: `segments_fetched_per_step`, `segments_freed_per_step`, `empty_cache_per_step`, and the line
    that calls it.
How to fix it: do not call `torch.cuda.empty_cache()` in the loop. It makes no room for the same process.
How sure we are: counted by the allocator; what it costs is not measured, so nothing is promised. Not run on
    a real GPU yet.

Columns: `cuda_device_allocs`, `cuda_device_frees`, `cuda_empty_cache`, `cuda_retries`
Facts: cuda: `empty_cache_location`
"""

from __future__ import annotations

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.cuda_device import cuda, cuda_rows, per_step
from monitor.diagnosis.signals.facts import numbers, ranks_where

CODE = "empty_cache_churn"
NEEDS = frozenset({"allocator", "cuda", "empty_cache", "steps"})

#: Segments given back and fetched in each step (own: at least 1; a run that has settled does neither).
SEGMENTS = 1.0

#: Steps per call from which on empty_cache is named as the cause (own).
CALLS = 0.05

_CALLED = "torch.cuda.empty_cache() in the loop"


def detect(window: Window) -> Finding | None:
    """Retries empty the cache as well: those are memory_pressure's."""
    ranks = ranks_where(window, _churns)
    if not ranks:
        return None
    table = cuda_rows(ranks[0])
    called = per_step(table, "cuda_empty_cache")
    return Finding(
        CODE, "warning", "GPU memory is given back and fetched anew",
        _CALLED if called >= CALLS else "the allocator's cache does not last", {
            "segments_fetched_per_step": round(per_step(table, "cuda_device_allocs"), 2),
            "segments_freed_per_step": round(per_step(table, "cuda_device_frees"), 2),
            **({"empty_cache_per_step": round(called, 3)} if called == called else {}),
        },
        "Do not call torch.cuda.empty_cache() in the loop: giving a segment back waits for the device, and "
        "the next step fetches it again. It makes no room for this process."
        if called >= CALLS else
        "Segments are given back in every step: look for garbage_collection_threshold in "
        "PYTORCH_CUDA_ALLOC_CONF, or for a memory limit that is nearly reached.",
        ranks=numbers(ranks),
        location=cuda(ranks[0]).get("empty_cache_location") if called >= CALLS else None,
    )  # fmt: skip


def _churns(rank: Rank) -> bool:
    table = cuda_rows(rank)
    both = min(per_step(table, "cuda_device_allocs"), per_step(table, "cuda_device_frees"))
    return both >= SEGMENTS and not per_step(table, "cuda_retries") > 0
