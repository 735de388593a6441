"""How much memory a rank's processes hold, sample by sample, beside the step they were at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.diagnosis.core.window import Rank, Table, Window
from monitor.diagnosis.signals.cpu_contention import recent_samples, sample_values
from monitor.diagnosis.signals.robust import Values
from monitor.diagnosis.signals.training_steps import RECENT_S, WARMUP_STEPS

#: A sample so soon after the last step, in seconds, still tells what that step left behind: samples are a
#: second apart, and short runs have few (own).
AFTER_S = 1.0


@dataclass(frozen=True)
class MemorySamples:
    """Memory in the course of training. All arrays have shape [samples].

    Attributes:
        t_s: time of each sample.
        step: steps done by then (with a fraction).
        mb: megabytes.
    """

    t_s: Values
    step: Values
    mb: Values

    def __len__(self) -> int:
        return len(self.t_s)

    def until(self, end_s: float) -> MemorySamples:
        """The samples up to a time."""
        return MemorySamples(*(column[self.t_s <= end_s] for column in (self.t_s, self.step, self.mb)))


def main_process(rank: Rank) -> MemorySamples:
    """What a rank's main process held while it trained: after its warm-up, in the recent past."""
    return _held(rank, "rss_mb")


def process_tree(rank: Rank) -> MemorySamples:
    """What it held together with its workers, shared pages counted once.

    Counting them takes long, so the agent does it now and then and repeats the number in between: only
    the samples with a new one are here.
    """
    tree = _held(rank, "tree_pss_mb")
    new = np.ones(len(tree), dtype=bool)
    new[1:] = np.diff(tree.mb) != 0
    return MemorySamples(tree.t_s[new], tree.step[new], tree.mb[new])


def on_device(rank: Rank) -> MemorySamples:
    """What torch had allocated on the rank's device at the end of a step."""
    return _held(rank, "cuda_allocated_mb", rank.cuda)


def _held(rank: Rank, key: str, table: Table | None = None) -> MemorySamples:
    steps, ends = rank.steps.get("step", np.empty(0)), rank.steps.get("t_s", np.empty(0))
    after = ends[np.searchsorted(steps, WARMUP_STEPS) :]
    if not len(after):
        return MemorySamples(*(np.empty(0),) * 3)
    samples = recent_samples(
        rank.samples if table is None else table, max(float(after[0]), float(after[-1]) - RECENT_S)
    )
    t_s, mb = sample_values(samples, "t_s"), sample_values(samples, key)
    known = ~np.isnan(mb) & (t_s <= ends[-1] + AFTER_S)
    # After the last step a process that ends lets go of its memory: what is lower then tells of no step.
    held = np.maximum.accumulate(np.where(known, mb, 0.0))
    known &= (t_s <= ends[-1]) | (mb >= held)
    return MemorySamples(t_s[known], np.interp(t_s, ends, steps.astype(np.float64))[known], mb[known])


def limit_mb(window: Window) -> float | None:
    """The lowest memory limit of the run's hosts (cgroup or host); None where none is known."""
    newest = [sample_values(samples, "memory_limit_mb") for samples in window.hosts.values()]
    known = [float(column[-1]) for column in newest if len(column) and column[-1] == column[-1]]
    return min(known, default=None)
