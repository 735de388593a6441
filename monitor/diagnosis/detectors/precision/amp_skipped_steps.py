"""The scaler skips too many optimizer steps, long after its scale should have settled.

What: more than one optimizer step in 20 is skipped by the scaler after it had settled (40 further steps at
    least).
Why it costs: the forward and backward pass of a skipped step are thrown away.
How to see it: `skipped_share`.
How to fix it: clip gradients after `unscale_`, lower the learning rate, raise `growth_interval`, or use
    bfloat16.
How sure we are: certain: skips are counted, not guessed.

Columns: `amp_skipped`, `optimizer_steps`, `loss_scale`
Facts: precision: `scaler`, `scaler_location`
"""

from __future__ import annotations

import numpy as np

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.facts import fact, numbers
from monitor.diagnosis.signals.loss_scale import after_settling, optimizer_rows
from monitor.diagnosis.signals.robust import median
from monitor.diagnosis.signals.training_steps import recent_steps

CODE = "amp_skipped_steps"
NEEDS = frozenset({"amp_skipped", "scaler"})

#: More than one skip in 20 optimizer steps (own; torch's scaler tries a larger scale, and skips for it,
#: once in 2,000).
SKIPPED_SHARE = 0.05

#: So many optimizer steps must have followed the settling (own: two skips are the least that can be too
#: many).
ENOUGH = 40


def detect(window: Window) -> Finding | None:
    """The rank that skips most speaks; the first steps, in which a scale settles, never count."""
    parts = [recent_steps(window.ranks[number]) for number in sorted(window.ranks)]
    shares = {part.rank: _share(part) for part in parts}
    ranks = [part for part in parts if shares[part.rank] > SKIPPED_SHARE]
    if not ranks:
        return None
    rank = max(ranks, key=lambda one: shares[one.rank])
    rows = after_settling(rank, optimizer_rows(rank))
    skips = rows[np.nan_to_num(rank.column("amp_skipped")[rows]) > 0]
    steps = rank.steps["step"]
    return Finding(
        CODE, "warning", "Optimizer steps are skipped", "gradients overflow",
        {"skipped_share": round(shares[rank.rank], 3), "skipped_steps": len(skips),
         "loss_scale": median(rank.column("loss_scale")[rows])},
        "Gradients overflow float16 again and again, and each time a step's work is thrown away: clip "
        "gradients after unscale_, lower the learning rate, raise growth_interval, or use bfloat16.",
        ranks=numbers(ranks), first_step=int(steps[skips[0]]), last_step=int(steps[skips[-1]]),
        location=fact(rank, "precision").get("scaler_location"),
    )  # fmt: skip


def _share(rank: Rank) -> float:
    """Share of optimizer steps skipped since the scale settled; 0 where too few came after."""
    rows = after_settling(rank, optimizer_rows(rank))
    if len(rows) < ENOUGH:
        return 0.0
    return float(np.mean(np.nan_to_num(rank.column("amp_skipped")[rows]) > 0))
