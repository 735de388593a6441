"""Gradients are clipped while they are still multiplied by the loss scale.

What: gradients are clipped while they are still multiplied by the loss scale.
Why it costs: the threshold then means 1/65,536 of what was written: nearly everything is clipped away and
    the model hardly moves.
How to see it: the line of the clip, and `loss_scale`.
How to fix it: `scaler.unscale_(optimizer)` before clipping.
How sure we are: certain.

Columns: `loss_scale`
Facts: precision: `scaler`
Events: `clip`: `scaled`, `location`, `step`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.window import Window
from monitor.diagnosis.signals.robust import median

CODE = "amp_clip_before_unscale"
NEEDS = frozenset({"scaler"})


def detect(window: Window) -> Finding | None:
    """Certain at the first such clip (measurements.md#gradient-scaling: a norm of 17,051, not 16.65)."""
    clips = [event for event in window.events_of("clip") if event.get("scaled")]
    if not clips:
        return None
    first = clips[0]
    return Finding(
        CODE, "warning", "Gradients clipped while scaled", "clip before unscale_", _evidence(window, first),
        "Call scaler.unscale_(optimizer) before clipping: now the threshold applies to gradients that are "
        "multiplied by the loss scale, so nearly everything is clipped away.",
        snippet="scaler.unscale_(optimizer)\ntorch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)",
        ranks=tuple(sorted({int(event.get("rank", 0)) for event in clips})),
        first_step=first.get("step"), location=first.get("location"),
    )  # fmt: skip


def _evidence(window: Window, clip: Mapping[str, Any]) -> dict[str, Any]:
    rank = window.ranks.get(int(clip.get("rank", 0)))
    scale = median(rank.column("loss_scale")) if rank else float("nan")
    return {"loss_scale": scale} if scale == scale else {}
