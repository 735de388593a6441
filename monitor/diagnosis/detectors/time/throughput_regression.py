"""From some step on every step takes lastingly longer.

What: from some step on, steps take 1.5 times as long or more, and still do.
Why it costs: every later step.
How to see it: `began_at_step`, `before_ms`, `after_ms`, the phase in the cause.
How to fix it: by cause: anomaly detection left on; a phase that became slower (a structure that grows, a
    clock that was lowered). Larger batches, more passes and neighbours are information.
How sure we are: the change is measured and dated; the cause is the phase that grew.

Columns: all phases, `batch_elements`, `tokens`, `samples`, `backward_calls`, `optimizer_steps`;
    `runq_share`
Facts: anomaly_mode: `on`
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from monitor.diagnosis.core.finding import Finding, Severity, gain_from_share
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Rank, Table, Window
from monitor.diagnosis.signals.cpu_contention import BUSY_RUNQ, OTHERS_CPU, others_cpu, sample_values
from monitor.diagnosis.signals.facts import fact
from monitor.diagnosis.signals.model_work import slowest_phase, work_ms
from monitor.diagnosis.signals.robust import Values, change_point, mean, median
from monitor.diagnosis.signals.training_steps import after_warmup, share, slice_steps

CODE = "throughput_regression"
NEEDS = frozenset({"steps"})
CURVE = ("run", "steps_per_s")

#: After ÷ before (measurements.md#repeated-runs: clock and caches alone make up to 1.5).
TIMES = 1.5

#: So many steps on either side, and so many seconds after: what lasts (own).
STEPS = 50
SECONDS = 1.0

#: At the end it must still be that much of the difference (own).
STILL = 0.7

#: Batches or passes this much larger explain it (own).
LARGER = 1.2

_LARGER = (
    ("batch_elements", "batches"),
    ("tokens", "batches"),
    ("samples", "batches"),
    ("backward_calls", "passes per step"),
    ("optimizer_steps", "passes per step"),
)

#: More steps than this are judged in blocks, which costs the place of the change a few steps (own).
BLOCKS = 4_000


@dataclass(frozen=True)
class Change:
    """One rank's change: its steps, the row it began at, working ms a step before and after."""

    rank: Rank
    row: int
    before_ms: float
    after_ms: float


def detect(window: Window) -> Finding | None:
    """The rank that slowed down most speaks; its cause decides whether it is a fault."""
    found = [one for number in sorted(window.ranks) if (one := _change(window.ranks[number]))]
    if not found:
        return None
    one = max(found, key=lambda each: each.after_ms / each.before_ms)
    cause, severity, advice = _why(window, one)
    steps = one.rank.steps["step"]
    began = int(steps[one.row])
    late = np.where(np.arange(one.rank.count) >= one.row, work_ms(one.rank) - one.before_ms, 0.0)
    slowed = share(np.maximum(late, 0.0), one.rank)
    basis = message(
        "{after:.1f} ms a step since step {began}, {before:.1f} ms before",
        after=one.after_ms, began=began, before=one.before_ms,
    )  # fmt: skip
    return Finding(
        CODE, severity, "Steps take longer than before", cause,
        {
            "began_at_step": began, "began_at_s": round(float(one.rank.steps["t_s"][one.row]), 1),
            "before_ms": round(one.before_ms, 2), "after_ms": round(one.after_ms, 2),
            "times": round(one.after_ms / one.before_ms, 2),
        },
        advice,
        gain=gain_from_share(slowed, basis) if severity == "warning" else None,
        ranks=tuple(each.rank.rank for each in found), first_step=began, last_step=int(steps[-1]),
    )  # fmt: skip


def _change(rank: Rank) -> Change | None:
    part = after_warmup(rank)
    if part.count < 2 * STEPS:
        return None
    size = -(-part.count // BLOCKS)
    work = _blocks(work_ms(part), size)
    block = change_point(work)
    if block is None or block * size < STEPS or part.count - block * size < STEPS:
        return None
    before, after = median(work[:block]), median(work[block:])
    end = median(work[-(len(work) - block) // 4 :])
    lasted = float(part.steps["t_s"][-1] - part.steps["t_s"][block * size])
    if not before > 0 or after < TIMES * before or lasted < SECONDS:
        return None
    return Change(part, block * size, before, after) if end - before >= STILL * (after - before) else None


def _blocks(work: Values, size: int) -> Values:
    """Medians of blocks of `size` steps; the steps themselves for 1. Steps left over are left out."""
    if size == 1:
        return work
    used = len(work) // size * size
    return np.asarray(np.median(work[:used].reshape(-1, size), axis=1))


def _why(window: Window, one: Change) -> tuple[str, Severity, str]:
    before, after = slice_steps(one.rank, 0, one.row), slice_steps(one.rank, one.row)
    for key, name in _LARGER:
        if mean(after.column(key)) > LARGER * mean(before.column(key)):
            return message("larger {name}", name=name), "info", "Nothing to do: each step does more."
    anomaly = one.rank.facts.get("anomaly_mode")
    if anomaly is True or fact(one.rank, "anomaly_mode").get("on"):
        advice = "Switch it off after debugging: torch.autograd.set_detect_anomaly(False)."
        return "anomaly detection is on", "warning", advice
    queued = _runq(after) > BUSY_RUNQ and not _runq(before) > BUSY_RUNQ
    crowded = _others(window, after) > OTHERS_CPU and not _others(window, before) > OTHERS_CPU
    if queued or crowded:
        return "noisy neighbour", "info", "Other processes took the CPUs from there on; see noisy_neighbour."
    phase = slowest_phase(before, after)
    return (
        message("slower {phase}", phase=phase), "warning",
        message(
            "Look at what changed at that step in {phase}: a debug switch, a growing structure (hidden state "
            "that is not detached, a list that is walked), a clock that was lowered.",
            phase=phase,
        ),
    )  # fmt: skip


def _runq(part: Rank) -> float:
    """Share of the part's time that the main thread was ready without a CPU; NaN if unknown."""
    return mean(sample_values(_during(part, part.samples), "runq_share"))


def _others(window: Window, part: Rank) -> float:
    """Share of the usable CPUs that others than this run used during the part; NaN if unknown.

    Threads of the rank may wait for a CPU while its main thread waits for them, and queues for none itself.
    """
    hosts = {name: _during(part, table) for name, table in window.hosts.items()}
    ranks = {n: replace(rank, samples=_during(part, rank.samples)) for n, rank in window.ranks.items()}
    usable = sum(mean(sample_values(table, "cpu_usable")) for table in hosts.values())
    others = others_cpu(replace(window, hosts=hosts, ranks=ranks))
    return others / usable if usable else float("nan")


def _during(part: Rank, samples: Table) -> Table:
    """The samples from the part's first step to its last."""
    times = sample_values(samples, "t_s")
    inside = (times >= float(part.steps["t_s"][0])) & (times <= float(part.steps["t_s"][-1]))
    return {key: column[inside] for key, column in samples.items()}
