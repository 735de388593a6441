"""The loss is not finite: everything after that step is wasted.

What: the loss is not finite. Critical; a warning when 20 finite losses in a row have followed. Up to three
    under a gradient scaler that recovers are its business.
Why it costs: nothing is learned any more.
How to see it: the first bad step and the last finite loss.
How to fix it: a lower or warmed-up learning rate, clipped gradients, the samples of that step; under
    float16 a scaler and float32 parameters, or bfloat16.
How sure we are: certain, where the loss can be read without waiting for a device.

Columns: `loss` (infinite values)
Facts: precision: `scaler`, `autocast_dtype`
Events: `nan_loss`: `step`, `location`, `module`, `value`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.window import Rank, Window

CODE = "nan_loss"
NEEDS = frozenset({"loss"})
CURVE = ("run", "run_loss")

#: So many finite losses in a row after a bad one mean that the run got over it (own).
RECOVERED_STEPS = 20

#: A loss scaler survives overflow by design: single bad losses under one are its business (own).
FEW_UNDER_SCALER = 3

TITLE = "Loss is not finite"


def detect(window: Window) -> Finding | None:
    """The first bad step of the run, over all ranks; a run that recovered is told once, as a warning."""
    bad = {
        number: first for number in sorted(window.ranks) if (first := _first(window, window.ranks[number]))
    }
    if not bad:
        return None
    number = min(bad, key=lambda rank: bad[rank]["step"])
    first, rank = bad[number], window.ranks[number]
    over = _recovered(window, rank, first)
    if over is not None and _scaler_at_work(window, rank):
        return None
    step = int(first["step"])
    evidence = {
        "first_step": step,
        "value": first.get("value", "nan"),
        "module": first.get("module"),
        "bad_steps": _count(window, rank),
        "last_finite_loss": _last_finite(rank, step),
    }
    return Finding(
        CODE, "critical" if over is None else "warning", TITLE, _cause(rank), _known(evidence), _advice(rank),
        ranks=tuple(bad), first_step=step, last_step=step if over else None,
        location=first.get("location"), over_at_s=over,
    )  # fmt: skip


def _first(window: Window, rank: Rank) -> Mapping[str, Any] | None:
    """The first non-finite loss: told by the probe, or infinite in the column (NaN there means unknown)."""
    events = window.events_of("nan_loss", rank=rank.rank)
    rows = np.flatnonzero(np.isinf(rank.column("loss")))
    seen = [{"step": int(rank.steps["step"][rows[0]]), "value": "inf"}] if len(rows) else []
    found: Sequence[Mapping[str, Any]] = [
        *(event for event in events if event.get("step") is not None),
        *seen,
    ]
    return min(found, key=lambda one: int(one["step"]), default=None)


def _recovered(window: Window, rank: Rank, first: Mapping[str, Any]) -> float | None:
    """Time at which losses had been finite long enough again, None while they are not."""
    events = window.events_of("nan_loss", rank=rank.rank)
    last = max([int(event.get("step") or 0) for event in events] + [int(first["step"])])
    rows = np.flatnonzero(np.isinf(rank.column("loss")))
    numbers = rank.steps.get("step", np.empty(0))
    if len(rows):
        last = max(last, int(numbers[rows[-1]]))
    good = np.flatnonzero(np.isfinite(rank.column("loss")) & (numbers > last))
    return float(rank.steps["t_s"][good[RECOVERED_STEPS - 1]]) if len(good) >= RECOVERED_STEPS else None


def _scaler_at_work(window: Window, rank: Rank) -> bool:
    precision = rank.facts.get("precision")
    scaled = isinstance(precision, Mapping) and bool(precision.get("scaler"))
    return scaled and _count(window, rank) <= FEW_UNDER_SCALER


def _count(window: Window, rank: Rank) -> int:
    events = window.events_of("nan_loss", rank=rank.rank)
    return max(len(events), int(np.isinf(rank.column("loss")).sum()))


def _last_finite(rank: Rank, step: int) -> float | None:
    loss, numbers = rank.column("loss"), rank.steps.get("step", np.empty(0))
    before = loss[(numbers < step) & np.isfinite(loss)]
    return round(float(before[-1]), 4) if len(before) else None


def _cause(rank: Rank) -> str:
    precision = rank.facts.get("precision")
    if (
        isinstance(precision, Mapping)
        and precision.get("autocast_dtype") == "float16"
        and precision.get("autocast")
    ):
        return "not finite under float16"
    return "not finite"


def _advice(rank: Rank) -> str:
    if "float16" in _cause(rank):
        return (
            "float16 ends at 65,504: use a GradScaler with float32 parameters, or bfloat16, and look at the "
            "scale of the inputs. Stop this run: nothing is learned any more."
        )
    return (
        "Stop this run: nothing is learned any more. Lower the learning rate or warm it up, clip gradients, "
        "and look for log(0), division by 0 and bad samples at the step named here."
    )


def _known(evidence: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in evidence.items() if value is not None}
