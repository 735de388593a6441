"""Tensors are turned into Python numbers, many of them, in every step."""

from __future__ import annotations

from monitor.diagnosis.elsewhere import worst
from monitor.diagnosis.facts import facts_of, on_gpu
from monitor.diagnosis.finding import Finding, gain_from_share
from monitor.diagnosis.say import say
from monitor.diagnosis.steady import span
from monitor.diagnosis.window import Window

CODE = "host_sync"
NEEDS = frozenset({"steps", "other_stacks"})

#: Share of wall time lost to it that counts (own: as for waiting, gpuprof's 15 %; the zoo's healthy
#: printing of a loss in every step takes 0.6 %).
LOST_SHARE = 0.15


def detect(window: Window) -> Finding | None:
    """From `LOST_SHARE` of wall time on, told by stacks sampled outside the known phases.

    On a GPU such a line also waits for the step's own arithmetic, so there it is information and
    promises nothing.
    """
    found = worst(window, "sync", LOST_SHARE)
    if found is None:
        return None
    loss, ranks = found
    first, last = span(loss.rank)
    gpu = any(on_gpu(model) for model in facts_of(loss.rank, "model"))
    basis = say("{ms:.1f} ms of each step go into reading values out of tensors", ms=loss.ms)
    return Finding(
        CODE, "info" if gpu else "warning", "Values are read one by one", "values read every step",
        {
            "sync_share": round(loss.share, 3), "sync_ms_per_step": round(loss.ms, 2),
            "line": loss.source[:120], "stacks": loss.samples,
        },
        "Read them every so many steps, and together: stack the values into one tensor and call .tolist() "
        "once.",
        snippet="if step % 50 == 0:\n    values = torch.stack([t.norm() for t in tensors]).tolist()",
        gain=None if gpu else gain_from_share(loss.share, basis),
        ranks=ranks, first_step=first, last_step=last, location=loss.location,
    )  # fmt: skip
