"""What a rank's CUDA device did while it trained, from the probe's rows and the driver's samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.diagnosis.core.window import Column, Rank, Table, Window
from monitor.diagnosis.signals.cpu_contention import AFTER_S, recent_samples, sample_values
from monitor.diagnosis.signals.facts import Fact, fact
from monitor.diagnosis.signals.robust import mean, median, quantile
from monitor.diagnosis.signals.training_steps import MIN_STEPS, WARMUP_STEPS, phase_ms, recent_steps, share

#: Rows or samples in a row that must show a state (own, as for memory_pressure: a peak is no state).
LASTING = 3

#: Share of the timed steps with which the device must be done when backward has been launched (own), and
#: share of its step that the phases must take at whose end it was (own: backward alone takes as much; after
#: a forward pass the host may ask too soon to see it): then it waits for launches.
CAUGHT_UP = 0.9
STARVED_SHARE = 0.4

#: Phases whose time on the device is nobody's arithmetic.
WAITING = ("data", "comm", "checkpoint", "eval")


@dataclass(frozen=True)
class Allocator:
    """What torch's allocator holds, in MB (1e6 bytes); NaN where it does not tell.

    Attributes:
        allocated, reserved: in tensors, and taken from the driver in all.
        split: free pieces of segments of which another piece is in use.
        peak: the most that was ever in tensors.
        total: the device's memory.
    """

    allocated: float
    reserved: float
    split: float
    peak: float
    total: float

    @property
    def split_share(self) -> float:
        """Share of what is reserved that lies in such pieces."""
        return self.split / self.reserved if self.reserved > 0 else 0.0

    @property
    def unneeded(self) -> float:
        """What was never needed at one time and is reserved all the same; the pieces, without a peak."""
        if self.peak != self.peak:
            return self.split
        return max(self.reserved - self.peak, 0.0)


@dataclass(frozen=True)
class Compute:
    """Forward and backward together.

    Attributes:
        ms: a step.
        share: of the step, 0 to 1.
    """

    ms: float
    share: float


def cuda(rank: Rank) -> Fact:
    """What the probe says of the rank's device; empty without one."""
    return fact(rank, "cuda")


def capability(rank: Rank) -> tuple[int, int] | None:
    """Compute capability, (9, 0) for Hopper; None where unknown, and for devices that are not NVIDIA's."""
    reported = cuda(rank).get("capability") or fact(rank, "env").get("device_capability")
    if cuda(rank).get("hip") or not isinstance(reported, list | tuple):
        return None
    parts = [part for part in reported if isinstance(part, int)]
    return (parts[0], parts[1]) if len(parts) == 2 else None


def cuda_rows(rank: Rank) -> Table:
    """The probe's rows of the recent past, after the warm-up. Counts in them are of the second before."""
    return _during(rank, rank.cuda, complete_rows=True)


def per_step(table: Table, key: str) -> float:
    """A count of the rows in each step; NaN where it was not counted."""
    counted, steps = sample_values(table, key), sample_values(table, "cuda_steps")
    known = ~np.isnan(counted) & ~np.isnan(steps)
    done = float(steps[known].sum())
    return float(counted[known].sum()) / done if done > 0 else float("nan")


def timed(table: Table, key: str) -> float:
    """Mean of a time over all steps that were timed; 0 where none had any, NaN without timed steps."""
    weight = np.nan_to_num(sample_values(table, "gpu_timed"))
    total_weight = float(weight.sum())
    return (
        float((np.nan_to_num(sample_values(table, key)) * weight).sum()) / total_weight
        if total_weight > 0
        else float("nan")
    )


def allocator(rank: Rank) -> Allocator | None:
    """The allocator in the newest rows: the median of `LASTING`; None without as many."""
    table = cuda_rows(rank)
    if len(table.get("t_s", ())) < LASTING:
        return None

    def newest(key: str) -> float:
        return median(sample_values(table, key)[-LASTING:])

    return Allocator(
        newest("cuda_allocated_mb"), newest("cuda_reserved_mb"), newest("cuda_split_mb"),
        newest("cuda_peak_mb"), total_mb(rank),
    )  # fmt: skip


def total_mb(rank: Rank) -> float:
    """The device's memory; NaN where unknown."""
    return number(cuda(rank), "total_mb")


def number(fields: Fact, key: str) -> float:
    """A number of a fact or an event; NaN where there is none."""
    value = fields.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else float("nan")


def launch_starved(rank: Rank) -> bool:
    """Whether the device waits for launches: it is done as soon as the host is, within phase after phase."""
    table = cuda_rows(rank)
    done = timed(table, "gpu_caught_up")
    return done >= CAUGHT_UP and starved_share(table) >= STARVED_SHARE


def starved_share(table: Table) -> float:
    """Share of the device's step in phases at whose end it was done; NaN if not timed. An upper bound."""
    total_ms = timed(table, "gpu_step_ms")
    return timed(table, "gpu_starved_ms") / total_ms if total_ms > 0 else float("nan")


