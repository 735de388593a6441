"""Memory: how much a rank's processes hold, sample by sample, beside the step they were at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .machine import recent, values
from .robust import Values
from .steady import RECENT_S, WARMUP_STEPS
from .window import Rank, Window


@dataclass(frozen=True)
class Held:
    """Memory after the warm-up. All arrays have shape [samples].

    Attributes:
        t_s: time of each sample.
        step: steps done by then (with a fraction).
        main_mb: the main process.
        tree_mb: main process and workers, shared pages counted once; the main process where the tree
            was not measured.
    """

    t_s: Values
    step: Values
    main_mb: Values
    tree_mb: Values

    def __len__(self) -> int:
        return len(self.t_s)


def held(rank: Rank) -> Held:
    """What a rank held while it trained, in the recent past."""
    steps, ends = rank.steps.get("step", np.empty(0)), rank.steps.get("t_s", np.empty(0))
    after = ends[np.searchsorted(steps, WARMUP_STEPS) :]
    if not len(after):
        return Held(*(np.empty(0),) * 4)
    samples = recent(rank.samples, max(float(after[0]), float(after[-1]) - RECENT_S))
    t_s, main, tree = (values(samples, key) for key in ("t_s", "rss_mb", "tree_pss_mb"))
    tree = np.where(np.isnan(tree), main, tree)
    known = ~np.isnan(tree) & (t_s <= ends[-1])
    step = np.interp(t_s, ends, steps.astype(np.float64))
    return Held(t_s[known], step[known], main[known], tree[known])


def limit_mb(window: Window) -> float | None:
    """The lowest memory limit of the run's hosts (cgroup or host); None where none is known."""
    newest = [values(samples, "memory_limit_mb") for samples in window.hosts.values()]
    known = [float(column[-1]) for column in newest if len(column) and column[-1] == column[-1]]
    return min(known, default=None)
