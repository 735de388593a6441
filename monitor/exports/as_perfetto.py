"""Perfetto: the phases as a trace in Chrome's JSON form, for ui.perfetto.dev and chrome://tracing.

A track a rank, a slice a step, the step's phases inside it. The tape holds how long each phase took
within a step, not when: the order inside a step is the usual one, and the trace says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from monitor.exports.choice import Choice
from monitor.exports.rows import blocks
from monitor.schema import PHASES
from monitor.store import Store
from monitor.strict_json import dumps

#: Most steps of a rank, the newest of the range: ten slices each, which is what a viewer opens in seconds.
STEPS = 20_000
#: Said in the trace's metadata.
NOTE = (
    "Lengths are measured; the order of the phases inside a step is schematic: each phase's time within the "
    "step is summed and drawn once, in the order " + " → ".join(PHASES) + "."
)
#: Phase -> a colour that the trace's viewers know by name.
_COLOURS = {
    "data": "thread_state_iowait",
    "h2d": "yellow",
    "forward": "rail_response",
    "backward": "rail_animation",
    "optimizer": "good",
    "comm": "rail_load",
    "checkpoint": "bad",
    "eval": "grey",
    "other": "generic_work",
}
_PROCESS = 1
#: Rows whose times are looked at together.
_BATCH_ROWS = 50_000


def write(store: Store, choice: Choice) -> Iterator[bytes]:
    """`{"displayTimeUnit", "otherData", "traceEvents": […]}`; times in microseconds since the run began."""
    meta, ranks = store.meta(), _ranks(store, choice)
    parts = {rank: _newest(store, choice, f"rank/{rank}") for rank in ranks}
    about = {
        "run": meta.get("run"),
        "name": meta.get("name"),
        "started_unix_s": meta.get("started_unix_s"),
        "order": NOTE,
        "steps": {f"rank {rank}": step_range for rank, (_, step_range) in parts.items()},
    }
    yield b'{"displayTimeUnit":"ms","otherData":' + _text(about) + b',"traceEvents":[\n'
    yield b",\n".join(_text(event) for event in _names(meta, ranks))
    for rank, (part, _) in parts.items():
        yield from _slices(store, part, rank)
    for finding in store.findings():
        if choice.holds(finding["raised_at_s"]):
            yield b",\n" + _text(_mark(finding))
    yield b"\n]}\n"


def _ranks(store: Store, choice: Choice) -> list[int]:
    names = [choice.stream] if choice.stream else store.streams()
    return sorted(int(name[5:]) for name in names if name.startswith("rank/") and name[5:].isdigit())


def _newest(store: Store, choice: Choice, stream: str) -> tuple[Choice, str]:
    """The choice, narrowed to its newest STEPS, and which of how many these are."""
    count, steps, times = 0, np.empty(0, np.int64), np.empty(0)
    for block in blocks(store, replace(choice, stream=stream), (), _BATCH_ROWS):
        count += len(block["row"])
        steps = np.concatenate([steps, block["row"]])[-STEPS:]
        times = np.concatenate([times, block["t_s"]])[-STEPS:]
    if not count:
        return Choice(stream), "none"
    step_range = f"{steps[0]} to {steps[-1]}" + (f", the newest of {count}" if count > STEPS else "")
    return Choice(stream, float(times[0]), float(times[-1])), step_range


def _names(meta: dict[str, Any], ranks: list[int]) -> list[dict[str, Any]]:
    named = [_event("M", "process_name", 0, args={"name": f"torchvitals {meta.get('name')}"})]
    return named + [_event("M", "thread_name", rank, args={"name": f"rank {rank}"}) for rank in ranks]


def _slices(store: Store, choice: Choice, rank: int) -> Iterator[bytes]:
    keys = [f"{phase}_ms" for phase in PHASES]
    before_us = float("-inf")
    for block in blocks(store, choice, keys):
        lines = []
        columns = [block[name].tolist() for name in ("row", "t_s", *keys)]
        for step, end_s, *spent_ms in zip(*columns, strict=True):
            if not math.isfinite(end_s):  # a damaged store
                continue
            end_us = end_s * 1e6
            lines += _step(rank, step, before_us, end_us, spent_ms)
            before_us = end_us
        yield "".join(lines).encode()


def _step(rank: int, step: int, before_us: float, end_us: float, spent_ms: list[float]) -> list[str]:
    """One step's slice and those of its phases. Phases are float32: their sum is held within the step."""
    spent_us = [1e3 * spent if 0 < spent < math.inf else 0.0 for spent in spent_ms]
    at = max(end_us - sum(spent_us), before_us)
    lines = [_slice(rank, f"step {step}", at, end_us - at, step, "")]
    for phase, us in zip(PHASES, spent_us, strict=True):
        length = min(us, end_us - at)
        if length > 0:
            lines.append(_slice(rank, phase, at, length, step, _COLOURS[phase]))
            at += length
    return lines


def _slice(rank: int, name: str, at_us: float, us: float, step: int, colour: str) -> str:
    """Written by hand: a trace has hundreds of thousands, and nothing in them needs escaping."""
    shade = f',"cname":"{colour}"' if colour else ""
    return (
        f',\n{{"ph":"X","pid":{_PROCESS},"tid":{rank},"name":"{name}","cat":"step","ts":{at_us:.3f},'
        f'"dur":{us:.3f},"args":{{"step":{step}}}{shade}}}'
    )


def _mark(finding: dict[str, Any]) -> dict[str, Any]:
    details = {key: finding.get(key) for key in ("code", "cause", "severity", "advice", "location")}
    name = f"{finding['severity']}: {finding['title']}"
    return _event("i", name, 0, ts=round(1e6 * finding["raised_at_s"], 3), s="p", args=details)


def _event(kind: str, name: str, rank: int, **rest: Any) -> dict[str, Any]:
    return {"ph": kind, "pid": _PROCESS, "tid": rank, "name": name, **rest}


def _text(value: Any) -> bytes:
    return dumps(value).encode()