def idle_share(table: Table) -> float:
    """Share of the device's step between the last kernel of one and the first forward of the next one,
    waiting for data aside; NaN if not timed. Copies and loss code lie in it: an upper bound."""
    total_ms = timed(table, "gpu_step_ms")
    between = timed(table, "gpu_gap_ms") - timed(table, "gpu_data_ms")
    return max(between, 0.0) / total_ms if total_ms > 0 else float("nan")


def exposed_between(rank: Rank, host_ms: float) -> float:
    """Share of what the host does between two steps in which the device was idle as well, at most; 1 where
    nobody timed it.

    Args:
        host_ms: what the host does, milliseconds a step.
    """
    table = cuda_rows(rank)
    between = timed(table, "gpu_gap_ms") - timed(table, "gpu_data_ms")
    enough = float(np.nansum(sample_values(table, "gpu_timed"))) >= MIN_STEPS and host_ms > 0
    return min(max(between, 0.0) / host_ms, 1.0) if enough else 1.0


def compute(rank: Rank) -> Compute:
    """On the device where it was timed: the host only launches. Else on the host."""
    table = cuda_rows(rank)
    total_ms = timed(table, "gpu_step_ms")
    if total_ms > 0:
        ms = timed(table, "gpu_forward_ms") + timed(table, "gpu_backward_ms")
        return Compute(ms, ms / total_ms)
    part = recent_steps(rank)
    taken = phase_ms(part, "forward") + phase_ms(part, "backward")
    return Compute(float(taken.mean()) if part.count else 0.0, share(taken, part))


def waiting_share(rank: Rank) -> float:
    """Share of wall time in phases that leave the device waiting for something with a detector of its own."""
    part = recent_steps(rank)
    return float(sum(share(phase_ms(part, phase), part) for phase in WAITING))


def gpu(window: Window, rank: Rank) -> tuple[str, Table] | None:
    """Name and samples of the rank's device while it trained; None where it cannot be told which it is."""
    name = gpu_name(window, rank)
    return (name, _during(rank, window.gpus[name])) if name else None


def gpu_name(window: Window, rank: Rank) -> str | None:
    """The "HOST/KEY" of the rank's device: by its UUID, or as the only one there is."""
    uuid = _bare(cuda(rank).get("uuid"))
    found = [name for name, known in _uuids(window).items() if uuid and known == uuid and name in window.gpus]
    if not found and len(window.gpus) == 1:
        found = list(window.gpus)
    return found[0] if len(found) == 1 else None


def gpu_facts(window: Window, name: str) -> Fact:
    """What the agent says of a device ({"name", "others", …}); empty where it does not."""
    host, _, key = name.partition("/")
    for one in _listed(window.host_facts.get(host, {})):
        if str(one.get("gpu")) == key:
            return one
    return {}


def on_devices(window: Window) -> dict[str, tuple[Table, tuple[int, ...]]]:
    """Device -> its samples while training, and the ranks that use it."""
    found: dict[str, tuple[Table, tuple[int, ...]]] = {}
    for number_, rank in sorted(window.ranks.items()):
        own = gpu(window, rank) if cuda(rank) else None
        if own is not None:
            found[own[0]] = own[1], (*found.get(own[0], ({}, ()))[1], number_)
    return found


def utilisation(table: Table) -> tuple[float, float]:
    """Median and 95th percentile of a device's utilisation, per cent; NaN if not measured."""
    used = sample_values(table, "gpu_util")
    return median(used), quantile(used, 0.95)


def sample_mean(table: Table, key: str) -> float:
    """Mean of a column; NaN if not measured."""
    return mean(sample_values(table, key))


def measured(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """The evidence without what was not measured."""
    return {key: value for key, value in evidence.items() if value == value}


def flagged_share(flags: NDArray[np.bool_]) -> float:
    """Share of the samples that show something, 0 without any."""
    return float(np.mean(flags)) if len(flags) else 0.0


def _during(rank: Rank, table: Table, *, complete_rows: bool = False) -> Table:
    numbers, ends, times = rank.steps.get("step"), rank.steps.get("t_s"), table.get("t_s")
    if times is None or not len(times) or numbers is None or ends is None or not len(numbers):
        return recent_samples(table)
    first = float(ends[min(int(np.searchsorted(numbers, WARMUP_STEPS)), len(numbers) - 1)])
    # The first row after the warm-up counts what came in it, too.
    begun = int(np.searchsorted(times, first, side="right")) + complete_rows
    after = int(np.searchsorted(times, float(ends[-1]) + (1.0 if complete_rows else AFTER_S), side="right"))
    return recent_samples({key: finite(column[min(begun, after) : after]) for key, column in table.items()})


def finite(column: Column) -> Column:
    """The column with NaN, which is not measured, in place of what is infinite."""
    return np.where(np.isinf(column), np.nan, column)


def _uuids(window: Window) -> dict[str, str]:
    return {
        f"{host}/{one.get('gpu')}": _bare(one.get("uuid"))
        for host, facts in window.host_facts.items()
        for one in _listed(facts)
    }


def _listed(facts: Mapping[str, Any]) -> list[Fact]:
    gpus = facts.get("gpus")
    return [one for one in gpus if isinstance(one, Mapping)] if isinstance(gpus, list) else []


def _bare(uuid: Any) -> str:
    return str(uuid or "").removeprefix("GPU-").removeprefix("MIG-").lower()
