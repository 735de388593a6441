"""Single steps far slower than the rest, for a reason that is not data, saving or evaluation.

What: at least three steps, at most a fifth, that take three times what their neighbours take and cost 20 %
    of the time and half a second; or garbage collection that takes 15 % and half a second without its
    longest.
Why it costs: their time.
How to see it: `usual_ms` against `slow_ms_p50`; the phase in the cause.
How to fix it: garbage collection: `gc.freeze()` before the loop, collect at a time of your choosing.
    Otherwise look at what only those steps do.
How sure we are: measured. Larger batches, and steps of more backward passes, are compared with their like;
    what comes in a steady rhythm (the rollout before each round of updates) is done on purpose.

Columns: all phases, `gc_ms`, `backward_calls`, `batch_elements`, `tokens`, `samples`; `runq_share`,
    `cpu_used`
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.diagnosis.core.finding import Finding, gain_from_share
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.cpu_contention import cpus_contended
from monitor.diagnosis.signals.model_work import WORKING, batch_sizes, work_ms
from monitor.diagnosis.signals.robust import Mask, Values, local_median, median, runs
from monitor.diagnosis.signals.training_steps import phase_ms, recent_steps, share, step_range

CODE = "step_outliers"
NEEDS = frozenset({"steps"})
CURVE = ("run", "step_p99_ms")

#: An outlier takes this many times what its neighbours take (gpuprof: p99 ÷ p50 of 2; SageMaker: 3 standard
#: deviations; a loaded machine makes 2 common).
TIMES = 3.0

#: Outliers are several, rare, and do not come in one stretch (own: a stretch is a regression).
SEVERAL = 3
RARE = 0.2
STRETCH = 3

#: Share of wall time they cost (own: something done on purpose every 50 steps, such as drawing images,
#: may take a tenth), or that garbage collection takes, which nobody does on purpose.
LOST_SHARE = 0.2
GC_SHARE = 0.15

#: Nor is it anybody's trouble below so many seconds (own: runs of a tenth of a second had "1.5 times as fast"
#: of one pause of the machine's, and no sample yet of who else computes).
SECONDS = 0.5

#: Distances between outliers that differ by less than this, in steps, are a rhythm (own: a rollout every 16
#: updates, a drawing every 50; what strikes by chance keeps no time).
RHYTHM_SPREAD = 0.1

#: Steps that are compared with one another (own).
NEIGHBOURS = 31


_COLLECT = "gc.collect(); gc.freeze(); gc.disable()\nif step % 500 == 0:\n    gc.collect()"


@dataclass(frozen=True)
class Outliers:
    """One rank's outliers: which rows, what they took above their neighbours, what that costs, and why."""

    rank: Rank
    rows: Mask
    excess_ms: Values
    share: float
    cause: str


def detect(window: Window) -> Finding | None:
    """The rank that loses most speaks. Garbage collection is measured, so it is named by itself."""
    found = [one for number in sorted(window.ranks) if (one := _judge(window, window.ranks[number]))]
    if not found:
        return None
    one = max(found, key=lambda each: each.share)
    usual, first_last = median(work_ms(one.rank)[~one.rows]), step_range(one.rank)
    slow = work_ms(one.rank)[one.rows]
    collected = one.cause == "garbage collection"
    what = "collecting garbage" if collected else "steps far slower than their neighbours"
    return Finding(
        CODE, "warning", "Single steps are far slower than the rest", one.cause,
        {
            "outliers": int(one.rows.sum()), "usual_ms": round(usual, 2),
            "slow_ms_p50": round(median(slow), 1), "slow_ms_max": round(float(slow.max(initial=0.0)), 1),
            "lost_share": round(one.share, 3), "gc_share": round(_gc_share(one.rank), 3),
        },
        _advice(one.cause),
        snippet=_COLLECT if collected else "",
        gain=gain_from_share(
            one.share, message("{share:.0%} of the time went into {what}", share=one.share, what=what)
        ),
        ranks=tuple(each.rank.rank for each in found), first_step=first_last[0], last_step=first_last[1],
    )  # fmt: skip


def _judge(window: Window, rank: Rank) -> Outliers | None:
    part = recent_steps(rank)
    if not part.count:
        return None
    rows, excess = _outliers(part)
    collecting, collecting_s = _gc_share(part), _collecting_ms(part).sum() / 1e3
    if collecting >= GC_SHARE and collecting_s >= SECONDS:
        slow = rows | (np.nan_to_num(part.column("gc_ms")) > median(work_ms(part)))
        return Outliers(part, slow, excess, collecting, "garbage collection")
    lost, lost_s = share(excess, part), float(np.nansum(excess)) / 1e3
    scattered = max((after - first for first, after in runs(rows)), default=0) <= STRETCH
    several = SEVERAL <= rows.sum() <= RARE * part.count
    costly = lost >= LOST_SHARE and lost_s >= SECONDS
    if not (several and scattered and costly) or _rhythmic(rows) or cpus_contended(window, rank):
        return None
    return Outliers(part, rows, excess, lost, message("slow {phase}", phase=_phase(part, rows)))


def _rhythmic(rows: Mask) -> bool:
    """Whether outliers come every so many steps: then they are a part of the loop."""
    distances = np.diff(np.flatnonzero(rows))
    return len(distances) >= SEVERAL and float(distances.std()) <= RHYTHM_SPREAD * float(distances.mean())


def _outliers(part: Rank) -> tuple[Mask, Values]:
    """Rows that are outliers, and each one's time above its neighbours', shape [count].

    A step whose batch is larger, or that runs more backward passes (LBFGS, uneven accumulation), may take
    longer in proportion.
    """
    work = work_ms(part)
    base = local_median(work, NEIGHBOURS)
    for size in (batch_sizes(part), part.column("backward_calls")):
        if size is not None and median(size) > 0:
            base = base * np.maximum(np.nan_to_num(size / median(size), nan=1.0), 1.0)
    rows = np.asarray((work > TIMES * base) & (base > 0))
    return rows, np.where(rows, work - base, 0.0)


def _gc_share(part: Rank) -> float:
    return share(_collecting_ms(part), part)


def _collecting_ms(part: Rank) -> Values:
    """Garbage collection in each step, but for the longest: one is no habit. Shape [count]."""
    took = np.nan_to_num(part.column("gc_ms"))
    took[np.argmax(took)] = 0.0
    return took


def _phase(part: Rank, rows: Mask) -> str:
    """The phase in which the outliers lose most."""

    def more(phase: str) -> float:
        times = phase_ms(part, phase)
        return float(times[rows].mean()) - median(times[~rows])

    return max(WORKING, key=more)


def _advice(cause: str) -> str:
    if cause == "garbage collection":
        return (
            "Python's collector walks every object the run keeps, again and again. Freeze what exists "
            "before the loop, collect at a time of your choosing, and keep large histories in arrays "
            "instead of objects."
        )
    return message(
        "Look at what happens only in these steps ({phase}): a rare branch, a lazy initialisation, an "
        "allocation, a write that blocks.",
        phase=cause.removeprefix("slow "),
    )
