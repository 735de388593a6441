"""Gradients are exchanged on every micro-batch, though the optimizer needs them once.

What: gradient accumulation exchanges gradients at every micro-batch. Information where that costs less than
    a twentieth of the step.
Why it costs: all but the last exchange are for nothing.
How to see it: `exchanges_per_optimizer_step`.
How to fix it: `with model.no_sync():` around forward and backward of all but the last micro-batch.
How sure we are: counted, from torch's own log.

Columns: `syncs`, `optimizer_steps`, `amp_skipped`, `comm_ms`
Facts: ddp: `gradient_mb`, `location`; on a GPU, and where only a part of the model is wrapped,
    `exposed_ms`, `sampled`
"""

from __future__ import annotations

import numpy as np

from monitor.diagnosis.core.finding import Finding, Severity, gain_from_share
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.communication import exchange, redundant, sampled_share
from monitor.diagnosis.signals.facts import fact, numbers, ranks_where
from monitor.diagnosis.signals.training_steps import phase_ms, recent_steps, share, step_range

CODE = "no_sync_missing"
#: Counted, so a few steps tell: those that accumulate are long, and 20 of them are not needed.
NEEDS = frozenset({"ddp"})
CURVE = ("run", "run_comm_ms")

#: Exchanges per optimizer step; one is what it takes, a second backward pass (two losses, a GAN) is no
#: habit (own).
SEVERAL = 1.9

#: Share of the step below which it is said, but is no fault (TraceLens: 5 % of exposed communication).
SMALL_SHARE = 0.05

SNIPPET = (
    "with model.no_sync() if not last_micro_batch else contextlib.nullcontext():\n"
    "    loss = loss_fn(model(x), y) / accumulate\n"
    "    loss.backward()"
)


def detect(window: Window) -> Finding | None:
    """Counted, not guessed: torch's own log says which backward passes exchanged gradients."""
    ranks = ranks_where(window, lambda rank: (redundant(rank) or 0.0) >= SEVERAL)
    if not ranks:
        return None
    rounds = float(np.median([redundant(rank) or 0.0 for rank in ranks]))
    avoidable = _communication(window, ranks) * (1 - 1 / rounds)
    severity: Severity = "warning" if avoidable >= SMALL_SHARE else "info"
    ddp = fact(ranks[0], "ddp")
    first, last = step_range(ranks[0])
    return Finding(
        CODE, severity, "Gradients are exchanged too often", "no_sync() missing",
        {
            "exchanges_per_optimizer_step": round(rounds, 2),
            "gradient_mb": round(float(ddp.get("gradient_mb") or 0.0), 1),
            "avoidable_share": round(avoidable, 3),
        },
        "Accumulate inside no_sync() and exchange with the last micro-batch only. Forward and backward both "
        "belong inside it.",
        snippet=SNIPPET,
        gain=gain_from_share(
            avoidable, message("of {rounds:.0f} exchanges per optimizer step one remains", rounds=rounds)
        ),
        ranks=numbers(ranks), first_step=first, last_step=last, location=ddp.get("location"),
    )  # fmt: skip


def _communication(window: Window, ranks: list[Rank]) -> float:
    """Share of the step that ranks spend on communication."""
    seen = exchange(window)
    if seen is not None:
        return seen.exposed_share
    shares = [sampled for rank in ranks if (sampled := sampled_share(rank)) is not None]
    if shares:
        return float(np.mean(shares))
    parts = [recent_steps(rank) for rank in ranks]
    return float(np.mean([share(phase_ms(part, "comm"), part) for part in parts if part.count] or [0.0]))
