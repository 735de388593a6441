"""View: a run's state in the form that pages draw: tiles, ranks, and rows of each stream."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from monitor.run_state import RunState
from monitor.run_state.briefs import newest
from monitor.run_state.columns import Columns
from monitor.run_state.ending import signal_name
from monitor.schema import combine, keys_of
from monitor.strict_json import plain

#: Rows of one stream that an update carries at most, and that a snapshot carries (about two minutes).
UPDATE_ROWS, SNAPSHOT_ROWS = 600, 120
#: Streams that an update carries at most, and ranks.
STREAMS, RANKS = 512, 512

#: Ranks whose processes' samples an update carries, the first ones: no chart draws more.
PROCESSES = 16

#: Steps that tell whether anything is trained.
LATELY = 512
_TRAINED = ("backward_calls", "optimizer_steps")

_RATES = ("steps_per_s", "samples_per_s", "tokens_per_s", "data_share")
_QUANTILES = ("step_p50_ms", "step_p95_ms", "step_p99_ms")
_OF_RANKS = ("rss_mb", "tree_pss_mb", "main_cpu", "workers_cpu")
_OF_HOSTS = ("memory_limit_mb", "cpu_used", "cpu_usable")

Values = dict[str, list[float | None]]


def tiles(state: RunState) -> dict[str, Any]:
    """The newest numbers of the whole run; null where nothing was measured, "NaN" for such a loss."""
    over = state.finished
    living = [rank.samples for rank in state.ranks.values() if rank.ended is None or over]
    briefs = [newest(columns, _OF_RANKS) for columns in state.briefs.values()]
    return {
        **{key: _last(state.own, key) for key in _RATES},
        **{key: _number(state.own.newest(key)) for key in _QUANTILES},
        **{key: _total(living, key, [of[key] for of in briefs]) for key in _OF_RANKS},
        **{key: _total(list(state.hosts.values()), key) for key in _OF_HOSTS},
        "gpu": _gpus(state),
        "loss": "NaN" if state.loss_is_nan else _number(state.own.newest("run_loss")),
    }


def inference(state: RunState) -> dict[str, float] | None:
    """Latency (ms a step), and throughput where batches were counted, of a run that trains nothing."""
    tables = [rank.steps for rank in state.ranks.values() if len(rank.steps)]
    quantiles = {key: state.own.newest(f"step_{key}_ms") for key in ("p50", "p95", "p99")}
    if not tables or not all(map(math.isfinite, quantiles.values())):
        return None
    if any(np.any(steps.column(key, LATELY) != 0) for steps in tables for key in _TRAINED):
        return None
    samples = np.concatenate([steps.column("samples", LATELY) for steps in tables])
    rate = state.own.newest("samples_per_s")
    if not math.isfinite(rate) or not np.isfinite(samples).any():
        return quantiles
    return {**quantiles, "samples_per_s": rate, "batch": float(np.nanmedian(samples))}


def uncounted(state: RunState) -> int:
    """Backward passes, as last told, of ranks that train without a step that could be seen."""
    uncounted_facts = [rank.facts.get("uncounted") for rank in state.ranks.values() if not len(rank.steps)]
    return sum(int(fact.get("backward_passes") or 0) for fact in uncounted_facts if isinstance(fact, dict))


def epoch(state: RunState) -> int | None:
    """The newest epoch that any rank is in; None where none was seen."""
    newest = [rank.steps.newest("epoch") for rank in state.ranks.values() if len(rank.steps)]
    latest = combine("epoch", [value for value in newest if math.isfinite(value)])
    return int(latest) if math.isfinite(latest) else None


def ranks(state: RunState) -> list[dict[str, Any]]:
    """Each rank: the phase it is in and since when, its last completed step, and how it ended."""
    out = []
    for number, rank in sorted(state.ranks.items())[:RANKS]:
        phase, since_s = rank.phase or (None, None)
        step = rank.step if rank.step >= 0 else None
        entry = {"rank": number, "phase": phase, "phase_since_s": since_s, "step": step, "ended": None}
        if rank.ended is not None:
            end = {key: rank.ended.get(key) for key in ("code", "reason", "last_step", "last_phase", "t_s")}
            entry["ended"] = plain({**end, "signal": signal_name(rank.ended.get("signal"))})
        out.append(entry)
    return out


def row_counts(state: RunState) -> dict[str, int]:
    """Up to where each stream has come."""
    return {name: columns.total for name, columns in _streams(state)}


def fresh_rows(state: RunState, sent: dict[str, int]) -> dict[str, Values]:
    """Rows of each stream beyond what `sent` says was sent already; it is brought up to date."""
    out = {}
    for name, columns in _streams(state):
        fresh = min(columns.total - sent.get(name, 0), UPDATE_ROWS)
        sent[name] = columns.total
        if fresh and len(columns):
            out[name] = _rows(columns, fresh)
    return out


def newest_rows(state: RunState) -> dict[str, Values]:
    """The newest rows of each stream."""
    return {name: _rows(columns, SNAPSHOT_ROWS) for name, columns in _streams(state) if len(columns)}


def _streams(state: RunState) -> Iterator[tuple[str, Columns]]:
    yield "run", state.own
    named = [
        *((f"host/{name}", columns) for name, columns in state.hosts.items()),
        *((f"gpu/{name}", columns) for name, columns in state.gpus.items()),
        *[(f"proc/{n}", rank.samples) for n, rank in state.ranks.items() if len(rank.samples)][:PROCESSES],
        *((f"cuda/{number}", rank.cuda) for number, rank in state.ranks.items() if len(rank.cuda)),
        *((f"user/{name}", columns) for name, columns in state.users.items()),
    ]
    yield from named[:STREAMS]


def _rows(columns: Columns, last: int) -> Values:
    table = columns.table(last)
    return {key: [_number(v) for v in values.tolist()] for key, values in table.items() if key != "step"}


def _gpus(state: RunState) -> list[dict[str, Any]] | None:
    """Each GPU's name and newest sample; None where there is no GPU."""
    if not state.gpus:
        return None
    return [
        {"gpu": name, "name": _called(state, name), **{key: _last(columns, key) for key in keys_of("gpu")}}
        for name, columns in sorted(state.gpus.items())
    ]


def _called(state: RunState, gpu: str) -> str | None:
    """The product's name of the device "HOST/KEY", None where the agent does not tell it."""
    host, _, key = gpu.partition("/")
    listed = state.host_facts.get(host, {}).get("gpus")
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict) and str(one.get("gpu")) == key and one.get("name"):
            return str(one["name"])
    return None


def _total(tables: list[Columns], key: str, more: Sequence[float] = ()) -> float | None:
    values = [table.newest(key) for table in tables if len(table)]
    return _number(combine(key, [value for value in (*values, *more) if math.isfinite(value)]))


def _last(columns: Columns, key: str) -> float | None:
    newest = columns.column(key, 1)
    return _number(float(newest[0])) if len(newest) else None


def _number(value: float) -> float | None:
    """Seven digits, which is what a float32 holds; None for what is not finite."""
    return float(f"{value:.7g}") if math.isfinite(value) else None
