"""Waiting for data grows: over the run, or anew within each epoch.

What: the wait grows from each quarter of the run to the next, or of each epoch, to twice its size and by 5
    ms at least, and costs 15 % of the last quarter.
Why it costs: it gets worse the longer the run lasts.
How to see it: `wait_ms_first_quarter` against `wait_ms_last_quarter`; a `data` band that widens.
How to fix it: look in the dataset for lists that are searched, files read from their beginning, caches that
    grow. Use a set, an index, an offset.
How sure we are: growth is measured, and batches that grow themselves are left out where their size is
    known.

Columns: `data_ms`, `epoch`, `batch_elements`, `tokens`, `samples`; on a GPU `gpu_idle_ms`, `gpu_timed`
Facts: loader
Events: `epoch`, `stall`
"""

from __future__ import annotations

import numpy as np

from monitor.diagnosis.core.finding import Finding, gain_from_share
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Window
from monitor.diagnosis.signals.loader_waits import HANDOVER_MS, Waits, keeps_growing, waits
from monitor.diagnosis.signals.robust import quantile, quarters
from monitor.diagnosis.signals.training_steps import step_range

CODE = "data_degrading"
NEEDS = frozenset({"steps", "loader"})
CURVE = ("run", "run_data_ms")

#: Share of wall time that the last quarter of the steps loses to waiting (gpuprof warns at 15 %).
LOST_SHARE = 0.15


def detect(window: Window) -> Finding | None:
    """The rank whose waiting costs most speaks for all in which it grows."""
    judged = {number: waits(window, window.ranks[number]) for number in sorted(window.ranks)}
    growing = {number: one for number, one in judged.items() if one is not None and _degrades(one)}
    if not growing:
        return None
    one = max(growing.values(), key=lambda each: each.lost_share)
    levels = quarters(one.wait_ms)
    over_run = keeps_growing(levels)
    first, last = step_range(one.rank)
    evidence = {
        "wait_ms_first_quarter": round(levels[0], 2),
        "wait_ms_last_quarter": round(levels[3], 2),
        "wait_ms_max": round(float(np.max(one.wait_ms)), 2),
        "data_share": round(one.data_share, 3),
        "last_quarter_lost_share": round(_late_share(one), 3),
        "num_workers": one.workers,
    }
    return Finding(
        CODE, "warning", "Waiting for data grows", "over the run" if over_run else "within each epoch",
        evidence, _advice(over_run), gain=gain_from_share(one.saved_share(_base_ms(one)), _basis(one)),
        ranks=tuple(growing), first_step=first, last_step=last, location=one.loader.get("location"),
    )  # fmt: skip


def _degrades(one: Waits) -> bool:
    return one.pattern == "growing" and _late_share(one) >= LOST_SHARE


def _late_share(one: Waits) -> float:
    late = np.array_split(np.arange(len(one.wait_ms)), 4)[3]
    return float(one.excess_ms[late].sum() / (one.wait_ms + one.other_ms)[late].sum())


def _base_ms(one: Waits) -> float | None:
    """Waiting at the beginning, where it was more than a hand-over even then."""
    base = quantile(one.wait_ms[: max(len(one.wait_ms) // 8, 1)], 0.1)
    return base if base > HANDOVER_MS * one.batches else None


def _basis(one: Waits) -> str:
    total_ms, waited = float(np.mean(one.wait_ms + one.other_ms)), float(np.mean(one.wait_ms))
    base = _base_ms(one) or 0.0
    return message(
        "of {whole:.1f} ms a step, {waited:.1f} ms are waiting; at first it was {base:.1f} ms",
        whole=total_ms, waited=waited, base=base,
    )  # fmt: skip


def _advice(over_run: bool) -> str:
    if over_run:
        return (
            "Something in the dataset costs more with every sample served: look for lists that are searched, "
            "files that are read from their beginning, caches that grow. Use a set, an index or an offset."
        )
    return (
        "Later samples of an epoch cost more than early ones: look for files that are read from their "
        "beginning to reach a sample. Use an index or an offset, or split them."
    )
