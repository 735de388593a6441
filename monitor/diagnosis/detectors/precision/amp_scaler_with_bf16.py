"""A gradient scaler under bfloat16, which has float32's range: a pass over all gradients for nothing.

What: a gradient scaler together with bfloat16 autocast.
Why it costs: bfloat16 has the range of float32, so the scaler only checks every gradient for infinity.
How to see it: the line of the scaler.
How to fix it: drop the scaler.
How sure we are: certain; the time it costs is not measured, so nothing is promised.

Facts: precision: `autocast_dtype`, `scaler`, `scale_init`, `scaler_location`
"""

from __future__ import annotations

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.facts import fact, half_autocast, numbers, ranks_where

CODE = "amp_scaler_with_bf16"
NEEDS = frozenset({"autocast", "scaler"})


def detect(window: Window) -> Finding | None:
    """Certain as soon as both were seen in one rank."""
    ranks = ranks_where(window, _needless)
    if not ranks:
        return None
    precision = fact(ranks[0], "precision")
    return Finding(
        CODE, "warning", "Gradient scaling under bfloat16", "GradScaler with bfloat16",
        {"autocast_dtype": "bfloat16", "scale_init": precision.get("scale_init")},
        "Drop the scaler: bfloat16 has the range of float32, so nothing underflows. It only checks every "
        "gradient for infinity.",
        snippet="loss.backward()\noptimizer.step()",
        ranks=numbers(ranks), location=precision.get("scaler_location"),
    )  # fmt: skip


def _needless(rank: Rank) -> bool:
    return half_autocast(rank) == "bfloat16" and bool(fact(rank, "precision").get("scaler"))
