"""Synthetic windows, told in a line: `window(data=50.0)` is 200 steps that wait 50 ms each for data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from monitor.diagnosis.core.window import Rank, Window
from monitor.schema import PHASES

#: A healthy step of 16 ms, as the zoo's baseline has it, in milliseconds.
HEALTHY = {"data": 2.0, "forward": 5.0, "backward": 8.0, "optimizer": 1.0}
STEPS = 200


def loader(**facts: Any) -> dict[str, Any]:
    """Facts of one training loader with two workers, others as given."""
    known = {"num_workers": 2, "batch_size": 32, "persistent_workers": True, "location": "train.py:31"}
    return {"loader/1": {"role": "train", **known, **facts}}


def env(**facts: Any) -> dict[str, Any]:
    """Facts about the process: two CPUs, one thread, others as given."""
    return {"env": {"usable_cpus": 2, "threads": 1, **facts}}


def every(period: int, value: float, usual: float, count: int = STEPS) -> np.ndarray:
    """`usual`, and `value` at every `period`-th step."""
    column = np.full(count, usual)
    column[period - 1 :: period] = value
    return column


def samples(count: int = 20, every_s: float = 0.5, **columns: Any) -> dict[str, np.ndarray]:
    """Samples at a steady pace from 0 s on; columns as numbers or arrays."""
    table = {key: _column(value, count) for key, value in columns.items()}
    return {"t_s": np.arange(count) * every_s, **table}


def rank(count: int = STEPS, number: int = 0, *, first: int = 0, begin_s: float = 1.0, **more: Any) -> Rank:
    """A rank of `count` steps.

    Args:
        count: steps.
        number: the rank's number.
        first: number of its first step.
        begin_s: when its first step began, seconds.
        more: `facts`, `samples` (a table), `ended`, `phase` of the rank; a phase's name -> milliseconds
            a step; any other name -> a column of that name. Numbers or arrays of `count`. Phases that
            are not given are as in `HEALTHY`, with `facts` of a loader.
    """
    rest = {key: more.pop(key) for key in ("ended", "phase") if key in more}
    if isinstance(more.get("samples"), Mapping):
        rest["samples"] = more.pop("samples")
    facts = more.pop("facts", None)
    times = {**HEALTHY, **{key: more.pop(key) for key in list(more) if key in PHASES}}
    steps = {f"{phase}_ms": _column(times.get(phase, 0.0), count) for phase in PHASES}
    steps["step_ms"] = np.sum(list(steps.values()), axis=0, dtype=np.float32)
    steps |= {key: _column(value, count) for key, value in more.items()}
    ends = begin_s + np.cumsum(steps["step_ms"], dtype=np.float64) / 1e3
    table = {"step": np.arange(first, first + count), "t_s": ends, **steps}
    return Rank(number, steps=table, facts={**env(), **loader()} if facts is None else facts, **rest)


def window(
    *ranks: Rank,
    events: Sequence[Mapping[str, Any]] = (),
    hosts: Mapping[str, Any] | None = None,
    finished: bool = False,
    now_s: float | None = None,
    **more: Any,
) -> Window:
    """A window of the given ranks, or of one made from `more` as `rank` takes it."""
    made = ranks or (rank(**more),)
    last = max((float(one.steps["t_s"][-1]) for one in made if one.count), default=0.0)
    return Window(
        now_s=last if now_s is None else now_s,
        ranks={one.rank: one for one in made},
        world_size=len(made),
        hosts=hosts or {},
        events=[{"t_s": 0.0, "rank": 0, **event} for event in events],
        finished=finished,
    )


def event(kind: str, **fields: Any) -> dict[str, Any]:
    """One event."""
    return {"kind": kind, **fields}


def _column(value: Any, count: int) -> np.ndarray:
    return np.broadcast_to(np.asarray(value, dtype=np.float32), (count,)).copy()
