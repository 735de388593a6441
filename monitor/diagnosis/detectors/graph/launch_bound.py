"""The GPU waits for kernels to be launched: it is done as soon as the host is."""

from __future__ import annotations

from monitor.diagnosis.core.finding import Finding, Severity
from monitor.diagnosis.core.window import Window
from monitor.diagnosis.signals.device import gpu, rows, starved, starved_share, timed, utilisation
from monitor.diagnosis.signals.facts import fact, numbers, ranks_where

CODE = "launch_bound"
NEEDS = frozenset({"cuda", "steps", "timing"})
CURVE = ("gpu", "gpu_util")

#: Each launch is for little.
EXPLAINS = frozenset({"small_allocations"})

#: Utilisation below which it is a fault (TensorBoard's plug-in: busy less than half of the step); above,
#: or unknown, it is a hint.
LOW_UTIL = 50.0


def detect(window: Window) -> Finding | None:
    """A hint from events in the stream, always on; which kernels they are, only a profile tells.

    Nothing is promised: within a phase nobody can tell how long each wait was.
    """
    ranks = ranks_where(window, starved)
    if not ranks:
        return None
    rank = ranks[0]
    table, own = rows(rank), gpu(window, rank)
    used = utilisation(own[1])[0] if own else float("nan")
    severity: Severity = "warning" if used < LOW_UTIL else "info"
    compiled = bool(fact(rank, "compile").get("used"))
    return Finding(
        CODE, severity, "The GPU waits for the host", "kernels launched one by one", {
            "caught_up_share": round(timed(table, "gpu_caught_up"), 3),
            "starved_share_at_most": round(starved_share(table), 3),
            "gpu_step_ms": round(timed(table, "gpu_step_ms"), 3),
            **({"utilisation_percent": round(used, 1)} if used == used else {}),
        },
        'Give each launch more to do: larger batches, or torch.compile(model, mode="reduce-overhead"), which '
        "launches a whole step as one CUDA graph."
        if not compiled else
        'Give each launch more to do: larger batches, or mode="reduce-overhead", which launches a whole step '
        "as one CUDA graph.",
        snippet='model = torch.compile(model, mode="reduce-overhead")', ranks=numbers(ranks),
    )  # fmt: skip
