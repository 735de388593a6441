"""What a detector sees of a run: plain columns, facts and events; no torch, no I/O, no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[Any]
Table = Mapping[str, Column]

EMPTY: Table = {}


@dataclass(frozen=True)
class Rank:
    """One rank's recent past.

    Attributes:
        rank: its number.
        steps: key -> shape [n]. Always `step` (int64, consecutive but for gaps) and `t_s` (float64, the
            step's end in seconds since the run began), then each metric of origin "step"
            (float32; NaN where not measured). All have the same length.
        samples: likewise for the stream `proc/R`: `t_s` and the metrics of origin "proc".
        facts: name -> value, the newest of each ("loader/1" -> {...}, "torch" -> {...}).
        ended: the rank's end event ({"code", "signal", "reason", ...}), None while it lives.
        phase: the phase it was last seen in, and since when (seconds since the run began).
        cuda: `t_s` and the metrics of origin "cuda", about one row a second; empty without a device.
    """

    rank: int
    steps: Table = field(default_factory=dict)
    samples: Table = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    ended: Mapping[str, Any] | None = None
    phase: tuple[str, float] | None = None
    cuda: Table = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Steps in the window."""
        return len(self.steps.get("step", ()))

    def column(self, key: str) -> Column:
        """A step column, NaN throughout where the run has no such column. float64, shape [count]."""
        values = self.steps.get(key)
        return np.full(self.count, np.nan) if values is None else np.asarray(values, dtype=np.float64)

    def facts_of(self, group: str) -> dict[str, Any]:
        """Facts called `group/…`, by what follows the slash."""
        start = group + "/"
        return {name[len(start) :]: value for name, value in self.facts.items() if name.startswith(start)}


@dataclass(frozen=True)
class Window:
    """A run's recent past, as far as it is kept in memory.

    Attributes:
        now_s: newest time known to the pipeline, seconds since the run began.
        ranks: by rank number.
        world_size: ranks the run says it has.
        hosts: host name -> samples (`t_s` and the metrics of origin "host").
        host_facts: host name -> facts the agent found out ("cpu" -> {"usable": 2, ...}).
        gpus: "NAME/I" -> samples of origin "gpu"; empty where there is no GPU.
        events: the run's events, oldest first (bounded; kinds in docs/architecture.md).
        finished: True once every rank has ended.
        briefs: in runs of many ranks, host name -> its ranks in averages over stretches of steps: `rank`,
            `end` (steps taken by then, int64), `end_s`, `steps` (in this stretch), and means of a step by
            key. Such ranks stand in `ranks` without steps, but for the first of each host.
    """

    now_s: float
    ranks: Mapping[int, Rank]
    world_size: int = 1
    hosts: Mapping[str, Table] = field(default_factory=dict)
    host_facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    gpus: Mapping[str, Table] = field(default_factory=dict)
    events: Sequence[Mapping[str, Any]] = ()
    finished: bool = False
    briefs: Mapping[str, Table] = field(default_factory=dict)

    def events_of(self, *kinds: str, rank: int | None = None) -> list[Mapping[str, Any]]:
        """Events of the given kinds, oldest first; of one rank where `rank` is given."""
        return [e for e in self.events if e["kind"] in kinds and (rank is None or e.get("rank") == rank)]
