"""What a detector must have before it may judge: a name -> why it is absent, or None."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.cpu_contention import sample_values
from monitor.diagnosis.signals.cuda_device import cuda, cuda_rows, timed
from monitor.diagnosis.signals.facts import fact, lost_signals
from monitor.diagnosis.signals.stack_attribution import untracked_ms
from monitor.diagnosis.signals.training_steps import MIN_STEPS, recent_steps, share, train_loader

#: Share of wall time outside the known phases that calls for stacks (own: from there on its detectors
#: speak).
OTHER_SHARE = 0.15

Need = Callable[[Window], str | None]


def _steps(window: Window) -> str | None:
    most = max((recent_steps(rank).count for rank in window.ranks.values()), default=0)
    return None if most >= MIN_STEPS else message("fewer than {steps} steps after warm-up", steps=MIN_STEPS)


def _loader(window: Window) -> str | None:
    return None if _any(window, lambda rank: train_loader(rank) is not None) else "no DataLoader seen"


def _workers(window: Window) -> str | None:
    def has(rank: Rank) -> bool:
        loader = train_loader(rank)
        return loader is not None and bool(loader[1].get("num_workers"))

    return _loader(window) or (None if _any(window, has) else "no DataLoader workers")


def _epochs(window: Window) -> str | None:
    def several(rank: Rank) -> bool:
        return int(np.count_nonzero(np.diff(rank.column("epoch")) > 0)) >= 2

    return None if _any(window, several) else "fewer than three epochs seen"


def _memory(window: Window) -> str | None:
    return (
        None if _any(window, lambda rank: bool(len(rank.samples.get("t_s", ())))) else "no memory samples yet"
    )


def _hosts(window: Window) -> str | None:
    return (
        None
        if any(len(samples.get("t_s", ())) for samples in window.hosts.values())
        else "no host samples yet"
    )


def _scaler(window: Window) -> str | None:
    return (
        None
        if _any(window, lambda rank: bool(fact(rank, "precision").get("scaler")))
        else "no gradient scaler"
    )


def _autocast(window: Window) -> str | None:
    return (
        None
        if _any(window, lambda rank: bool(fact(rank, "precision").get("autocast")))
        else "autocast not used"
    )


def _precision(window: Window) -> str | None:
    return None if _any(window, lambda rank: "precision" in rank.facts) else "precision not known yet"


def _compile(window: Window) -> str | None:
    used = _any(window, lambda rank: bool(fact(rank, "compile").get("used")))
    return None if used else "torch.compile not used"


def _ddp(window: Window) -> str | None:
    return None if _any(window, lambda rank: "ddp" in rank.facts) else "no DistributedDataParallel seen"


def _ranks(window: Window) -> str | None:
    return None if len(window.ranks) > 1 else "one rank only"


def _exchange(window: Window) -> str | None:
    def measured(rank: Rank) -> bool:
        waited = bool(np.nansum(rank.column("comm_ms")))
        return waited or fact(rank, "ddp").get("exposed_ms") is not None

    return None if _any(window, measured) else "no communication seen"


def _model(window: Window) -> str | None:
    return None if _any(window, lambda rank: bool(rank.facts_of("model"))) else "no model seen"


def _recording(window: Window) -> str | None:
    """A rank whose recording broke off takes steps that nobody sees: whether it stalls cannot be told."""
    broken = [event for event in window.events_of("warn") if event.get("gave_up")]
    if window.events_of("stall") or not broken:
        return None
    ranks = ", ".join(sorted({str(event.get("rank", 0)) for event in broken}))
    return message("recording broke off on rank {ranks}", ranks=ranks)


def _other_stacks(window: Window) -> str | None:
    """Stacks are only missed where enough time lies outside the known phases to be worth a look."""

    def much(rank: Rank) -> bool:
        part = recent_steps(rank)
        return share(untracked_ms(part), part) >= OTHER_SHARE

    if window.events_of("other_stack") or not _any(window, much):
        return None
    return "time outside the known phases, and no stacks of it"


def _cuda(window: Window) -> str | None:
    return None if _any(window, lambda rank: bool(cuda(rank))) else "no CUDA device"


def _allocator(window: Window) -> str | None:
    def has_rows(rank: Rank) -> bool:
        return bool(len(cuda_rows(rank).get("t_s", ())))

    return _cuda(window) or (
        None if _any(window, has_rows) else "nothing told of GPU memory after warm-up yet"
    )


def _timing(window: Window) -> str | None:
    def has_timings(rank: Rank) -> bool:
        return timed(cuda_rows(rank), "gpu_step_ms") > 0

    return _cuda(window) or (None if _any(window, has_timings) else "no step timed on the GPU yet")


def _batch(window: Window) -> str | None:
    looked = _any(window, lambda rank: bool(rank.facts_of("batch")))
    return _cuda(window) or (None if looked else "no batch looked at yet")


def _gpu(window: Window) -> str | None:
    return _cuda(window) or (None if window.gpus else "the GPU's driver cannot be asked")


def _gpu_processes(window: Window) -> str | None:
    """In a container the driver numbers processes its own way: then ours are not among them."""
    known = any(
        np.isfinite(sample_values(table, "gpu_own_memory_mb")).any() for table in window.gpus.values()
    )
    return _gpu(window) or (None if known else "whose processes are on the GPU cannot be told")


def not_measured(why: str) -> str:
    """The reason of what a lost signal leaves unchecked."""
    return message("not measured: {why}", why=why)


def _measured(signal: str) -> Need:
    """The need of a signal and of nothing else."""

    def need(window: Window) -> str | None:
        why = lost_signals(window).get(signal)
        return None if why is None else not_measured(why)

    return need


def _any(window: Window, holds: Callable[[Rank], bool]) -> bool:
    return any(holds(rank) for rank in window.ranks.values())


#: Signals that are needs by themselves (see `monitor.schema.SIGNALS`).
SIGNALS_ALONE = ("forward", "backward", "checkpoint", "loss", "loss_scale", "amp_skipped", "empty_cache")
#: Need -> the signals without which it cannot be told whether it is there.
_SIGNALS_OF: dict[str, tuple[str, ...]] = {
    "allocator": ("cuda", "cuda_memory"),
    "autocast": ("precision",),
    "cuda": ("cuda",),
    "compile": ("compile",),
    "ddp": ("comm", "ddp"),
    "epochs": ("data",),
    "exchange": ("comm",),
    "loader": ("data",),
    "model": ("model",),
    "precision": ("precision",),
    "scaler": ("precision",),
    "timing": ("cuda", "gpu_time"),
    "workers": ("data",),
}

#: Every need a detector may name in NEEDS.
NEEDS: dict[str, Need] = {
    "allocator": _allocator,
    "batch": _batch,
    "cuda": _cuda,
    "gpu": _gpu,
    "gpu_processes": _gpu_processes,
    "timing": _timing,
    "steps": _steps,
    "loader": _loader,
    "workers": _workers,
    "epochs": _epochs,
    "memory": _memory,
    "hosts": _hosts,
    "scaler": _scaler,
    "autocast": _autocast,
    "precision": _precision,
    "compile": _compile,
    "ddp": _ddp,
    "ranks": _ranks,
    "exchange": _exchange,
    "model": _model,
    "other_stacks": _other_stacks,
    "recording": _recording,
    **{signal: _measured(signal) for signal in SIGNALS_ALONE},
}


def absent(names: frozenset[str], window: Window) -> str | None:
    """Why the first missing one of `names` is absent (alphabetically), None when all are there.

    Raises:
        KeyError: a detector names a need that does not exist (a programmer's mistake).
    """
    signals = lost_signals(window)
    for name in sorted(names):
        why = next(
            (not_measured(signals[signal]) for signal in _SIGNALS_OF.get(name, ()) if signal in signals), None
        )
        why = why or NEEDS[name](window)
        if why is not None:
            return why
    return None
