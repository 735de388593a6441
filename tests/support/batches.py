"""A training as its agent tells of it: batches of real rows and events, made as tests ask for them."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from monitor.batch import Batch, Block
from monitor.schema import PHASES

RUN = "20261130-031620-digits-1f3a"
#: Milliseconds of each phase of an ordinary step; the rest of a step is zero.
STEP = {"data": 6.0, "forward": 5.0, "backward": 7.0, "optimizer": 1.0, "other": 1.0}


class Training:
    """One host's agent of one run.

    Args:
        ranks: how many it has, all on this host.
        phases: milliseconds of each phase of every step.
    """

    def __init__(
        self, *, run: str = RUN, host: str = "h", ranks: int = 1, phases: dict[str, float] = STEP
    ) -> None:
        self.run, self.host, self.ranks, self.phases = run, host, ranks, dict(phases)
        self.seq = 0
        self.now_s = 0.0
        self.steps = 0
        self.samples = 0

    @property
    def step_s(self) -> float:
        return sum(self.phases.values()) / 1e3

    def start(self, **about: Any) -> Batch:
        """The first batch: the run began, its ranks attached."""
        run = {
            "name": "digits",
            "started_unix_s": 1.8e9,
            "world_size": self.ranks,
            "host": self.host,
            **about,
        }
        attached = [self.event("attach", rank=rank, pid=1000 + rank) for rank in range(self.ranks)]
        return self.batch(0, self.event("run", **run), self.event("agent", pid=999, version="1"), *attached)

    def batch(self, steps: int, *events: dict[str, Any], idle_s: float = 0.0, **columns: float) -> Batch:
        """Each rank took so many steps, then nothing for `idle_s`; `columns` are values of other metrics."""
        blocks = [self.rows(f"rank/{rank}", steps, columns) for rank in range(self.ranks)] if steps else []
        self.steps += steps
        self.now_s += steps * self.step_s + idle_s
        self.seq += 1
        told = tuple({"last_step": self.steps - 1, **e} if e["kind"] == "rank_end" else e for e in events)
        return Batch(self.run, self.host, self.seq, self.now_s, tuple(blocks), told)

    def rows(self, stream: str, steps: int, columns: dict[str, float]) -> Block:
        ends = array("d", self.now_s + self.step_s * np.arange(1, steps + 1))
        values = {f"{phase}_ms": self.phases.get(phase, 0.0) for phase in PHASES}
        values |= {"step_ms": self.step_s * 1e3, "samples": 32.0, **columns}
        return Block(stream, self.steps, ends, {k: array("f", [v] * steps) for k, v in values.items()})

    def sample(self, stream: str, **values: float) -> Batch:
        """One sample of a process, host or GPU."""
        self.seq += 1
        columns = {key: array("f", [value]) for key, value in values.items()}
        block = Block(stream, self.samples, array("d", [self.now_s]), columns)
        self.samples += 1
        return Batch(self.run, self.host, self.seq, self.now_s, (block,))

    def event(self, kind: str, **fields: Any) -> dict[str, Any]:
        return {"kind": kind, "t_s": self.now_s, **fields}

    def end(self, rank: int = 0, **how: Any) -> dict[str, Any]:
        """A rank's end after the batch's steps, a clean one unless said otherwise."""
        told = {"code": 0, "signal": None, "reason": "end of the script", "clean": True, **how}
        return self.event("rank_end", rank=rank, last_phase="backward", **told)

    def killed(self, rank: int = 0) -> dict[str, Any]:
        return self.end(rank, code=None, signal=9, reason="killed by SIGKILL", clean=False)
