"""Some ranks come late to every exchange, and all others wait for them.

What: the same ranks come late to every exchange and cost all others 6 % of the step or more (15 % where
    other processes have the CPUs, unless the late rank pauses where the others spend next to nothing:
    neighbours stretch work, they add no pauses); or batches of unequal size make now one rank late, now
    another.
Why it costs: every step takes as long as its slowest rank, and all ranks' steps are equally long, so that
    step times do not show it.
How to see it: phases of the ranks side by side: the late one has the least `comm`, and more of something
    else; that phase is in the cause.
How to fix it: even out the work, or the machine.
How sure we are: named right for 20 of 20 simulated runs with a delay of a tenth of the step, nobody named
    for 20 of 20 balanced ones, for 2, 4 and 8 ranks; also where each rank's pace wanders for seconds. In
    runs of more than 16 ranks it is judged over averages of about a second (one late rank of 1,024 was
    found in every trial). Real ranks that share two busy CPUs reach the exchange in a different order by a
    third of a step anyway (`benchmarks/ranks.py`): there a tenth shows only over several hundred steps, and
    no wrong rank was named. Needs no clock of another machine. Not seen on GPUs, where the host does not
    wait.

Columns: `comm_ms`, all phases, `tokens`, `batch_elements`, `samples`; `runq_share`, `cpu_used`
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.diagnosis.core.finding import Finding, gain_from_share
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.communication import Exchange, Matrix, exchange
from monitor.diagnosis.signals.cpu_contention import cpus_contended
from monitor.diagnosis.signals.facts import fact
from monitor.diagnosis.signals.robust import Values, median, quarters
from monitor.diagnosis.signals.training_steps import phase_ms, step_range
from monitor.schema import PHASES

CODE = "straggler"
NEEDS = frozenset({"steps", "exchange", "ranks"})
CURVE = ("run", "run_comm_ms")

#: Share of the step that all others lose (TraceML warns at 10 and 20 % of the step; a delay of a tenth of a
#: step is a ninth less of the longer one, and a median on a busy machine misses some of that).
LOST_SHARE = 0.06

#: Where others have the CPUs, one of two equal ranks may be slowed for a whole run (own: one balanced
#: run of 9 on two busy cores was named at the lower share).
CROWDED_LOST_SHARE = 0.15

#: … unless it is late in a phase in which the others spend next to nothing: neighbours stretch what is there,
#: they add nothing where there is nothing. So many times the others' time more in that phase (own) …
STRETCHED = 0.5
#: … in so many of the steps (own), in every quarter at least this part of the usual excess (own), while it
#: costs everybody at least this share of the step (own: a tenth of it, among ranks that wander by a sixth).
PLAINLY = 0.9
PLAIN_QUARTER = 0.5
PLAIN_COST_SHARE = 0.02

#: Ranks that the late ones are compared with at most: their median gains nothing from more (own).
COMPARED = 64

#: Always the same ranks: they come last so many standard deviations more often than half of the time
#: (measurements.md#balanced-ranks: in balanced runs one of two ranks came last in 46 to 54 % of the steps)
#: …
SIGMAS = 4.0
#: … and in every quarter of the steps the loss is at least this part of the whole one (own).
EACH_QUARTER = 0.3

#: Wandering: unequal batches cost everybody this share (own; more than the noise of balanced runs, 0.1,
#: measurements.md#balanced-ranks) and a rank's work follows its batch's size with this correlation.
WANDERING_SHARE = 0.15
FOLLOWS = 0.6

#: A late rank with so many times the others' elements has the larger batches (own).
LARGER = 1.1

_ADVICE = {
    "data": "Its batches come later: compare its loader, storage and CPUs with the others'.",
    "other": "It does something between the steps that the others do not, such as logging on one rank "
    "only. Move that out of the loop, or share it among the ranks.",
    "checkpoint": "It alone saves: write in the background, or rarer, or let every rank write its part.",
    "eval": "It alone evaluates: let all ranks evaluate a part.",
}
_SLOW = (
    "It computes more slowly: look for other processes on its CPUs or GPU, a lower clock, fewer threads, or "
    "a slower device."
)
TITLE = "Ranks wait for the slowest one"


@dataclass(frozen=True)
class Late:
    """Who comes late.

    Attributes:
        rows: which rows of the exchange; the others wait.
        loss_ms: what they cost everybody in each step; below 0 where another one came later, shape [steps].
    """

    rows: NDArray[np.intp]
    loss_ms: Values


def detect(window: Window) -> Finding | None:
    """The rank with the least exposed communication, if it is always the same one. No clock is compared.

    Its excess in one phase counts as well, where the noise of all phases together hides it; but nobody is
    named for whom the others do not wait.
    """
    seen = exchange(window)
    if seen is None or len(seen.ranks) < 2:
        return None
    for late in (_latest(seen), _oddest(seen)):
        share = _cost(window, seen, late) if late is not None else None
        if late is not None and share is not None:
            return _finding(seen, late, share)
    return _wandering(seen)


def _cost(window: Window, seen: Exchange, late: Late) -> float | None:
    """Share of the step that these ranks cost everybody; None where it is not always their doing."""
    busy = any(cpus_contended(window, seen.ranks[row]) for row in late.rows)
    share = median(late.loss_ms) / seen.usual_ms
    if share >= (CROWDED_LOST_SHARE if busy else LOST_SHARE) and _always(late.loss_ms):
        return share
    return _plain_cost(seen, late, busy)


def _plain_cost(seen: Exchange, late: Late, busy: bool) -> float | None:
    """The same where they spend more in one phase, step by step, and the noise of the others hides the sum.

    What it costs is what the longest work of all would be shorter by in each step without that excess.
    """
    slow, others = _sides(seen, late)
    phase, more_ms = _most(_more(slow, others))
    usual_ms = float(np.median([median(phase_ms(rank, phase)) for rank in others]))
    if more_ms < LOST_SHARE * seen.usual_ms or (busy and more_ms < STRETCHED * usual_ms):
        return None
    mine, theirs = (np.stack([phase_ms(rank, phase) for rank in side]) for side in (slow, others))
    more = mine.min(axis=0) - np.median(theirs, axis=0)
    if float(np.mean(more > 0)) < PLAINLY or min(quarters(more)) < PLAIN_QUARTER * more_ms:
        return None
    work = seen.step_ms - seen.comm_ms
    without = work.copy()
    without[late.rows] -= more_ms
    share = float(np.mean(work.max(axis=0) - without.max(axis=0))) / seen.usual_ms
    return share if share >= PLAIN_COST_SHARE else None


def _latest(seen: Exchange) -> Late:
    """The ranks before the widest gap between waiting times, at most half of all."""
    usual = np.median(seen.comm_ms, axis=1)
    order = np.argsort(usual)
    gaps = np.diff(usual[order])[: max(len(order) // 2, 1)]
    count = int(np.argmax(gaps)) + 1
    return _late(seen, np.sort(order[:count]))


def _oddest(seen: Exchange) -> Late | None:
    """The rank that spends most more than the others in any one phase; None where that is little."""
    most, row = LOST_SHARE * seen.usual_ms, None
    for phase in PHASES:
        if phase == "comm":
            continue
        usual = np.median(np.stack([phase_ms(rank, phase) for rank in seen.ranks]), axis=1)
        longest = int(usual.argmax())
        more = float(usual[longest] - np.median(np.delete(usual, longest)))
        if more > most:
            most, row = more, longest
    return None if row is None else _late(seen, np.array([row]))


def _late(seen: Exchange, rows: NDArray[np.intp]) -> Late:
    others = np.delete(np.arange(len(seen.ranks)), rows)
    return Late(rows, seen.comm_ms[others].min(axis=0) - seen.comm_ms[rows].min(axis=0))


def _sides(seen: Exchange, late: Late) -> tuple[list[Rank], list[Rank]]:
    """The late ranks and the others, of whom some speak for all where they are many."""
    others = np.delete(np.arange(len(seen.ranks)), late.rows)
    some = others[:: max(len(others) // COMPARED, 1)]
    return [seen.ranks[row] for row in late.rows], [seen.ranks[row] for row in some]


def _always(loss_ms: Values) -> bool:
    often = float(np.mean(loss_ms > 0))
    least = EACH_QUARTER * median(loss_ms)
    steady = all(quarter >= least for quarter in quarters(loss_ms))
    return steady and often >= 0.5 + SIGMAS / 2 / math.sqrt(len(loss_ms))


def _finding(seen: Exchange, late: Late, share: float) -> Finding:
    slow, others = _sides(seen, late)
    more = _more(slow, others)
    phase, more_ms = _most(more)
    larger = _size(slow) / _size(others) if _size(others) > 0 else 1.0
    work = phase not in _ADVICE
    unequal = work and larger >= LARGER
    advice = "Its batches are larger: give all ranks equal ones." if unequal else _ADVICE.get(phase, _SLOW)
    evidence: dict[str, Any] = {
        "late_ranks": ", ".join(str(rank.rank) for rank in slow),
        "phase": phase,
        "late_by_ms": round(median(late.loss_ms), 2),
        "more_in_phase_ms": round(more_ms, 2),
        "last_in_share_of_steps": round(float(np.mean(late.loss_ms > 0)), 3),
        "step_ms_p50": round(seen.usual_ms, 2),
        "comm_ms_late": round(median(seen.comm_ms[late.rows].mean(axis=0)), 2),
        "comm_ms_others": round(median(_without(seen.comm_ms, late.rows).mean(axis=0)), 2),
    }
    if unequal:
        evidence["batch_ratio"] = round(larger, 2)
    first, last = step_range(slow[0])
    names = ", ".join(str(rank.rank) for rank in slow[:4])
    basis = message(
        "in {share:.0%} of the steps all others wait for rank {ranks}, {late_ms:.1f} ms of {step_ms:.1f}",
        share=evidence["last_in_share_of_steps"], ranks=names,
        late_ms=evidence["late_by_ms"], step_ms=evidence["step_ms_p50"],
    )  # fmt: skip
    return Finding(
        CODE, "warning", TITLE,
        message("rank {ranks} is late: {why}", ranks=names, why="larger batches" if unequal else phase),
        evidence,
        advice, gain=gain_from_share(min(share, _excess(seen, slow, more)), basis),
        ranks=tuple(rank.rank for rank in slow),
        first_step=first, last_step=last, location=None,
    )  # fmt: skip


def _most(more: dict[str, float]) -> tuple[str, float]:
    """The phase in which the late ones spend most more than the others, and how much, in milliseconds."""
    phase = max(more, key=lambda name: more[name])
    return phase, more[phase]


def _excess(seen: Exchange, slow: list[Rank], more: dict[str, float]) -> float:
    """What the late ones spend more in all phases, of the mean step: no more than that can come back.

    Others wait longer: they are woken late, and steps that took longer than usual are part of the run. Where
    CPUs do the exchange, the others did their part of it while they waited: all do theirs at once then.
    """
    back_ms = sum(max(ms, 0.0) for ms in more.values())
    if fact(slow[0], "ddp").get("device") == "cpu":
        back_ms -= min(median(seen.transfer_ms), back_ms / 2)
    return back_ms / max(float(seen.step_ms.mean()), 1e-9)


def _more(slow: list[Rank], others: list[Rank]) -> dict[str, float]:
    """What the late ones spend more in each phase, in milliseconds."""

    def usual(ranks: list[Rank], phase: str) -> float:
        return float(np.mean([median(phase_ms(rank, phase)) for rank in ranks]))

    return {phase: usual(slow, phase) - usual(others, phase) for phase in PHASES if phase != "comm"}


def _size(ranks: list[Rank]) -> float:
    """How large their batches are, in whatever was counted; 0 where nothing was."""
    for key in ("tokens", "batch_elements", "samples"):
        sizes = [median(rank.column(key)) for rank in ranks]
        if not any(math.isnan(size) for size in sizes):
            return float(np.mean(sizes))
    return 0.0


def _wandering(seen: Exchange) -> Finding | None:
    """Now one, now another, and always the one with the largest batch."""
    work = seen.step_ms - seen.comm_ms
    lost_ms = seen.comm_ms.mean(axis=0) - seen.transfer_ms
    share = float(lost_ms.sum() / seen.step_ms.mean(axis=0).sum())
    follows = _follows(seen, work)
    if share < WANDERING_SHARE or follows < FOLLOWS:
        return None
    first, last = step_range(seen.ranks[0])
    evidence = {"waiting_share": round(share, 3), "work_follows_batch": round(follows, 2)}
    return Finding(
        CODE, "warning", TITLE, "batches of unequal size", evidence,
        "It is a different rank each time, the one with the largest batch: put samples of similar length "
        "together and deal them out evenly (bucketing by length), so that all ranks have equally much to do.",
        gain=gain_from_share(
            share,
            message("{share:.0%} of all ranks' time is spent waiting for the largest batch", share=share),
        ),
        ranks=tuple(rank.rank for rank in seen.ranks), first_step=first, last_step=last,
    )  # fmt: skip


def _follows(seen: Exchange, work: Matrix) -> float:
    """Correlation of work and batch size between ranks, within the steps; 0 where sizes do not differ."""
    for key in ("tokens", "batch_elements", "samples"):
        sizes = np.stack([rank.column(key) for rank in seen.ranks])
        if np.isnan(sizes).any():
            continue
        differ, worked = sizes - sizes.mean(axis=0), work - work.mean(axis=0)
        if differ.any() and worked.any():
            return float(np.corrcoef(differ.ravel(), worked.ravel())[0, 1])
    return 0.0


def _without(values: Matrix, rows: NDArray[np.intp]) -> Matrix:
    return np.asarray(np.delete(values, rows, axis=0))
