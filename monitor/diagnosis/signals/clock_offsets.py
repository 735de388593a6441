"""How far apart the hosts' clocks are, from the collectives in which their ranks meet.

A collective that all ranks take part in ends for all of them at the same moment (within 0.07 ms over gloo,
docs/measurements.md#clock-alignment). What a step does after it is its optimizer's, so a step's end less its
optimizer's time marks that moment on the host's own clock; the median over many steps leaves out what single
steps do besides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.rank_alignment import aligned
from monitor.diagnosis.signals.robust import median
from monitor.diagnosis.signals.training_steps import MIN_STEPS, WARMUP_STEPS, phase_ms

#: Steps that are compared at most, the newest: quartz clocks drift apart by up to 0.05 ms a second
#: (measurements.md#clock-alignment).
MOST_STEPS = 200

#: Differences that scatter more than this, in seconds, come from ranks that do not meet in every step (own).
SCATTER_S = 0.05

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Offset:
    """One host's clock beside the reference's.

    Attributes:
        ahead_s: what its times are ahead of the first host's, seconds; below 0 where they are behind.
        within_s: half of the differences lie this close to it.
    """

    ahead_s: float
    within_s: float


def offsets(window: Window, hosts: Mapping[int, str]) -> dict[str, Offset]:
    """Host -> its offset, of those that meet the first one in collectives; that one's is 0.

    Args:
        window: the run.
        hosts: rank -> the host it runs on.
    """
    marks: dict[str, list[tuple[NDArray[np.int64], Floats]]] = {}
    for rank in aligned(window) or [window.ranks[number] for number in sorted(window.ranks)]:
        meets = _meets(rank)
        if meets is not None and rank.rank in hosts:
            marks.setdefault(hosts[rank.rank], []).append(meets)
    middles = {host: _middle(of) for host, of in marks.items()}
    first = next(iter(middles), None)
    found = (
        {host: _between(middles[first], mark) for host, mark in middles.items()} if first is not None else {}
    )
    return {host: offset for host, offset in found.items() if offset is not None}


def _meets(rank: Rank) -> tuple[NDArray[np.int64], Floats] | None:
    """Steps in which it exchanged, and when those exchanges ended; None without enough of them."""
    if not rank.count:
        return None
    together = (phase_ms(rank, "comm") > 0) & (rank.steps["step"] >= WARMUP_STEPS)
    if together.sum() < MIN_STEPS:
        return None
    ends = np.asarray(rank.steps["t_s"], np.float64) - phase_ms(rank, "optimizer") / 1e3
    return np.asarray(rank.steps["step"])[together][-MOST_STEPS:], ends[together][-MOST_STEPS:]


def _middle(ranks: list[tuple[NDArray[np.int64], Floats]]) -> tuple[NDArray[np.int64], Floats]:
    """A host's own mark of each step: the median over its ranks."""
    steps = np.unique(np.concatenate([of for of, _ in ranks]))
    table = np.full((len(ranks), len(steps)), np.nan)
    for row, (of, ends) in enumerate(ranks):
        table[row, np.searchsorted(steps, of)] = ends
    return steps, np.nanmedian(table, axis=0)


def _between(one: tuple[NDArray[np.int64], Floats], other: tuple[NDArray[np.int64], Floats]) -> Offset | None:
    _, mine, theirs = np.intersect1d(one[0], other[0], return_indices=True)
    if len(mine) < MIN_STEPS:
        return None
    apart = other[1][theirs] - one[1][mine]
    ahead_s = median(apart)
    within_s = median(np.abs(apart - ahead_s))
    return Offset(ahead_s, within_s) if within_s <= SCATTER_S else None
