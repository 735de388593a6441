"""How contended the CPUs were, and by whom. Busy neighbours make healthy runs look ill."""

from __future__ import annotations

import numpy as np

from monitor.diagnosis.core.window import Column, Rank, Table, Window
from monitor.diagnosis.signals.facts import facts_of
from monitor.diagnosis.signals.robust import Values, mean
from monitor.diagnosis.signals.training_steps import RECENT_S, WARMUP_STEPS

#: Above this share of time runnable but without a CPU the machine was busy with something else
#: (measurements.md#busy-machines; healthy scripts on an idle one stay below 0.04, two ranks on two CPUs
#: below 0.07).
BUSY_RUNQ = 0.15

#: Nearly all usable CPUs in use, and this share of them by others (own): crowded, even when the
#: main thread itself only waited for its workers.
FULL_CPU = 0.9
OTHERS_CPU = 0.25

#: A sample tells of the second before it: one that long after the last step, in seconds, is half its own.
AFTER_S = 0.5


def usable_cpus(window: Window, rank: Rank) -> float | None:
    """CPUs this rank's host lets it use: min(affinity, cgroup quota). None where nobody told."""
    usable = rank.facts.get("env", {}).get("usable_cpus")
    if usable:
        return float(usable)
    for samples in window.hosts.values():
        known = mean(sample_values(samples, "cpu_usable"))
        if known == known:
            return known
    for facts in window.host_facts.values():
        cpu = facts.get("cpu")
        if isinstance(cpu, dict) and cpu.get("usable"):
            return float(cpu["usable"])
    return None


def ranks_per_host(window: Window, rank: Rank) -> int:
    """Ranks that share this rank's host."""
    local_world_size = rank.facts.get("env", {}).get("local_world_size")
    return (
        int(local_world_size) if local_world_size else max(1, len(window.ranks) // max(1, len(window.hosts)))
    )


def runq_share(rank: Rank) -> float:
    """Share of the recent time that the main thread was ready to run without a CPU; NaN if unknown."""
    return mean(sample_values(samples_while_training(rank), "runq_share"))


def others_cpu(window: Window) -> float:
    """Cores used by processes that are not of this run, mean of the recent past; NaN if unknown.

    Hosts are taken together: a run's ranks are alike, and one crowded host slows all of them.
    """
    used = sum(mean(sample_values(recent_samples(samples), "cpu_used")) for samples in window.hosts.values())
    ours = [cpu for rank in window.ranks.values() for cpu in own_cpu(rank)]
    ours += [cpu for table in window.briefs.values() for cpu in _briefed_cpu(window, table)]
    return float(used) - float(np.nansum(ours)) if window.hosts else float("nan")


def _briefed_cpu(window: Window, table: Table) -> list[float]:
    """Cores used by ranks of a host that are told in averages only, their workers included."""
    alone = [n for n in np.unique(table["rank"]).tolist() if not window.ranks.get(n, Rank(n)).samples]
    rows = np.isin(table["rank"], alone)
    return [
        float(np.nanmean(sample_values(table, key)[rows])) * len(alone)
        for key in ("main_cpu", "workers_cpu")
        if key in table and rows.any() and not np.isnan(sample_values(table, key)[rows]).all()
    ]


def own_cpu(rank: Rank) -> tuple[float, float]:
    """Cores used by the rank's main process and by its loader workers; NaN if unknown.

    A worker computes on one CPU: what a process's children use beyond that is other children's, and
    counts as others'.
    """
    samples = samples_while_training(rank)
    main, workers = mean(sample_values(samples, "main_cpu")), mean(sample_values(samples, "workers_cpu"))
    most = sum(int(facts.get("num_workers") or 0) for facts in facts_of(rank, "loader"))
    return main, workers if workers != workers else min(workers, float(most))


def cpus_contended(window: Window, rank: Rank) -> bool:
    """Whether others took the CPUs from this rank in the recent past."""
    if runq_share(rank) > BUSY_RUNQ:
        return True
    used = sum(mean(sample_values(recent_samples(samples), "cpu_used")) for samples in window.hosts.values())
    usable = sum(mean(sample_values(samples, "cpu_usable")) for samples in window.hosts.values())
    return bool(usable and used > FULL_CPU * usable and others_cpu(window) > OTHERS_CPU * usable)


def samples_while_training(rank: Rank) -> Table:
    """Recent samples of the rank's process while it trained: from the end of its warm-up to its last step.

    All of them, where it took no step.
    """
    numbers, ends = rank.steps.get("step"), rank.steps.get("t_s")
    if numbers is None or ends is None or not len(numbers):
        return recent_samples(rank.samples)
    first = min(int(np.searchsorted(numbers, WARMUP_STEPS)), len(numbers) - 1)
    times = rank.samples.get("t_s", np.empty(0))
    trained = int(np.searchsorted(times, float(ends[-1]) + AFTER_S, side="right"))
    samples = {key: column[:trained] for key, column in rank.samples.items()}
    return recent_samples(samples, float(ends[first]))


def recent_samples(samples: Table, since_s: float = 0.0) -> Table:
    """The samples of the last `RECENT_S` seconds, none before `since_s`."""
    times = samples.get("t_s")
    if times is None or not len(times):
        return samples
    first = int(np.searchsorted(times, max(float(times[-1]) - RECENT_S, since_s)))
    return {key: column[first:] for key, column in samples.items()}


def sample_values(samples: Table, key: str) -> Values:
    """One column of samples as float64, NaN throughout where it is missing."""
    column: Column | None = samples.get(key)
    if column is None:
        return np.full(len(samples.get("t_s", ())), np.nan)
    return np.asarray(column, dtype=np.float64)
