"""The loss scale keeps falling, or has fallen below 1: overflow that scaling cannot cure.

What: the loss scale is below 1, or has halved eight times since it had settled and is at its lowest.
Why it costs: every halving is a step that was thrown away, and below 1 scaling does harm.
How to see it: `loss_scale_first` and `loss_scale_last`; `skipped_steps`.
How to fix it: overflow that no scale cures: normalise the inputs, look for a layer that grows without
    bound, or use bfloat16.
How sure we are: certain. A scale that starts too high and settles raises nothing.

Columns: `loss_scale`, `amp_skipped`, `optimizer_steps`
Facts: precision: `scaler`, `scaler_location`
"""

from __future__ import annotations

import numpy as np

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.facts import fact, numbers
from monitor.diagnosis.signals.loss_scale import after_settling, optimizer_rows
from monitor.diagnosis.signals.robust import Values

CODE = "amp_scale_collapse"
NEEDS = frozenset({"loss_scale", "scaler"})
CURVE = ("run", "run_loss")

#: Skipped steps and a loss that is not finite are what a collapse looks like.
EXPLAINS = frozenset({"amp_skipped_steps"})

#: A loss scale below this makes gradients smaller instead of larger (measurements.md#gradient-scaling).
LOWEST = 1.0

#: Or it fell by this factor after it had settled, without recovering (own: eight halvings; a healthy
#: scale halves and doubles around one value).
FALL = 2.0**8


def detect(window: Window) -> Finding | None:
    """The rank with the lowest scale speaks; a scale that is only settling raises nothing."""
    scales = {number: _scale(window.ranks[number]) for number in sorted(window.ranks)}
    fallen = [
        window.ranks[number] for number, scale in scales.items() if _collapsed(window.ranks[number], scale)
    ]
    if not fallen:
        return None
    rank = min(fallen, key=lambda one: scales[one.rank][-1])
    scale, skipped = scales[rank.rank], rank.column("amp_skipped")
    below = np.flatnonzero(rank.column("loss_scale") < LOWEST)
    steps = rank.steps["step"]
    return Finding(
        CODE, "warning", "The loss scale collapses", "below 1" if scale[-1] < LOWEST else "keeps falling",
        {"loss_scale_first": float(scale[0]), "loss_scale_last": float(scale[-1]),
         "skipped_steps": float(np.nansum(skipped))},
        "Activations or gradients overflow float16 whatever the scale: normalise the inputs, look for a "
        "layer that grows without bound, or use bfloat16.",
        snippet="with torch.autocast(device, dtype=torch.bfloat16):",
        ranks=numbers(fallen),
        first_step=int(steps[below[0]]) if len(below) else None, last_step=int(steps[-1]),
        location=fact(rank, "precision").get("scaler_location"),
    )  # fmt: skip


def _scale(rank: Rank) -> Values:
    scale = rank.column("loss_scale")
    return scale[~np.isnan(scale)]


def _collapsed(rank: Rank, scale: Values) -> bool:
    if not len(scale):
        return False
    if scale[-1] < LOWEST:
        return True
    after = after_settling(rank, optimizer_rows(rank))
    later = rank.column("loss_scale")[after]
    later = later[~np.isnan(later)]
    return (
        len(later) > 1
        and float(later[0]) >= FALL * float(later[-1])
        and float(later[-1]) == float(later.min())
    )
