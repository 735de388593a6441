"""Measure: the report's numbers, over the whole run, from the store's totals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from monitor.diagnosis.signals.unwatched_data import waiting
from monitor.schema import PHASES, combine
from monitor.store import Store

Values = dict[str, float | None]


def _nulls(*names: str) -> Values:
    return dict.fromkeys(names)


@dataclass
class Measures:
    """Numbers of a run under the names of the contract; null where they cannot be known."""

    steps: int | None = 0
    duration_s: float | None = None
    micro_batches: int | None = None
    throughput: Values = field(default_factory=lambda: _nulls("steps_per_s", "samples_per_s", "tokens_per_s"))
    step_ms: Values = field(default_factory=lambda: _nulls("p50", "p95", "p99"))
    time_share: Values = field(default_factory=lambda: _nulls(*PHASES))
    memory: Values = field(
        default_factory=lambda: _nulls(
            "rss_mb", "cuda_allocated_mb", "cuda_reserved_mb", "cuda_fragmentation"
        )
    )
    dropped_records: int = 0
    reduced_ranks: int = 0
    samples: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _RankMeasures:
    steps: int
    missing: int
    duration_s: float
    per_s: Values
    quantiles: Sequence[float]
    share: Values


def measure(store: Store) -> Measures:
    """All numbers of a run. Raises StoreError."""
    streams = store.streams()
    ranks = [_rank(store, name) for name in _ranks_of(streams)]
    out = Measures(memory=_memory(store, streams))
    records = [event.get("records") for event in store.last_events(["dropped"])]
    dropped = sum(count for count in records if isinstance(count, int))
    out.dropped_records = max(dropped, sum(rank.missing for rank in ranks))
    if not ranks:
        lost = [facts.get("signals_lost") or {} for facts in store.facts().values()]
        out.steps = None if any("steps" in signals for signals in lost) else 0
        return out
    out.steps = max(rank.steps for rank in ranks)
    out.duration_s = max(rank.duration_s for rank in ranks)
    rates = ("steps", "samples", "tokens")
    out.throughput = {f"{of}_per_s": _all(f"{of}_per_s", [rank.per_s[of] for rank in ranks]) for of in rates}
    out.reduced_ranks = _reduced(store, streams, out.throughput)
    names = ("p50", "p95", "p99")
    out.step_ms = {
        name: _all(f"step_{name}_ms", [rank.quantiles[i] for rank in ranks]) for i, name in enumerate(names)
    }
    out.time_share = _shares([rank.share for rank in ranks])
    if not any(store.totals(name, ("data_ms",))["data_ms"][0] for name in _ranks_of(streams)):
        _without_loaders(store, out)
    if not out.time_share["h2d"] and _copies_unseen(store):
        out.time_share["h2d"] = None
    counted = [store.totals(name, ("micro_batches", "backward_calls")) for name in _ranks_of(streams)]
    passes, batches = (max(of[key][0] for of in counted) for key in ("backward_calls", "micro_batches"))
    out.micro_batches = int(batches) or None
    if not out.time_share["forward"] and passes:
        out.time_share["forward"] = None  # something was trained, and no module was ever heard of
    return out


def _ranks_of(streams: Mapping[str, int]) -> list[str]:
    return [name for name, rows in streams.items() if name.startswith("rank/") and rows]


def _shares(of_ranks: Sequence[Values]) -> Values:
    """Means over ranks. A phase that one of them could not measure is null; what others had is `other`."""
    known = [share for share in of_ranks if share["other"] is not None]
    shares = {phase: _all(f"run_{phase}_ms", [share[phase] for share in known]) for phase in PHASES}
    for phase in PHASES:
        if any(share[phase] is None for share in known) and known:
            unknown = sum(share[phase] or 0.0 for share in known) / len(known)
            shares[phase], shares["other"] = None, (shares["other"] or 0.0) + unknown
    return shares


def _without_loaders(store: Store, out: Measures) -> None:
    """No loader was ever heard of: what waited for data is told from sampled stacks, or is not known."""
    share, events = out.time_share, store.last_events(["other_stack"])
    if share["other"] is None:
        return
    ranks = {event.get("rank"): event for event in events}.values() or [None]
    told = [waiting(event, share["other"], share["forward"] or 0.0) for event in ranks]
    known = [one.share for one in told if one.share is not None]
    share["data"] = sum(known) / len(known) if len(known) == len(told) else None
    share["other"] -= share["data"] or 0.0
    if share["data"] and (samples := sum(one.samples for one in told)):
        out.samples["data"] = samples


def _copies_unseen(store: Store) -> bool:
    """Whether a rank trained on a device with copies to it that nothing could time: they are in `other`."""
    devices = [facts["cuda"] for facts in store.facts().values() if isinstance(facts.get("cuda"), dict)]
    return any(not device.get("h2d_watched") for device in devices)


def _reduced(store: Store, streams: Iterable[str], throughput: Values) -> int:
    """How many ranks were told in averages only. Samples and tokens are then taken from those, for all ranks.

    Steps per second are those of ranks told step by step; a step has as many samples as on average over all.
    """
    reduced_events = store.last_events(["reduced"], limit=100_000)
    ranks = {rank for event in reduced_events for rank in event.get("ranks") or ()}
    if not ranks:
        return 0
    totals = [
        store.totals(name, ("steps", "all_samples", "all_tokens"))
        for name in streams
        if name.startswith("brief/")
    ]
    steps, rate = sum(of["steps"][0] for of in totals), throughput["steps_per_s"]
    for key in ("samples", "tokens"):
        amount = sum(of[f"all_{key}"][0] for of in totals)
        known = steps > 0 and amount > 0 and rate is not None
        throughput[f"{key}_per_s"] = amount / steps * rate * len(ranks) if known and rate else None
    return len(ranks - {rank for event in reduced_events for rank in event.get("full") or ()})


def _rank(store: Store, stream: str) -> _RankMeasures:
    """One rank's numbers; rates and shares are of the time between the first and the last step's end."""
    span = store.span(stream)
    assert span is not None
    keys = ("step_ms", "samples", "tokens", *(f"{phase}_ms" for phase in PHASES))
    totals = store.totals(stream, keys)
    first = store.rows(stream, keys, span["first_row"], span["first_row"])
    rest = {key: _without(totals[key], float(first[key][0])) for key in keys}
    wall_s = (
        span["last_t_s"] - span["first_t_s"] - _idle_s(store, stream, span["first_t_s"], span["last_t_s"])
    )
    numbered = span["last_row"] - span["first_row"]
    rows = span["rows"] - 1
    began_s = span["first_t_s"] - (_known(float(first["step_ms"][0])) or 0.0) / 1e3
    per_s = {
        "steps": numbered / wall_s if wall_s > 0 else None,
        "samples": _rate(rest["samples"], numbered, wall_s),
        "tokens": _rate(rest["tokens"], numbered, wall_s),
    }
    qs = store.quantiles(stream, "step_ms", (0.5, 0.95, 0.99), skip=1 if rows else 0)
    share = _share(rest, wall_s, complete=rows == numbered)
    steps = span["last_row"] + 1
    return _RankMeasures(steps, steps - span["rows"], span["last_t_s"] - began_s, per_s, qs, share)


def _idle_s(store: Store, stream: str, first_s: float, last_s: float) -> float:
    """Seconds that a notebook's kernel had nothing to do between two steps: nobody's time."""
    idle_events = [event for event in store.events(["idle"]) if f"rank/{event.get('rank')}" == stream]
    return sum(float(event["ms"]) / 1e3 for event in idle_events if first_s < event["t_s"] <= last_s)


def _without(total: tuple[float, int, float, float], first: float) -> tuple[float, int]:
    """Sum and count of a metric without the first row."""
    summed, count = total[:2]
    return (summed, count) if math.isnan(first) else (summed - first, count - 1)


def _rate(rest: tuple[float, int], steps: int, wall_s: float) -> float | None:
    """Per second of wall time; steps whose number is not known count like the others."""
    summed, count = rest
    return summed / count * steps / wall_s if count > 0 and wall_s > 0 else None


def _share(rest: Mapping[str, tuple[float, int]], wall_s: float, *, complete: bool) -> Values:
    """Shares of wall time, what nothing claims being `other`; of the time that is known where rows miss.

    A phase that was not measured in every step is null, and `other` has what it took.
    """
    claimed = {phase: max(rest[f"{phase}_ms"][0], 0.0) for phase in PHASES}
    steps = rest["step_ms"][1]
    unknown = [phase for phase in PHASES if rest[f"{phase}_ms"][1] < steps]
    claimed["other"] += sum(claimed.pop(phase) for phase in unknown)
    total_ms = sum(claimed.values())
    if total_ms <= 0 or wall_s <= 0:
        return _nulls(*PHASES)
    if complete:
        claimed["other"] += max(wall_s * 1e3 - total_ms, 0.0)
        total_ms = max(wall_s * 1e3, total_ms)
    return {phase: claimed[phase] / total_ms if phase in claimed else None for phase in PHASES}


def _memory(store: Store, streams: Iterable[str]) -> Values:
    """Peaks, of all ranks together. Fragmentation: the share of the reserved that lay in split blocks."""
    out = Measures().memory
    peaks: dict[str, list[float | None]] = {
        key: [] for key in ("tree_pss_mb", "rss_mb", "cuda_peak_mb", "cuda_reserved_mb")
    }
    reserved = split = 0.0
    for stream in streams:
        if not stream.startswith(("proc/", "cuda/")):
            continue
        totals = store.totals(stream, [*peaks, "cuda_split_mb"])
        for key in peaks:
            peaks[key].append(totals[key][3])
        if totals["cuda_split_mb"][1]:
            reserved, split = reserved + totals["cuda_reserved_mb"][0], split + totals["cuda_split_mb"][0]
    most = {key: _all(key, values) or None for key, values in peaks.items()}
    out["rss_mb"] = most["tree_pss_mb"] or most["rss_mb"]
    out["cuda_allocated_mb"], out["cuda_reserved_mb"] = most["cuda_peak_mb"], most["cuda_reserved_mb"]
    out["cuda_fragmentation"] = split / reserved if reserved else None
    return out


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _all(key: str, values: Iterable[float | None]) -> float | None:
    """What all ranks' values of a metric make together; None where no rank has one."""
    return _known(combine(key, (value for value in values if value is None or math.isfinite(value))))


def quick_measures(store: Store) -> dict[str, Any]:
    """Steps, steps per second and duration of a run, without its quantiles; quick. Raises StoreError."""
    best: dict[str, Any] = {"steps": 0, "steps_per_s": None, "duration_s": None}
    for stream in store.streams():
        span = store.span(stream) if stream.startswith("rank/") else None
        if span is not None and span["last_row"] + 1 > best["steps"]:
            wall_s = span["last_t_s"] - span["first_t_s"]
            numbered = span["last_row"] - span["first_row"]
            best = {
                "steps": span["last_row"] + 1,
                "steps_per_s": numbered / wall_s if wall_s > 0 else None,
                "duration_s": wall_s,
            }
    return best
