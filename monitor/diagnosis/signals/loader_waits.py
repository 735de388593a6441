"""Where the time spent waiting for batches went. One wait belongs to one detector only.

A wait at the start of an epoch is `worker_respawn`'s, waits that grow are `data_degrading`'s, rare
long ones are `data_spikes`', and what is left is `data_starvation`'s.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.cpu_contention import cpus_contended, runq_share, sample_values
from monitor.diagnosis.signals.cuda_device import cuda_rows, timed
from monitor.diagnosis.signals.robust import Mask, Values, median, quantile, quarters
from monitor.diagnosis.signals.training_steps import (
    MIN_STEPS,
    WARMUP_STEPS,
    epoch_starts,
    phase_ms,
    recent_steps,
    slice_steps,
    stalled_rows,
    step_ms,
    step_range,
    train_loader,
)

Rows = NDArray[np.int64]
Pattern = Literal["none", "steady", "spikes", "growing"]

#: A batch that a worker has ready still costs 1 to 2.5 ms to hand over (measurements.md#batch-hand-over): a
#: wait up to here cannot be hidden by anything …
HANDOVER_MS = 2.5

#: … and one up to here proves nothing while other processes have the CPUs (measurements.md#busy-machines:
#: healthy scripts at steps of 15 to 20 ms then reach a data share of 0.2 to 0.4, that is waits of up to 8
#: ms).
CROWDED_HANDOVER_MS = 10.0

#: Then this share must be lost (measurements.md#busy-machines: up to 0.4 is no fault there).
CROWDED_LOST_SHARE = 0.4

#: … and more where the main thread itself waits longer for a CPU: workers wait for theirs as long, and
#: run into each other (own).
CROWDED_MORE = 0.1

#: What a hand-over costs at best (measurements.md#batch-hand-over): this much is never promised back.
LEAST_HANDOVER_MS = 1.0

#: … nor more than this share of the other work, where steps are tiny (own).
LEAST_HANDOVER_SHARE = 0.2

#: A spike is at least this long (gpuprof counts waits over 30 ms) and this many times the usual wait
#: (measurements.md#tails-of-waits: 5) and the usual step's other work.
SPIKE_MS = 30.0
SPIKE_WAITS = 5.0
SPIKE_STEPS = 1.5

#: Spikes are rare (gpuprof takes 20 % of steps for a starved prefetch), more than a chance event, and
#: most of what is lost.
RARE = 0.2
SEVERAL = 3
MOST = 0.7

#: So many gaps between long waits must equal the number of workers to call it their rhythm (own).
RHYTHM = 0.6

#: Growth from the first to the last quarter: this much, and to this multiple (own), each quarter
#: taking part with at least this share of it (a jump is not growth).
GROWTH_MS = 5.0
GROWTH_TIMES = 2.0
GROWTH_EACH = 0.1


@dataclass(frozen=True)
class Waits:
    """One rank's waits in the steps that may be judged.

    Attributes:
        rank: the rank, cut to the rows that were judged.
        loader: facts of its training loader.
        wait_ms, other_ms: waiting and everything else of every step, shape [rows].
        excess_ms: waiting beyond a hand-over, 0 at epoch starts and for single bursts, shape [rows].
        starts, spikes: rows that begin an epoch (with the refilling of the queue), rows that are spikes.
        crowded: whether others had the CPUs.
        runq_share: share of time that the main thread was ready to run without a CPU; NaN if unknown.
        pattern: what the excess looks like.
        exposed: share of the ordinary waiting in which a GPU stood idle too, 1 without one: a host that is
            ahead of its GPU may wait for a batch and lose nothing.
        batches: batches that a step fetches on the average: each has a hand-over of its own.
    """

    rank: Rank
    loader: Mapping[str, Any]
    wait_ms: Values
    other_ms: Values
    excess_ms: Values
    starts: Mask
    spikes: Mask
    crowded: bool
    runq_share: float
    pattern: Pattern
    exposed: float = 1.0
    batches: float = 1.0

    @property
    def workers(self) -> int:
        """Worker processes of the loader."""
        return int(self.loader.get("num_workers") or 0)

    @property
    def lost_share(self) -> float:
        """Share of wall time lost to waits that could be hidden, 0 to 1."""
        total_ms = float(self.wait_ms.sum() + self.other_ms.sum())
        return float(self.excess_ms.sum()) / total_ms if total_ms > 0 else 0.0

    @property
    def data_share(self) -> float:
        """Share of wall time spent waiting for data at all, 0 to 1."""
        total_ms = float(self.wait_ms.sum() + self.other_ms.sum())
        return float(self.wait_ms.sum()) / total_ms if total_ms > 0 else 0.0

    def lost_at_least(self, share: float) -> bool:
        """Whether waits that could be hidden take this share of the time, or far more on a busy machine."""
        if self.crowded:
            known = 0.0 if math.isnan(self.runq_share) else self.runq_share
            share = max(CROWDED_LOST_SHARE, known + CROWDED_MORE)
        return self.lost_share >= share

    def saved_share(self, usual_ms: float | None = None) -> float:
        """Share of wall time that goes when every wait shrinks to what a hand-over costs at best.

        Args:
            usual_ms: what is left of a wait instead, where more is known.

        Starts of epochs and single bursts count no more than a long ordinary wait.
        """
        total_ms = float(self.wait_ms.sum() + self.other_ms.sum())
        if usual_ms is None:
            least = LEAST_HANDOVER_MS * self.batches
            usual_ms = min(least, LEAST_HANDOVER_SHARE * float(self.other_ms.mean()))
        odd = self.starts | (self.spikes & (self.excess_ms == 0.0))
        most = quantile(self.wait_ms[~odd], 0.9) if (~odd).any() else 0.0
        waited = np.where(odd, np.minimum(self.wait_ms, most), self.wait_ms)
        saved = np.maximum(waited - usual_ms, 0.0)
        saved[~self.spikes] *= self.exposed
        return float(saved.sum()) / total_ms if total_ms > 0 else 0.0


def waits(window: Window, rank: Rank) -> Waits | None:
    """The rank's waits; None where it has no loader or too few steps."""
    found, part = train_loader(rank), _past_first_epoch(window, recent_steps(rank))
    if found is None or part.count < MIN_STEPS:
        return None
    wait, total = phase_ms(part, "data"), step_ms(part)
    other = np.maximum(np.nan_to_num(total, nan=0.0) - wait, 0.0)
    wait[stalled_rows(window, part)] = other[stalled_rows(window, part)] = 0.0
    busy = cpus_contended(window, rank)
    workers = int(found[1].get("num_workers") or 0)
    starts = _starts(window, part, workers)
    spikes = _spikes(wait, other, starts)
    batches = batches_per_step(part, found[1])
    excess = np.maximum(wait - (CROWDED_HANDOVER_MS if busy else HANDOVER_MS) * batches, 0.0)
    excess[starts] = 0.0
    if spikes.sum() < SEVERAL:
        excess[spikes] = 0.0
    exposed = _exposed(rank, wait)
    excess[~spikes] *= exposed
    queue = runq_share(rank)
    fetched = float(batches.mean())
    judged = Waits(part, found[1], wait, other, excess, starts, spikes, busy, queue, "none", exposed, fetched)
    return replace(judged, pattern=_pattern(judged, epoch_starts(window, part)))


