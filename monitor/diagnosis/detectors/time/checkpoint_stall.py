"""Saving takes a large share of the time.

What: saving takes 20 % of the time or more (from 10 % on it is information), over at least two whole
    periods.
Why it costs: the loop waits for every write.
How to see it: `save_ms`, `steps_per_save`, the `checkpoint` band.
How to fix it: save less often, or copy the state and write it in a thread.
How sure we are: measured.

Columns: `checkpoint_ms`
Events: `save`: `location`
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from monitor.diagnosis.core.finding import Finding, gain_from_share
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.training_steps import (
    after_warmup,
    complete_periods,
    phase_ms,
    slice_steps,
    step_ms,
    step_range,
)

CODE = "checkpoint_stall"
NEEDS = frozenset({"checkpoint", "steps"})
CURVE = ("run", "run_checkpoint_ms")

#: Share of wall time spent saving: a fault from here on (own: TraceML's 20 % for waiting) …
SHARE = 0.2

#: … and advice from here on (own: about a tenth is a usual price for being able to go on).
INFO_SHARE = 0.1

#: Saving at this share of the time hurts nobody (own).
TARGET_SHARE = 0.02


@dataclass(frozen=True)
class Saving:
    """One rank's saving over whole periods: rows, share of their time, saves, and ms of one."""

    rank: Rank
    share: float
    saves: int
    save_ms: float


def detect(window: Window) -> Finding | None:
    """Measured from one save to a later one, so that a single save at any time raises nothing."""
    found = [one for number in sorted(window.ranks) if (one := _saving(window.ranks[number]))]
    costly = [one for one in found if one.share >= INFO_SHARE]
    if not costly:
        return None
    one = max(costly, key=lambda each: each.share)
    every, location = _every(one), _location(window, one.rank)
    first, last = step_range(one.rank)
    return Finding(
        CODE, "warning" if one.share >= SHARE else "info",
        "Saving checkpoints holds up training", "saves too often",
        {
            "checkpoint_share": round(one.share, 3), "saves": one.saves, "save_ms": round(one.save_ms, 1),
            "steps_per_save": round(one.rank.count / one.saves, 1),
        },
        message(
            "Save every {every} steps, or copy the state and write it in a thread "
            "(torch.distributed.checkpoint's async_save): the loop now waits for every write.",
            every=every,
        ),
        snippet=f"if step % {every} == 0:\n    torch.save(model.state_dict(), path)",
        gain=gain_from_share(
            one.share,
            message(
                "{saves} saves of {save_ms:.0f} ms each took {share:.0%} of the time",
                saves=one.saves, save_ms=one.save_ms, share=one.share,
            ),
        ),
        ranks=tuple(each.rank.rank for each in costly), first_step=first, last_step=last, location=location,
    )  # fmt: skip


def _saving(rank: Rank) -> Saving | None:
    part = after_warmup(rank)
    rows = np.flatnonzero(phase_ms(part, "checkpoint") > 0)
    periods = complete_periods(rows)
    if periods is None:
        return None
    part = slice_steps(part, periods.start, periods.stop)
    saving = phase_ms(part, "checkpoint")
    saves = int((saving > 0).sum())
    share = float(saving.sum() / np.nansum(step_ms(part)))
    return Saving(part, share, saves, float(saving.sum()) / saves)


def _every(one: Saving) -> int:
    """Steps between two saves at which saving takes `TARGET_SHARE`, rounded up to tens."""
    other_ms = float(np.nansum(step_ms(one.rank)) - phase_ms(one.rank, "checkpoint").sum()) / one.rank.count
    return max(10, -(-int(one.save_ms / (TARGET_SHARE * max(other_ms, 1e-6))) // 10) * 10)


def _location(window: Window, rank: Rank) -> str | None:
    locations = Counter(event.get("location") for event in window.events_of("save", rank=rank.rank))
    return locations.most_common(1)[0][0] if locations else None
