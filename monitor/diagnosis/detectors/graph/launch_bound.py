"""The GPU waits for kernels to be launched: it is done as soon as the host is.

What: in nine of ten steps the GPU was done as soon as the host had launched the backward pass, and phases
    at whose end it was done take 40 % of its step. A warning where utilisation is below 50 % too, else a
    hint.
Why it costs: the device idles between short kernels.
How to see it: `caught_up_share`, `starved_share_at_most`, `utilisation_percent`.
How to fix it: larger batches; `torch.compile(mode="reduce-overhead")`, which launches a step as one CUDA
    graph.
How sure we are: from events in the stream and from asking whether it has run dry, without waiting for it.
    How long it waited within a phase nobody can tell, so the share is an upper bound and nothing is
    promised. Not run on a real GPU yet.

Columns: `gpu_caught_up`, `gpu_starved_ms`, `gpu_step_ms`; `gpu_util`
Facts: cuda: `uuid`; compile: `used`
"""

from __future__ import annotations

from monitor.diagnosis.core.finding import Finding, Severity
from monitor.diagnosis.core.window import Window
from monitor.diagnosis.signals.cuda_device import (
    cuda_rows,
    gpu,
    launch_starved,
    starved_share,
    timed,
    utilisation,
)
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
    ranks = ranks_where(window, launch_starved)
    if not ranks:
        return None
    rank = ranks[0]
    table, own = cuda_rows(rank), gpu(window, rank)
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
