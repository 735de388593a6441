"""float16 autocast without gradient scaling: small gradients become zero.

What: float16 autocast, and the optimizer has stepped five times without a gradient scaler.
Why it costs: gradients below 6e-8 become zero: parts of the model stop learning.
How to see it: `autocast_dtype` and the line of the autocast block.
How to fix it: `torch.amp.GradScaler`, or bfloat16, which needs none.
How sure we are: certain, unless the loss is scaled by hand, which we cannot see.

Columns: `optimizer_steps`
Facts: precision: `autocast`, `autocast_dtype`, `autocast_location`, `scaler`
"""

from __future__ import annotations

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.facts import fact, half_autocast, numbers, ranks_where
from monitor.diagnosis.signals.robust import total

CODE = "amp_no_scaler"
NEEDS = frozenset({"autocast"})

#: Optimizer steps that must have gone by without a scaler: it may be made after the first forward (own).
SURE_STEPS = 5


def detect(window: Window) -> Finding | None:
    """Certain once the optimizer has stepped a few times; bfloat16 needs no scaler."""
    ranks = ranks_where(window, _unscaled)
    if not ranks:
        return None
    return Finding(
        CODE, "warning", "float16 without gradient scaling", "no GradScaler",
        {"autocast_dtype": "float16", "optimizer_steps": int(_optimizer_steps(ranks[0]))},
        "Gradients below 6e-8 become zero in float16. Scale the loss with a GradScaler, or use bfloat16, "
        "which needs none.",
        snippet="scaler = torch.amp.GradScaler(device)\nscaler.scale(loss).backward()\n"
        "scaler.step(optimizer)\nscaler.update()",
        ranks=numbers(ranks), location=fact(ranks[0], "precision").get("autocast_location"),
    )  # fmt: skip


def _unscaled(rank: Rank) -> bool:
    scaler = fact(rank, "precision").get("scaler")
    return half_autocast(rank) == "float16" and not scaler and _optimizer_steps(rank) >= SURE_STEPS


def _optimizer_steps(rank: Rank) -> float:
    return total(rank.column("optimizer_steps"))
