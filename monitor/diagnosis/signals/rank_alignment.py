"""Ranks that are told in averages, aligned over the same steps.

Their agents end stretches at multiples of a power of two, each at one of its own choosing, so that ranks of
all hosts have many ends in common. Between two of these every rank's mean is known exactly.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.diagnosis.core.window import Rank, Table, Window
from monitor.diagnosis.signals.training_steps import WARMUP_STEPS

#: Common stretches that are compared at most, the newest (own; each is about a second).
MOST = 300

#: A rank that has fewer of the others' ends than this share came late or is gone, and is left out (own).
PRESENT = 0.5

#: What a brief tells of a rank's process.
SAMPLED = ("main_cpu", "workers_cpu", "runq_share", "io_wait_share", "rss_mb")

#: What a brief holds that is no mean of a step.
_APART = frozenset(
    ("rank", "end", "end_s", "steps", "end_high", "end_low", "ago_s", "phase", "phase_for_s", *SAMPLED)
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Grid:
    """Rows put into cells: ranks by common stretches.

    Attributes:
        shape: ranks, and common ends; nothing lies before the first of them.
        cells: which cell each row belongs to.
        rows: those that belong to one.
        last: those of them that end where their stretch does.
    """

    shape: tuple[int, int]
    cells: NDArray[np.intp]
    rows: NDArray[np.bool_]
    last: NDArray[np.bool_]

    def summed(self, values: Floats, rows: NDArray[np.bool_] | None = None) -> Floats:
        """Sum of each cell; shape [ranks, stretches]."""
        rows = self.rows if rows is None else rows
        flat = np.bincount(self.cells[rows], values[rows], minlength=self.shape[0] * self.shape[1])
        return np.asarray(flat.reshape(self.shape)[:, 1:])


def aligned(window: Window) -> tuple[Rank, ...]:
    """Every rank told in briefs, over the same stretches: each row is one, `step` the last step in it.

    Columns are means of a step. Empty where there are none, or no stretches in common.
    """
    briefs = _together([table for table in window.briefs.values() if len(table.get("rank", ()))])
    if briefs is None:
        return ()
    numbers, which = np.unique(briefs["rank"], return_inverse=True)
    common, present = _common(briefs["end"], which, len(numbers))
    if len(common) < 2:
        return ()
    index = np.searchsorted(common, briefs["end"])
    inside = (index > 0) & (index < len(common)) & present[which]
    last = inside & (common[np.minimum(index, len(common) - 1)] == briefs["end"])
    grid = _Grid((len(numbers), len(common)), which * len(common) + index, inside, last)
    columns, samples = _means(briefs, grid), _samples(briefs, which, len(numbers))
    return tuple(
        _rank(window, int(numbers[row]), common, {key: of[row] for key, of in columns.items()}, samples[row])
        for row in np.flatnonzero(present)
    )


def _means(briefs: dict[str, NDArray[Any]], grid: _Grid) -> dict[str, Floats]:
    """`t_s`, and means of a step by key; shape [ranks, stretches] each."""
    weights = briefs["steps"].astype(np.float64)
    steps = grid.summed(weights)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = {
            key: grid.summed(values.astype(np.float64) * weights) / steps
            for key, values in briefs.items()
            if key not in _APART
        }
    return {"t_s": grid.summed(briefs["end_s"], grid.last), **means}


def _together(tables: list[Table]) -> dict[str, NDArray[Any]] | None:
    """All hosts' stretches in one table, without the warm-up, in order of their ends."""
    if not tables:
        return None
    keys = dict.fromkeys(key for table in tables for key in table)
    joined = {
        key: np.concatenate([t[key] if key in t else np.full(len(t["rank"]), np.nan) for t in tables])
        for key in keys
    }
    kept = (joined["steps"] > 0) & (joined["end"] - joined["steps"] >= WARMUP_STEPS)
    order = np.flatnonzero(kept)[np.argsort(joined["end"][kept], kind="stable")]
    return {key: values[order] for key, values in joined.items()} if len(order) else None


def _common(
    ends: NDArray[np.int64], which: NDArray[np.intp], ranks: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Steps at which stretches of all ranks end that are there, the newest, and which ranks that are."""
    values, at, counts = np.unique(ends, return_inverse=True, return_counts=True)
    widely = counts >= PRESENT * ranks
    shared = np.bincount(which[widely[at]], minlength=ranks)
    present = shared >= PRESENT * max(float(np.median(shared)), 1.0)
    pairs = np.unique(at[present[which]] * ranks + which[present[which]])
    everywhere = np.bincount(pairs // ranks, minlength=len(values)) == present.sum()
    return values[everywhere][-MOST - 1 :], present


def _samples(briefs: dict[str, NDArray[Any]], which: NDArray[np.intp], ranks: int) -> list[Table]:
    """Each rank's process, as its briefs tell of it."""
    order = np.argsort(which, kind="stable")
    bounds = np.searchsorted(which[order], np.arange(ranks + 1))
    held = {key: briefs[key][order] for key in SAMPLED if key in briefs}
    held["t_s"] = briefs["end_s"][order]
    return [{key: values[a:b] for key, values in held.items()} for a, b in itertools.pairwise(bounds)]


def _rank(window: Window, number: int, common: NDArray[np.int64], means: Table, samples: Table) -> Rank:
    known = window.ranks.get(number) or Rank(number)
    table = {"step": common[1:] - 1, **means}
    return replace(known, steps=table, samples=known.samples or samples)
