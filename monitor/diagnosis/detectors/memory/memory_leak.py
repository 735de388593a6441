"""Memory climbs with the step count, and does not stop.

What: memory of the process tree, or what torch has allocated on the GPU, climbs with the step count through
    every third of the time, by 128 MB at least (512 MB while the first epoch lasts, since a dataset may be
    filling a cache). Critical when the limit is ten minutes away.
Why it costs: the kernel ends the run when the limit is reached.
How to see it: `mb_per_step`, `limit_reached_in_s`, the memory chart.
How to fix it: causes `main process` and `GPU memory`: keep `loss.item()`, not `loss`; detach outputs and
    hidden states. Cause `loader workers`: Python objects of the dataset are copied into each worker page by
    page: keep them in numpy arrays or tensors.
How sure we are: the climb is measured. A buffer that is meant to grow looks the same.

Columns: `tree_pss_mb`, `rss_mb` (five samples while training, or three of a steep climb),
    `memory_limit_mb`, `epoch`; `cuda_allocated_mb`
Facts: cuda: `total_mb`
Events: `epoch`
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.diagnosis.core.finding import Finding, Severity
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.cuda_device import total_mb
from monitor.diagnosis.signals.memory_samples import (
    MemorySamples,
    limit_mb,
    main_process,
    on_device,
    process_tree,
)
from monitor.diagnosis.signals.training_steps import epoch_starts, recent_steps

CODE = "memory_leak"
NEEDS = frozenset({"memory", "steps"})
CURVE = ("proc", "tree_pss_mb")

#: Growth that counts, in MB, and per step (measurements.md#memory-growth: a kept loss costs 0.2 MB a step,
#: a kept graph about 4; repaired twins drift by 0.1 to 0.6 MB a step for a while, some 30 MB in all).
GROWTH_MB = 128.0
STEP_MB = 0.05

#: While the first epoch lasts, a dataset may only be filling its cache: then this much (TraceML: 512 MiB).
FIRST_EPOCH_MB = 512.0

#: Each third of the time must take part with this share of an even climb: a drift that settles has not
#: (own).
EACH_THIRD = 0.5

#: Samples, steps and seconds it takes to see a climb (measurements.md#memory-growth: a healthy script's
#: heap once grew by 330 MB in 2.5 s) …
SAMPLES = 5
STEPS = 60
LASTED_S = 4.0

#: … or so few samples and less time, where it is this many times what counts (own: a run of seconds has no
#: more).
FEW_SAMPLES = 3
FEW_TIMES = 2.0

#: The limit that near, in seconds, is an emergency (own: time to stop a run by hand).
SOON_S = 600.0

#: Whose memory grows.
MAIN, WORKERS, DEVICE = "main process", "loader workers", "GPU memory"

_ADVICE = {
    WORKERS: "The workers grow, not the main process: Python objects (lists, dicts) of the dataset are "
    "copied into each worker as they are touched. Keep them in numpy arrays or tensors, and cache nothing "
    "per worker.",
    DEVICE: "Something keeps tensors on the GPU alive: append loss.item() or loss.detach(), not loss, to "
    "lists and running sums, and look for outputs and hidden states that are carried on without detach().",
    MAIN: "Something keeps tensors alive: append loss.item() or loss.detach(), not loss, to lists and "
    "running sums, and look for hidden states that are carried on without detach().",
}


@dataclass(frozen=True)
class Climb:
    """Steady growth of one rank's memory, in MB, per step, and per second; whose it is, and when."""

    grown_mb: float
    step_mb: float
    second_mb: float
    of: str
    memory: MemorySamples


def detect(window: Window) -> Finding | None:
    """The rank that grows most speaks. Promises nothing: it is about surviving, not about speed."""
    ranks = [window.ranks[number] for number in sorted(window.ranks)]
    climbs = {rank.rank: climb for rank in ranks if (climb := _climb(window, rank))}
    if not climbs:
        return None
    climb = max(climbs.values(), key=lambda each: each.grown_mb)
    limit, now_mb = _limit(window, climb), float(climb.memory.mb[-1])
    left_s = (limit - now_mb) / climb.second_mb if limit else None
    soon = left_s is not None and left_s < SOON_S and climb.grown_mb >= FIRST_EPOCH_MB
    severity: Severity = "critical" if soon and not window.finished else "warning"
    evidence = {
        "grown_mb": round(climb.grown_mb, 1), "mb_per_step": round(climb.step_mb, 3),
        "now_mb": round(now_mb, 1),
        **({"limit_mb": limit, "limit_reached_in_s": round(left_s)} if limit and left_s is not None else {}),
    }  # fmt: skip
    return Finding(
        CODE, severity, "Memory grows with every step", climb.of, evidence, _ADVICE[climb.of],
        ranks=tuple(climbs),
        first_step=int(climb.memory.step[0]), last_step=int(climb.memory.step[-1]),
    )  # fmt: skip


def _climb(window: Window, rank: Rank) -> Climb | None:
    """The climb after the warm-up, None where there is none that counts.

    What the tree climbs while the main process does not is the workers'.
    """
    least = FIRST_EPOCH_MB if _may_fill_a_cache(window, rank) else GROWTH_MB
    held = (DEVICE, on_device(rank)), (MAIN, main_process(rank)), (WORKERS, process_tree(rank))
    for of, memory in held:
        # A sample right after the last step may have been taken while some was let go already.
        for seen in (memory, memory.until(_last_s(rank))):
            if climb := _grown(of, seen, least):
                return climb
    return None


def _last_s(rank: Rank) -> float:
    ends = rank.steps.get("t_s", np.empty(0))
    return float(ends[-1]) if len(ends) else 0.0


def _grown(of: str, memory: MemorySamples, least: float) -> Climb | None:
    if len(memory) < FEW_SAMPLES or memory.step[-1] - memory.step[0] < STEPS:
        return None
    seen = len(memory) >= SAMPLES and memory.t_s[-1] - memory.t_s[0] >= LASTED_S
    enough = least * (1.0 if seen else FEW_TIMES)
    grown = float(memory.mb[-1] - memory.mb[0])
    step_mb = grown / float(memory.step[-1] - memory.step[0])
    if grown < enough or step_mb < STEP_MB or not _lasts(memory, grown):
        return None
    return Climb(grown, step_mb, grown / float(memory.t_s[-1] - memory.t_s[0]), of, memory)


def _limit(window: Window, climb: Climb) -> float | None:
    """What the growing memory may reach: of the devices' the smallest, else the host's limit."""
    if climb.of != DEVICE:
        return limit_mb(window)
    known = [mb for rank in window.ranks.values() if (mb := total_mb(rank)) == mb]
    return min(known, default=None)


def _lasts(memory: MemorySamples, grown_mb: float) -> bool:
    """Whether every third of the steps took part in the growth."""
    thirds = np.linspace(memory.step[0], memory.step[-1], 4)
    levels = np.interp(thirds, memory.step, memory.mb)
    return bool((np.diff(levels) >= EACH_THIRD * grown_mb / 3).all())


def _may_fill_a_cache(window: Window, rank: Rank) -> bool:
    return not window.finished and not len(epoch_starts(window, recent_steps(rank)))
