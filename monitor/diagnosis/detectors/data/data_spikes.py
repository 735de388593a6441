"""Single batches far slower than the rest: the median wait is fine, the tail is not.

What: at most a fifth of the batches come at least 30 ms and five times the usual wait late, three or more
    of them, and that costs 15 % of the time.
Why it costs: the median wait looks fine, the sum of the rare ones does not.
How to see it: `wait_ms_p50` against `spike_ms_p50`; `period_batches` when they come at equal distance; the
    peaks in the `data` band.
How to fix it: find the slow samples (huge files, retries, archives that are opened again) and fix or skip
    them. A larger `prefetch_factor` helps when the queue then lasts longer than a spike.
How sure we are: the waits are measured. Which sample it was is not.

Columns: `data_ms`, `epoch`; `runq_share`; on a GPU `gpu_idle_ms`, `gpu_timed`
Facts: as `data_starvation`, and loader: `prefetch_factor`
Events: `epoch`, `stall`
"""

from __future__ import annotations

import numpy as np

from monitor.diagnosis.core.finding import Finding, gain_from_share
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Window
from monitor.diagnosis.signals.loader_waits import Waits, waits
from monitor.diagnosis.signals.robust import median, quantile
from monitor.diagnosis.signals.snippet import loader_call
from monitor.diagnosis.signals.training_steps import step_range

CODE = "data_spikes"
NEEDS = frozenset({"steps", "loader"})
CURVE = ("run", "step_p99_ms")

#: Share of wall time lost to the spikes (gpuprof warns of waiting at 15 %; waits are judged by their tail,
#: measurements.md#tails-of-waits).
LOST_SHARE = 0.15

#: So many gaps must be alike to call it a period (own).
PERIODIC = 0.6

#: A deeper queue hides a spike only if it lasts that long; deeper than this is not advised (own).
DEEPEST_PREFETCH = 16


def detect(window: Window) -> Finding | None:
    """The rank that loses most to spikes speaks for all that have them."""
    judged = {number: waits(window, window.ranks[number]) for number in sorted(window.ranks)}
    spiky = {number: one for number, one in judged.items() if one is not None and _spiky(one)}
    if not spiky:
        return None
    one = max(spiky.values(), key=lambda each: each.lost_share)
    first, last = step_range(one.rank)
    basis = message(
        "{late} of {batches} batches took {share:.0%} of the time",
        late=int(one.spikes.sum()), batches=len(one.wait_ms), share=one.data_share,
    )  # fmt: skip
    return Finding(
        CODE, "warning", "Single batches come very late", "slow samples", _evidence(one), _advice(one),
        snippet=loader_call(one.loader, prefetch_factor=_deeper(one)) if _hidden_by_depth(one) else "",
        gain=gain_from_share(one.saved_share(), basis),
        ranks=tuple(spiky), first_step=first, last_step=last, location=one.loader.get("location"),
    )  # fmt: skip


def _spiky(one: Waits) -> bool:
    return one.pattern == "spikes" and one.lost_at_least(LOST_SHARE)


def _evidence(one: Waits) -> dict[str, float | int]:
    spikes = one.wait_ms[one.spikes]
    evidence: dict[str, float | int] = {
        "spikes": int(one.spikes.sum()),
        "spike_ms_p50": round(median(spikes), 1),
        "spike_ms_max": round(float(spikes.max()), 1),
        "wait_ms_p50": round(median(one.wait_ms), 2),
        "wait_ms_p95": round(quantile(one.wait_ms, 0.95), 2),
        "lost_share": round(one.lost_share, 3),
        "num_workers": one.workers,
    }
    gaps = np.diff(np.flatnonzero(one.spikes))
    usual = int(np.median(gaps))
    if np.mean(gaps == usual) >= PERIODIC:
        evidence["period_batches"] = usual
    return evidence


def _deeper(one: Waits) -> int:
    """Batches a worker must have ready so that the queue outlasts a spike."""
    outlast = float(np.max(one.wait_ms)) / max(float(np.median(one.other_ms)), 1e-9) / max(one.workers, 1)
    return int(one.loader.get("prefetch_factor") or 2) + int(np.ceil(outlast))


def _hidden_by_depth(one: Waits) -> bool:
    return one.workers > 0 and _deeper(one) <= DEEPEST_PREFETCH


def _advice(one: Waits) -> str:
    if one.workers == 0:
        return (
            "Find the slow samples (huge files, retries, re-opened archives) and fix or skip them; workers "
            "with a queue would hide some of it."
        )
    if _hidden_by_depth(one):
        return message(
            "Find the slow samples (huge files, retries, re-opened archives) and fix or skip them; a queue "
            "of prefetch_factor={depth} would outlast them.",
            depth=_deeper(one),
        )
    return (
        "Find the slow samples (huge files, retries, re-opened archives) and fix or skip them; a longer "
        "queue cannot hide waits this long."
    )
