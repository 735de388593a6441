"""The loop waits for its own logging: a slow sink, files flushed, plots drawn, in every step."""

from __future__ import annotations

from monitor.diagnosis.core.finding import Finding, gain_from_share
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Window
from monitor.diagnosis.signals.stack_attribution import Loss, worst
from monitor.diagnosis.signals.steady import span

CODE = "logging_stall"
NEEDS = frozenset({"steps", "other_stacks"})
CURVE = ("run", "run_other_ms")

#: Share of wall time lost to it that counts (own: as for waiting, gpuprof's 15 %; the zoo's healthy
#: printing of a loss in every step takes 0.6 %).
LOST_SHARE = 0.15

#: Logging this share of the time, when done in every step, should take no more (own).
TARGET_SHARE = 0.02


def detect(window: Window) -> Finding | None:
    """From `LOST_SHARE` of wall time on, told by stacks sampled outside the known phases."""
    found = worst(window, "logging", LOST_SHARE)
    if found is None:
        return None
    loss, ranks = found
    first, last = span(loss.rank)
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
        snippet=f"if step % {_every(loss)} == 0:\n    {loss.source.strip()[:200]}",
        gain=gain_from_share(loss.share, message("{ms:.1f} ms of each step go into logging", ms=loss.ms)),
        ranks=ranks, first_step=first, last_step=last, location=loss.location,
    )  # fmt: skip


def _every(loss: Loss) -> int:
    """Steps between two calls at which logging takes `TARGET_SHARE`, rounded up to tens."""
    rest = max(1 - loss.share, 0.01)
    return max(10, -(-int(loss.share / (TARGET_SHARE * rest)) // 10) * 10)
