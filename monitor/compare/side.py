"""Side: one of the runs that are compared, read once: its steps after warm-up, facts, findings, machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from monitor import report
from monitor.compare.statistics import Steps
from monitor.schema import PHASES, combine
from monitor.store import FILE_NAME, Store

#: Share of a run's first steps that is left out as warm-up, at least and at most so many: kernels are
#: loaded, caches filled and workers started in them (5 as the diagnosis, 50 so that long runs lose little).
WARM_UP_SHARE, LEAST_WARM_UP, MOST_WARM_UP = 0.05, 5, 50
#: Steps read of each run, the newest; 11 columns of them are 18 MB.
STEPS_READ = 200_000
#: Whose steps are compared. Ranks of one run wait for one another, so any of them would do.
RANK = "rank/0"
#: A sample tells of the time before it, one second unless told otherwise.
SAMPLE_S = 1.0
#: Nearly all usable CPUs in use, and this share of them by others: crowded (as the diagnosis says).
FULL_CPU, OTHERS_CPU = 0.9, 0.25
#: What a busy neighbour on the same core or cache takes of a CPU's speed at most (own: 0.4 to 0.5 was seen
#: on two hyperthreads of one core).
SIBLING = 0.5
#: A run that may have lost this share of its time says nothing of its speed; more is not told apart (own:
#: of one and the same script's runs, those beyond differed by up to 12 times).
MOST_LOST = 0.9

_COLUMNS = ("step_ms", "loss", "samples", "tokens", *(f"{phase}_ms" for phase in PHASES))


@dataclass(frozen=True)
class Side:
    """One run.

    Attributes:
        report: as `monitor.report` builds it.
        meta: the store's.
        facts: name -> value, as rank 0 told.
        columns: `row`, `t_s` and metrics of every step read, warm-up included.
        steady: which of them are left after warm-up.
        gpu_mb: most GPU memory that any device had in use; None without a GPU.
        lost_share: share of time that other processes may have cost this run, 0 to 1: see `_lost_share`.
    """

    report: Mapping[str, Any]
    meta: Mapping[str, Any]
    facts: Mapping[str, Any]
    columns: Mapping[str, Steps]
    steady: slice
    gpu_mb: float | None
    lost_share: float

    def steps(self, key: str) -> Steps:
        """Values of one metric after warm-up, those that were measured."""
        values = self.columns[key][self.steady]
        return values[np.isfinite(values)]

    def mean(self, key: str) -> float | None:
        """Their mean; None where nothing was measured."""
        values = self.steps(key)
        return float(values.mean()) if values.size else None

    @property
    def head(self) -> dict[str, Any]:
        """Which run it is."""
        keys = ("run", "name", "status", "steps", "world_size", "duration_s", "started_unix_s", "verdict")
        return {key: self.report[key] for key in keys}


def read(folder: Path, most: int = STEPS_READ) -> Side:
    """Read the run kept in `folder`, its newest `most` steps. Raises StoreError."""
    with Store(folder / FILE_NAME) as store:
        full_report = report.build(store)
        facts, meta, streams = store.facts(), store.meta(), store.streams()
        span = store.span(RANK) if streams.get(RANK) else None
        last = span["last_row"] if span else -1
        rows = store.rows(RANK, _COLUMNS, max(0, last - most + 1), last) if span else {}
        gpus = [store.totals(name, ["gpu_memory_used_mb"]) for name in streams if name.startswith("gpu/")]
        peaks = [total["gpu_memory_used_mb"][3] for total in gpus]
        columns = {key: np.asarray(rows.get(key, ()), dtype=np.float64) for key in ("row", "t_s", *_COLUMNS)}
        steady = _steady(columns["row"])
        peak = combine("gpu_memory_used_mb", peaks)
        lost = _lost_share(store, list(streams), columns["t_s"][steady])
    mine = facts.get(RANK) or next((facts[s] for s in sorted(facts) if s.startswith("rank/")), {})
    return Side(full_report, meta, mine, columns, steady, None if np.isnan(peak) else peak, lost)


def _steady(rows: Steps) -> slice:
    """The steps after warm-up; of a run that is hardly longer, its later half."""
    if not rows.size:
        return slice(0)
    wanted = min(max(int(rows[-1] * WARM_UP_SHARE), LEAST_WARM_UP), MOST_WARM_UP)
    return slice(min(int(np.searchsorted(rows, wanted)), rows.size // 2), None)


def _lost_share(store: Store, streams: list[str], ends_s: Steps) -> float:
    """Share of time that other processes may have cost this run; 0 where nobody sampled.

    The kernel tells how long the main thread waited for a CPU; of that, others are to blame for as much as
    their share of all CPU use. What a run's own threads and workers take from it is its own doing, and
    counts as speed. On CPUs that are all taken, others also slow what does run.
    """
    if ends_s.size < 2:
        return 0.0
    begin, end = float(ends_s[0]), float(ends_s[-1]) + SAMPLE_S

    def mean(stream: str, key: str) -> float:
        for since in (begin, 0.0):  # of a short run no sample lies after its warm-up
            found = store.series(stream, [key], since, end, 1)["series"][key]["mean"]
            if found and isinstance(found[0], int | float):
                return float(found[0])
        return float("nan")

    hosts = [name for name in streams if name.startswith("host/")]
    procs = [name for name in streams if name.startswith("proc/")]
    waited = mean("proc/0", "runq_share")

    def together(names: list[str], key: str) -> float:
        return float(np.nan_to_num(combine(key, (mean(name, key) for name in names))))

    used, usable = together(hosts, "cpu_used"), together(hosts, "cpu_usable")
    own = together(procs, "main_cpu") + together(procs, "workers_cpu")
    others = max(used - own, 0.0)
    if used <= 0 or usable <= 0:
        return 0.0
    queued = float(np.nan_to_num(np.clip(waited, 0, 1))) * others / used
    crowded = used > FULL_CPU * usable and others > OTHERS_CPU * usable
    slowed = SIBLING * min(others / usable, 1.0) if crowded else 0.0
    return min(1 - (1 - queued) * (1 - slowed), MOST_LOST)
