"""The GPU allocator holds far more than was ever needed at one time, in pieces that fit nothing.

What: a fifth or more of what torch has reserved lies free in pieces of segments that are in use, 1.25 times
    as much is reserved as was ever allocated at one time, and that is 30 % of the device or more. A warning
    where 80 % of the device is reserved or allocations are retried, else information.
Why it costs: out of memory with memory left.
How to see it: `reserved_mb` against `peak_mb` and `allocated_mb`; `split_share`; `would_free_mb` is what
    was reserved and never needed.
How to fix it: set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` before the program starts. Where it is
    on: the largest tensors first, batches padded to few sizes.
How sure we are: the numbers are torch's own, and agree with two recorded trainings (27 % in pieces: told; 1
    %: not). `would_free_mb` is the most that segments that grow can give back. Not run on a real GPU yet.

Columns: `cuda_reserved_mb`, `cuda_allocated_mb`, `cuda_split_mb`, `cuda_peak_mb`, `cuda_retries`
Facts: cuda: `total_mb`, `expandable_segments`
"""

from __future__ import annotations

from monitor.diagnosis.core.finding import Finding, Severity
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.cuda_device import Allocator, allocator, cuda, cuda_rows, measured, per_step
from monitor.diagnosis.signals.facts import numbers, ranks_where

CODE = "memory_fragmentation"
NEEDS = frozenset({"allocator", "cuda"})
CURVE = ("gpu", "gpu_memory_used_mb")

#: Free pieces of segments in use, as a share of what is reserved (pytscope: 20 %).
SPLIT_SHARE = 0.2

#: Share of the device that must be reserved: below, nobody is short of it (TraceML: 30 %).
DEVICE_SHARE = 0.3

#: What is reserved against the most that was ever allocated (own: 1.25; the pieces that are free after a
#: step are needed again within the next one, unless that much is never needed). Where torch does not tell
#: the most, against what is allocated now (TraceML: 2).
PEAK_TIMES = 1.25
NOW_TIMES = 2.0

#: From this share of the device on it is about to hurt (own).
SHORT_SHARE = 0.8

#: What the allocator must be told.
SETTING = "expandable_segments:True"


def detect(window: Window) -> Finding | None:
    """Information while there is room; a warning where memory is short or allocations are retried."""
    ranks = ranks_where(window, _torn)
    held = {rank.rank: found for rank in ranks if (found := allocator(rank))}
    if not held:
        return None
    worst = max(ranks, key=lambda rank: held[rank.rank].unneeded)
    memory, expandable = held[worst.rank], bool(cuda(worst).get("expandable_segments"))
    retries = per_step(cuda_rows(worst), "cuda_retries")
    short = memory.reserved >= SHORT_SHARE * memory.total or retries > 0
    severity: Severity = "warning" if short else "info"
    return Finding(
        CODE, severity, "GPU memory is fragmented", "free memory in pieces", measured({
            "reserved_mb": round(memory.reserved), "allocated_mb": round(memory.allocated, 1),
            "split_mb": round(memory.split), "split_share": round(memory.split_share, 3),
            "peak_mb": round(memory.peak, 1), "would_free_mb": round(memory.unneeded),
        }),
        "Segments that grow are on already: allocate the largest tensors first, and pad batches to few sizes."
        if expandable else
        "Let segments grow instead of taking new ones: set the variable before the program starts.",
        snippet="" if expandable else f"PYTORCH_CUDA_ALLOC_CONF={SETTING}",
        ranks=numbers(ranks),
    )  # fmt: skip


def _torn(rank: Rank) -> bool:
    memory = allocator(rank)
    return memory is not None and torn(memory)


def torn(memory: Allocator) -> bool:
    """Whether so much lies in pieces, and is never needed."""
    if not (memory.reserved >= DEVICE_SHARE * memory.total and memory.split_share >= SPLIT_SHARE):
        return False
    if memory.peak == memory.peak:
        return memory.reserved >= PEAK_TIMES * memory.peak
    return memory.reserved >= NOW_TIMES * memory.allocated
