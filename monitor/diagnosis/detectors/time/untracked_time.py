"""Much of the time is spent outside every phase that is known.

What: a tenth of the time or more, and a second at least, is in no known phase, and is neither logging nor
    values read one by one. Information.
Why it costs: nobody has said what it is spent on; it may be needed.
How to see it: the line, the function and the number of stacks, where any were taken.
How to fix it: look at the line; name the part with `session.phase("...")`, so that it is told apart.
How sure we are: the share is measured. The line is where most of the sampled stacks were.

Columns: `other_ms`, `gc_ms`
Events: `other_stack`
"""

from __future__ import annotations

from typing import Any

import numpy as np

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.stack_attribution import lost, untracked_ms
from monitor.diagnosis.signals.training_steps import recent_steps, step_ms, step_range

CODE = "untracked_time"
NEEDS = frozenset({"steps"})
CURVE = ("run", "run_other_ms")

#: Share of wall time, and seconds, that must not go without a word (the contract: a verdict says "nothing
#: slowed it down" below a tenth only; own: what takes less than a second is nobody's trouble).
SHARE = 0.10
SECONDS = 1.0


def detect(window: Window) -> Finding | None:
    """The rank with most of it speaks."""
    shares = {number: _share(window, rank) for number, rank in window.ranks.items()}
    found = {number: share for number, share in shares.items() if share >= SHARE}
    if not found:
        return None
    number = max(found, key=lambda each: found[each])
    part, seen = recent_steps(window.ranks[number]), lost(window, window.ranks[number], "unknown")
    first, last = step_range(part)
    evidence: dict[str, Any] = {
        "untracked_share": round(found[number], 3),
        "untracked_s": round(float(untracked_ms(part).sum()) / 1e3, 2),
    }
    if seen is not None:
        evidence |= {"line": seen.source[:120], "function": seen.function, "stacks": seen.samples}
    location = seen.location if seen is not None and seen.location else None
    return Finding(
        CODE, "info", "Time outside every known phase",
        message("mostly at {place}", place=location) if location else "no line is known",
        evidence,
        "Look at what the loop does there. A part that belongs to the training can be named with "
        "session.phase(), and is then told apart.",
        ranks=tuple(sorted(found)), first_step=first, last_step=last, location=location,
    )  # fmt: skip


def _share(window: Window, rank: Rank) -> float:
    """What neither a phase nor another finding accounts for, of the steps' time; 0 below a second."""
    part = recent_steps(rank)
    untracked = float(untracked_ms(part).sum())
    total_ms = float(np.nansum(step_ms(part)))
    if untracked < SECONDS * 1e3 or total_ms <= 0:
        return 0.0
    known = [one.share for kind in ("logging", "sync") if (one := lost(window, rank, kind)) is not None]
    return untracked / total_ms - sum(known)
