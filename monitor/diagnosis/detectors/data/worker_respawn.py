"""Workers are started anew for every epoch, and each epoch begins with waiting for them.

What: `persistent_workers=False`, and starting the workers anew takes 20 % of whole epochs or more (from 10
    % on it is information).
Why it costs: each epoch waits for processes to start (0.05 to 2 s) and for what they open.
How to see it: `first_wait_ms_p50` against `wait_ms_p50`; peaks at the start of every epoch.
How to fix it: `persistent_workers=True`.
How sure we are: measured, less the time that living workers would need for a first batch too.

Columns: `data_ms`, `epoch`
Facts: loader: `persistent_workers`, `num_workers`, `call`
Events: `epoch`: `workers_started_ms`
"""

from __future__ import annotations

import numpy as np

from monitor.diagnosis.core.finding import Finding, Severity, gain_from_share
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.robust import median
from monitor.diagnosis.signals.snippet import loader_call
from monitor.diagnosis.signals.training_steps import (
    complete_periods,
    epoch_starts,
    phase_ms,
    recent_steps,
    step_ms,
    step_range,
    train_loader,
)

CODE = "worker_respawn"
NEEDS = frozenset({"steps", "workers", "epochs"})
CURVE = ("run", "run_data_ms")

#: Share of wall time that goes into starting workers: a fault from here on (TraceML takes waiting of 20 %
#: for serious; short epochs with workers started anew are common and mostly harmless) …
LOST_SHARE = 0.2

#: … and advice from here on (TraceML: 10 %).
INFO_SHARE = 0.1


def detect(window: Window) -> Finding | None:
    """Judged over whole epochs, the first one aside: somebody has to start the workers once."""
    lost = {number: _lost(window, window.ranks[number]) for number in sorted(window.ranks)}
    costly = {number: share for number, share in lost.items() if share >= INFO_SHARE}
    if not costly:
        return None
    number = max(costly, key=lambda each: costly[each])
    rank, part = window.ranks[number], recent_steps(window.ranks[number])
    starts = epoch_starts(window, part)
    loader = train_loader(rank)
    assert loader is not None
    waits = phase_ms(part, "data")[starts]
    start_ms = [event.get("workers_started_ms") for event in window.events_of("epoch", rank=number)]
    started = [ms for ms in start_ms if ms is not None]
    evidence = {
        "epochs": len(starts) + 1,
        "first_wait_ms_p50": round(median(waits), 1),
        "wait_ms_p50": round(median(phase_ms(part, "data")), 2),
        "lost_share": round(costly[number], 3),
        "num_workers": loader[1]["num_workers"],
    }
    if started:
        evidence["workers_started_ms"] = round(float(np.median(started)), 1)
    first, last = step_range(part)
    severity: Severity = "warning" if costly[number] >= LOST_SHARE else "info"
    return Finding(
        CODE, severity, "Loader workers are started anew each epoch", "persistent_workers=False", evidence,
        "Keep the workers between epochs: what they open when they start (worker_init_fn, the dataset's "
        "files) stays open then.",
        snippet=loader_call(loader[1], persistent_workers=True),
        gain=gain_from_share(
            _lost(window, rank, kept_up=True),
            message("each epoch begins with {wait:.0f} ms of waiting for new workers", wait=median(waits)),
        ),
        ranks=tuple(costly), first_step=first, last_step=last, location=loader[1].get("location"),
    )  # fmt: skip


def _lost(window: Window, rank: Rank, kept_up: bool = False) -> float:
    """Share of whole epochs lost to starting workers; 0 with too few epochs.

    Workers that live on still have to make an epoch's first batch, all of them at once, one each. As long
    as they keep up, that takes at most as many steps as there are workers; `kept_up` takes it for one.
    """
    loader, part = train_loader(rank), recent_steps(rank)
    if loader is None or not loader[1].get("num_workers") or loader[1].get("persistent_workers"):
        return 0.0
    starts = epoch_starts(window, part)
    periods = complete_periods(starts)
    if periods is None:
        return 0.0
    times = step_ms(part)
    ordinary = np.ones(part.count, dtype=bool)
    ordinary[starts] = False
    one_batch = float(np.nanmean(times[ordinary])) * (1 if kept_up else int(loader[1]["num_workers"]))
    cost = np.maximum(phase_ms(part, "data")[starts[1:]] - one_batch, 0.0)
    return float(cost.sum() / np.nansum(times[periods]))