def batches_per_step(rank: Rank, loader: Mapping[str, Any]) -> Values:
    """Batches that each step fetched, shape [rows], at least 1: several where gradients are accumulated.

    A batch that is cut into pieces after it was fetched is one.
    """
    fetched = np.nan_to_num(rank.column("micro_batches"), nan=1.0)
    if size := loader.get("batch_size"):
        fetched = np.fmin(fetched, np.ceil(rank.column("samples") / float(size)))
    return np.asarray(np.maximum(fetched, 1.0))


def worker_rhythm(wait_ms: Values, workers: int) -> bool:
    """Whether the long waits come every `workers` batches: all workers finish, then all are busy again."""
    if workers < 2:
        return False
    gaps = np.diff(np.flatnonzero(wait_ms > HANDOVER_MS + quantile(wait_ms, 0.98) / 3))
    return bool(len(gaps) >= SEVERAL and np.mean(gaps == workers) >= RHYTHM)


def _exposed(rank: Rank, wait_ms: Values) -> float:
    """Share of the waiting in which the device was idle as well, by its own clock; 1 where nobody timed it.

    Nothing is launched while a batch is fetched: what lies between two events around it is idleness.
    """
    table = cuda_rows(rank)
    waited = float(wait_ms.mean()) if len(wait_ms) else 0.0
    if not (float(np.nansum(sample_values(table, "gpu_timed"))) >= MIN_STEPS and waited > 0):
        return 1.0
    return min(timed(table, "gpu_idle_ms") / waited, 1.0)


