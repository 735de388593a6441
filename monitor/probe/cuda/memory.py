"""What the allocator says of itself, as the numbers of one row. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MB = 1e6

#: Bytes as they stand, in the allocator's own names.
_BYTES = {
    "cuda_allocated_mb": ("allocated_bytes", "all", "current"),
    "cuda_reserved_mb": ("reserved_bytes", "all", "current"),
    "cuda_split_mb": ("inactive_split_bytes", "all", "current"),
    "cuda_peak_mb": ("allocated_bytes", "all", "peak"),
}
#: A count as it stands.
_COUNTS = {"cuda_segments": ("segment", "all", "current")}
#: Counts that only grow.
_GROWING: dict[str, tuple[str, ...]] = {
    "cuda_retries": ("num_alloc_retries",),
    "cuda_ooms": ("num_ooms",),
    "cuda_device_allocs": ("num_device_alloc",),
    "cuda_device_frees": ("num_device_free",),
    "cuda_allocs": ("allocation", "all", "allocated"),
    "cuda_small_allocs": ("allocation", "small_pool", "allocated"),
}
#: What only the allocator of torch's own keeps; another one reports 0 there.
_NATIVE = frozenset({"cuda_split_mb", "cuda_segments", "cuda_retries", "cuda_small_allocs"})

Counters = Mapping[str, Any]


def row(now: Counters, before: Counters, *, native: bool = True) -> dict[str, float]:
    """The `cuda_` metrics of `monitor.schema`; those that this torch does not know are missing.

    Args:
        now, before: counters as `torch.cuda.memory_stats` tells them, nested or flat.
        native: whether torch's own allocator is in use.
    """
    found: dict[str, float | None] = {}
    for key, path in _BYTES.items():
        size = value(now, path)
        found[key] = None if size is None else size / MB
    for key, path in _COUNTS.items():
        found[key] = value(now, path)
    for key, names in _GROWING.items():
        found[key] = _growth(value(now, names), value(before, names))
    return {k: v for k, v in found.items() if v is not None and (native or k not in _NATIVE)}


def value(counters: Counters, path: tuple[str, ...]) -> float | None:
    """One counter; None where there is none of that name."""
    flat = counters.get(".".join(path))
    if isinstance(flat, int | float):
        return float(flat)
    found: Any = counters
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return float(found) if isinstance(found, int | float) else None


def _growth(now: float | None, before: float | None) -> float | None:
    """Growth since the last time. One that fell was reset by the program, and counts from 0."""
    if now is None:
        return None
    return now if before is None or now < before else now - before
