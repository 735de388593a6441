"""The loop waits for its own logging: a slow sink, files flushed, plots drawn, in every step.

What: logging takes 15 % of the time or more: a slow sink, files flushed, plots drawn, in the training loop.
    On a GPU only as far as the device stood idle meanwhile.
Why it costs: the loop waits for every call.
How to see it: the line and the function, from stacks taken from outside while the loop was in no known
    phase.
How to fix it: log every so many steps, or hand the values to a thread.
How sure we are: the share is sampled, from two stacks on; few of them count for less. That a call is
    logging is told by its name and library; other work in the loop is left alone.

Columns: `other_ms`, `gc_ms`; on a GPU `gpu_gap_ms`, `gpu_data_ms`, `gpu_timed`
Events: `other_stack`
"""

from __future__ import annotations

import re

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Window
from monitor.diagnosis.signals.stack_attribution import Loss, promised, worst
from monitor.diagnosis.signals.training_steps import step_range

CODE = "logging_stall"
NEEDS = frozenset({"steps", "other_stacks"})
CURVE = ("run", "run_other_ms")

#: Share of wall time lost to it that counts (own: as for waiting, gpuprof's 15 %; printing a loss in every
#: step takes 0.6 %, measurements.md#evaluation-and-logging).
LOST_SHARE = 0.15

#: A statement that is one call, of arguments that call nothing but a tensor's `.item()`.
_ONE_CALL = re.compile(r"[\w.]+\((?:[^()]|\.item\(\))*\)")

#: Logging this share of the time, when done in every step, should take no more (own).
TARGET_SHARE = 0.02


def detect(window: Window) -> Finding | None:
    """From `LOST_SHARE` of wall time on, told by stacks sampled outside the known phases."""
    found = worst(window, "logging", LOST_SHARE)
    if found is None:
        return None
    loss, ranks = found
    first, last = step_range(loss.rank)
    return Finding(
        CODE, "warning", "Logging holds up training", "logging in the training loop",
        {
            "logging_share": round(loss.share, 3), "logging_ms_per_step": round(loss.ms, 2),
            "line": loss.source[:120], "function": loss.function, "stacks": loss.samples,
        },
        message(
            "Log every {every} steps, or hand the values to a thread: the loop now waits for each call.",
            every=_every(loss),
        ),
        snippet=_snippet(loss),
        gain=promised(loss, message("{ms:.1f} ms of each step go into logging", ms=loss.ms)),
        ranks=ranks, first_step=first, last_step=last, location=loss.location,
    )  # fmt: skip


def _snippet(loss: Loss) -> str:
    """The line, done every so many steps; nothing where leaving it out might leave out work."""
    line = loss.source.strip()
    return f"if step % {_every(loss)} == 0:\n    {line[:200]}" if _ONE_CALL.fullmatch(line) else ""


def _every(loss: Loss) -> int:
    """Steps between two calls at which logging takes `TARGET_SHARE`, rounded up to tens."""
    rest = max(1 - loss.share, 0.01)
    return max(10, -(-int(loss.share / (TARGET_SHARE * rest)) // 10) * 10)
