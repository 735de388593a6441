"""Evaluation takes the larger part of the time that training should have.

What: evaluation takes 30 % of the time or more, over at least two whole periods.
Why it costs: that time does not train.
How to see it: `eval_ms`, `steps_per_evaluation`, the `eval` band.
How to fix it: evaluate less often, or on a fixed part of the validation set in between.
How sure we are: measured. Whether it is worth it only you know. The gain counts training steps per second
    of wall time.

Columns: `eval_ms`
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from monitor.diagnosis.core.finding import Finding, gain_from_share
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.robust import runs
from monitor.diagnosis.signals.training_steps import (
    after_warmup,
    complete_periods,
    phase_ms,
    slice_steps,
    step_ms,
    step_range,
)

CODE = "eval_share"
NEEDS = frozenset({"steps"})
CURVE = ("run", "run_eval_ms")

#: Share of wall time spent evaluating (own: a pass over a validation set a fifth as large, forward only,
#: after every epoch takes some 7 %; measurements.md#evaluation-and-logging).
SHARE = 0.3

#: What evaluation may take (own: "about a tenth").
TARGET_SHARE = 0.1


@dataclass(frozen=True)
class Evaluating:
    """One rank's evaluation over whole periods: rows, share of their time, times, and ms of one."""

    rank: Rank
    share: float
    times: int
    eval_ms: float


def detect(window: Window) -> Finding | None:
    """Measured from the end of one evaluation to that of a later one: a single long one raises nothing."""
    found = [one for number in sorted(window.ranks) if (one := _evaluating(window.ranks[number]))]
    costly = [one for one in found if one.share >= SHARE]
    if not costly:
        return None
    one = max(costly, key=lambda each: each.share)
    first, last = step_range(one.rank)
    every = one.rank.count / one.times
    wanted = math.ceil(every * one.share * (1 - TARGET_SHARE) / (TARGET_SHARE * max(1 - one.share, 0.01)))
    basis = message(
        "{times} evaluations of {eval_ms:.0f} ms each took {share:.0%} of the time",
        times=one.times, eval_ms=one.eval_ms, share=one.share,
    )  # fmt: skip
    return Finding(
        CODE, "warning", "Evaluation takes much of the time", "evaluates too often or too much",
        {
            "eval_share": round(one.share, 3), "evaluations": one.times, "eval_ms": round(one.eval_ms, 1),
            "steps_per_evaluation": round(every, 1),
        },
        message(
            "Evaluate every {wanted} steps instead of every {every:.0f}, or on a fixed part of the "
            "validation set in between.",
            wanted=wanted, every=every,
        ),
        snippet=f"if step % {wanted} == 0:\n    evaluate()",
        gain=gain_from_share(one.share, basis),
        ranks=tuple(each.rank.rank for each in costly), first_step=first, last_step=last,
    )  # fmt: skip


def _evaluating(rank: Rank) -> Evaluating | None:
    part = after_warmup(rank)
    stretches = runs(phase_ms(part, "eval") > 0)
    # An evaluation may reach into the row after it, hence stretches; one in every step is one long stretch.
    ends = np.array([after - 1 for _, after in stretches], dtype=np.int64)
    rows = ends if len(ends) >= 3 else np.flatnonzero(phase_ms(part, "eval") > 0)
    periods = complete_periods(rows)
    if periods is None:
        return None
    part = slice_steps(part, periods.start, periods.stop)
    evaluating, times = phase_ms(part, "eval"), len(rows) - 1
    return Evaluating(
        part, float(evaluating.sum() / np.nansum(step_ms(part))), times, float(evaluating.sum()) / times
    )