def _past_first_epoch(window: Window, rank: Rank) -> Rank:
    """Without the first epoch, where enough came after it: it fills the caches for all later ones."""
    starts = epoch_starts(window, rank)
    first = step_range(rank)[0]
    if not len(starts) or first is None or first > WARMUP_STEPS:
        return rank
    return slice_steps(rank, int(starts[0])) if rank.count - starts[0] >= MIN_STEPS else rank


def _starts(window: Window, rank: Rank, workers: int) -> Mask:
    mask = np.zeros(rank.count, dtype=bool)
    for row in epoch_starts(window, rank) if workers else ():
        mask[row : row + 1 + workers] = True
    return mask


def _spikes(wait: Values, other: Values, starts: Mask) -> Mask:
    usual = median(wait[~starts]) if (~starts).any() else 0.0
    least = max(SPIKE_MS, SPIKE_WAITS * usual, SPIKE_STEPS * median(other))
    return np.asarray((wait > least) & ~starts)


def _pattern(one: Waits, epochs: Rows) -> Pattern:
    lost = float(one.excess_ms.sum())
    if lost <= 0:
        return "none"
    rare = SEVERAL <= one.spikes.sum() <= RARE * len(one.wait_ms)
    most = float(one.excess_ms[one.spikes].sum()) >= MOST * lost
    if rare and most and not worker_rhythm(one.wait_ms, one.workers):
        return "spikes"
    least = CROWDED_HANDOVER_MS if one.crowded else GROWTH_MS
    climbs = keeps_growing(quarters(one.wait_ms), least) or keeps_growing(
        quarters_of_epochs(one.wait_ms, epochs), least
    )
    return "growing" if climbs and not _larger(one.rank) else "steady"


def keeps_growing(levels: Sequence[float], least_ms: float = GROWTH_MS) -> bool:
    """Whether waits climb from each quarter to the next, by `least_ms` in all."""
    rise = levels[-1] - levels[0]
    if not (rise >= least_ms and levels[-1] >= GROWTH_TIMES * levels[0]):
        return False
    return all(after - before >= GROWTH_EACH * rise for before, after in itertools.pairwise(levels))


def quarters_of_epochs(wait_ms: Values, epochs: Rows) -> tuple[float, float, float, float]:
    """Median wait in each quarter of an epoch, over all whole epochs; NaN below two of them."""
    if len(epochs) < 3:
        return (math.nan,) * 4
    parts = [np.array_split(wait_ms[begin:end], 4) for begin, end in itertools.pairwise(epochs)]
    first, second, third, fourth = (median(np.concatenate(quarter)) for quarter in zip(*parts, strict=True))
    return first, second, third, fourth


def _larger(rank: Rank) -> bool:
    """Whether the batches themselves grew: then longer waits are no fault."""
    for key in ("batch_elements", "tokens", "samples"):
        levels = quarters(rank.column(key))
        if levels[3] > levels[0] * 1.2:
            return True
    return False
