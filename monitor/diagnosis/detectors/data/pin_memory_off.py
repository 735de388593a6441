"""Batches are copied to the GPU from pageable memory.

What: batches that the loader handed over lie in pageable memory, the model on a GPU, and copying takes 1 %
    of the step or more. A warning from 5 % on, where a framework's copy could be timed; otherwise
    information, from an estimate of 6 MB a millisecond.
Why it costs: such a copy goes through a second buffer and blocks the loop, and cannot run beside
    arithmetic.
How to see it: `batch_mb`; `copy_share`, or `copy_share_estimated` where it was not measured; the `h2d` band
    of the step-time chart.
How to fix it: `pin_memory=True` in the loader, `non_blocking=True` in `.to(device)`. Where pinning is on
    and the batch is of a class of your own, give that class a `pin_memory()` method.
How sure we are: that the batch is pageable is certain. In the recorded ResNet-50 job on a V100 all 12
    copies were pageable and took 1 to 2 % of the step, so nothing is promised. Not run on a real GPU yet.

Columns: `h2d_ms`
Facts: batch: `device`, `pageable_mb`; cuda: `h2d_watched`; model: `device`; loader: `pin_memory`, `call`
"""

from __future__ import annotations

from monitor.diagnosis.core.finding import Finding, Severity
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.cuda_device import cuda, number
from monitor.diagnosis.signals.facts import Fact, fact, numbers, on_gpu, ranks_where
from monitor.diagnosis.signals.robust import mean
from monitor.diagnosis.signals.snippet import loader_call
from monitor.diagnosis.signals.training_steps import phase_ms, recent_steps, share, step_ms, train_loader

CODE = "pin_memory_off"
NEEDS = frozenset({"batch", "cuda", "loader", "steps"})

#: Share of the step that copies must take to be a fault (TraceLens: 5 %), where they were measured.
COPY_SHARE = 0.05

#: Below this share they are not worth a word (own).
LEAST_SHARE = 0.01

#: Where they were not measured, pageable memory travels at about so many MB a millisecond (own: half of
#: what PCIe 4 carries from pinned memory; only decides whether to speak at all).
MB_PER_MS = 6.0

_COPY = "\nx = x.to(device, non_blocking=True)"


def detect(window: Window) -> Finding | None:
    """A warning where copies were seen to take their share; information where they can only be estimated.

    Nothing is promised: how much of a copy hides behind arithmetic shows when it is tried.
    """
    ranks = ranks_where(window, lambda rank: _pageable(rank) is not None and _share(rank) >= LEAST_SHARE)
    if not ranks:
        return None
    rank = ranks[0]
    batch, loader = _pageable(rank), train_loader(rank)
    assert batch is not None
    assert loader is not None
    known = _measured(rank)
    severity: Severity = "warning" if known >= COPY_SHARE else "info"
    pinned = bool(loader[1].get("pin_memory"))
    return Finding(
        CODE, severity, "Batches travel from pageable memory",
        "batches that cannot be pinned" if pinned else "pin_memory=False", {
            "batch_mb": round(number(batch, "pageable_mb"), 3),
            **({"copy_share": round(known, 3)} if known > 0 else {"copy_share_estimated": _estimate(rank)}),
        },
        "The loader pins tensors in lists, tuples and dicts only: give the batch's class a pin_memory() "
        "method."
        if pinned else
        "Pin the batches, and copy them without waiting: pinned memory travels faster, and beside "
        "arithmetic.",
        snippet="" if pinned else loader_call(loader[1], pin_memory=True) + _COPY,
        ranks=numbers(ranks), location=loader[1].get("location"),
    )  # fmt: skip


def _pageable(rank: Rank) -> Fact | None:
    """The training loader's batch, where it lies in pageable memory and the model on a GPU."""
    loader = train_loader(rank)
    batch = fact(rank, f"batch/{loader[0]}") if loader else {}
    on_device = any(on_gpu(model) for model in rank.facts_of("model").values())
    lies = batch.get("device") == "cpu" and number(batch, "pageable_mb") > 0
    return batch if on_device and lies else None


def _share(rank: Rank) -> float:
    """Share of the step: as measured, else as estimated."""
    batch, known = _pageable(rank), _measured(rank)
    if known > 0 or batch is None:
        return known
    return number(batch, "pageable_mb") / MB_PER_MS / max(mean(step_ms(recent_steps(rank))), 1e-9)


def _estimate(rank: Rank) -> float:
    return round(_share(rank), 3)


def _measured(rank: Rank) -> float:
    """Share of wall time in copies that a framework made; 0 where nobody could time them."""
    part = recent_steps(rank)
    return share(phase_ms(part, "h2d"), part) if cuda(rank).get("h2d_watched") else 0.0
