"""backward() is called while autocast is still on.

What: `backward()` is called inside the autocast block.
Why it costs: torch advises against it: backward takes its types from the forward pass, but your own
    gradient functions and hooks then run under autocast as well.
How to see it: the line of the call.
How to fix it: leave the block before `backward()`.
How sure we are: seen, in at least two of the backward passes that were looked at.

Facts: precision: `backward_in_autocast`, `backward_location`
"""

from __future__ import annotations

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.facts import fact, numbers, ranks_where

CODE = "amp_backward_in_autocast"
NEEDS = frozenset({"autocast"})

#: The probe looks at a sample of all backward passes: so many must have been inside (own; one may be a
#: sanity check before training).
SEEN = 2


def detect(window: Window) -> Finding | None:
    """Where it was seen, and how often."""
    ranks = ranks_where(window, lambda rank: _inside(rank) >= SEEN)
    if not ranks:
        return None
    return Finding(
        CODE, "warning", "Backward inside autocast", "backward inside autocast",
        {"seen_times": _inside(ranks[0])},
        "Leave the autocast block before backward: its operations choose their types from the forward "
        "pass, and torch advises against it (gradient functions and hooks then run under autocast too).",
        snippet="with torch.autocast(device):\n    loss = loss_fn(model(x), y)\nloss.backward()",
        ranks=numbers(ranks), location=fact(ranks[0], "precision").get("backward_location"),
    )  # fmt: skip


def _inside(rank: Rank) -> int:
    return int(fact(rank, "precision").get("backward_in_autocast") or 0)
