"""What ranks spend on communication, step by step beside each other.

All ranks' steps are equally long when one makes the others wait: they meet in a collective in every step.
So ranks are told apart by what they wait for. Whoever comes last waits for nobody; what even that rank
spends is the transfer itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.facts import Fact, fact
from monitor.diagnosis.signals.rank_alignment import aligned
from monitor.diagnosis.signals.robust import Values, median
from monitor.diagnosis.signals.training_steps import MIN_STEPS, phase_ms, recent_steps, step_ms

Matrix = NDArray[np.float64]

#: Common steps that are compared at most, the newest: a median gains nothing from more, and 1,024 ranks
#: cost (own).
MOST_STEPS = 1_000

#: Iterations that torch measured itself, which a judgement on a GPU needs at least (it measures the first
#: ten, and then every hundredth).
SAMPLED = 8


@dataclass(frozen=True)
class Exchange:
    """Ranks over the same steps.

    Attributes:
        ranks: those that were measured, by number, cut to the common steps.
        comm_ms: exposed communication, shape [ranks, steps].
        step_ms: wall time, shape [ranks, steps].
    """

    ranks: tuple[Rank, ...]
    comm_ms: Matrix
    step_ms: Matrix

    @property
    def transfer_ms(self) -> Values:
        """What the last to come spends, and so everybody would, were all equally fast; shape [steps]."""
        return np.asarray(self.comm_ms.min(axis=0))

    @property
    def usual_ms(self) -> float:
        """The usual step, all ranks together, milliseconds."""
        return median(self.step_ms.mean(axis=0))

    @property
    def transfer_share(self) -> float:
        """The transfer's share of the step, 0 to 1: the median, which single late ranks do not move."""
        median_step_ms = median(self.step_ms.mean(axis=0))
        return median(self.transfer_ms) / median_step_ms if median_step_ms > 0 else 0.0

    @property
    def exposed_share(self) -> float:
        """Share of time that ranks spend on communication, waiting for each other included, 0 to 1."""
        total_ms = float(self.step_ms.sum())
        return float(self.comm_ms.sum()) / total_ms if total_ms > 0 else 0.0


def exchange(window: Window) -> Exchange | None:
    """Ranks that measured communication, over their common steps; None where there is none, or too few.

    Ranks that are told in averages are compared over common stretches of steps instead.
    """
    if window.briefs:
        return _over_stretches(window)
    parts = [recent_steps(window.ranks[number]) for number in sorted(window.ranks)]
    parts = [part for part in parts if part.count >= MIN_STEPS and _measured(part)]
    if not parts:
        return None
    common = reduce(np.intersect1d, [part.steps["step"] for part in parts])[-MOST_STEPS:]
    if len(common) < MIN_STEPS:
        return None
    cut = tuple(_only(part, common) for part in parts)
    comm = np.stack([phase_ms(part, "comm") for part in cut])
    return Exchange(cut, comm, np.stack([np.nan_to_num(step_ms(part)) for part in cut]))


def _over_stretches(window: Window) -> Exchange | None:
    ranks = aligned(window)
    measured = tuple(rank for rank in ranks if _measured(rank))
    if not measured or measured[0].count < MIN_STEPS:
        return None
    comm = np.stack([phase_ms(rank, "comm") for rank in measured])
    return Exchange(measured, comm, np.stack([np.nan_to_num(step_ms(rank)) for rank in measured]))


def last_shares(window: Window) -> dict[int, float]:
    """Rank -> share of the common steps in which it came last, so that the others waited for it, 0 to 1.

    Empty where nothing is exchanged. Balanced ranks take turns: each has about its fair share.
    """
    seen = exchange(window) if len(window.ranks) > 1 else None
    if seen is None or len(seen.ranks) < 2:
        return {}
    last = np.bincount(seen.comm_ms.argmin(axis=0), minlength=len(seen.ranks)) / seen.comm_ms.shape[1]
    return {rank.rank: round(float(share), 4) for rank, share in zip(seen.ranks, last, strict=True)}


def sampled_share(rank: Rank) -> float | None:
    """Exposed communication's share of the step, from torch's own samples on a GPU; None without them."""
    ddp, part = fact(rank, "ddp"), recent_steps(rank)
    exposed, median_step_ms = ddp.get("exposed_ms"), median(step_ms(part)) if part.count else 0.0
    if exposed is None or (ddp.get("sampled") or 0) < SAMPLED or not median_step_ms > 0:
        return None
    rounds = np.nan_to_num(median(part.column("syncs")), nan=1.0)
    return min(float(exposed) * float(rounds) / median_step_ms, 1.0)


def redundant(rank: Rank) -> float | None:
    """Gradient exchanges per optimizer step, over whole accumulation cycles; None where it is not known."""
    part = recent_steps(rank)
    steps = np.nan_to_num(part.column("optimizer_steps")) + np.nan_to_num(part.column("amp_skipped"))
    ends, syncs = np.flatnonzero(steps), part.column("syncs")
    if len(ends) < 3 or np.isnan(syncs).all():
        return None
    cycle = slice(int(ends[0]) + 1, int(ends[-1]) + 1)
    return float(np.nansum(syncs[cycle]) / steps[cycle].sum())


def bus_gb_s(ddp: Fact, rank: Rank) -> float | None:
    """Bandwidth of an all-reduce as the wire sees it, 10⁹ bytes a second; None where it was not measured.

    2 (n − 1) ÷ n times the bytes, over the time (NVIDIA nccl-tests, PERFORMANCE.md).
    """
    ranks, part = ddp.get("world_size"), recent_steps(rank)
    took_ms, size_mb = median(part.column("collective_ms")), median(part.column("collective_mb"))
    if not ranks or ranks < 2 or not took_ms > 0 or not size_mb > 0:
        return None
    return float(2 * (ranks - 1) / ranks * size_mb / took_ms)


def _measured(rank: Rank) -> bool:
    """One that is always late may wait for nobody, and exchanges all the same.

    A GPU's host never waits; of other modules as well torch may tell in samples only.
    """
    ddp = fact(rank, "ddp")
    sampled = ddp.get("device", "cpu") != "cpu" or ddp.get("exposed_ms") is not None
    return bool(phase_ms(rank, "comm").any() or (np.nansum(rank.column("syncs")) and not sampled))


def _only(rank: Rank, numbers: NDArray[np.int64]) -> Rank:
    rows = np.searchsorted(rank.steps["step"], numbers)
    return Rank(
        rank.rank, {key: values[rows] for key, values in rank.steps.items()}, rank.samples, rank.facts,
        rank.ended, rank.phase,
    )  # fmt: skip
