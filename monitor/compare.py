"""Compare: two runs → what was changed, what it changed, and which predictions came true."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor import report
from monitor.schema import PHASES
from monitor.store import FILE_NAME, Store

#: A promise is kept when the next run reaches this part of it (the contract).
KEPT = 0.85
#: Share of a run's first steps that is left out as warm-up, and how many at most.
WARM_UP_SHARE, WARM_UP_STEPS = 0.05, 50
#: Batches of consecutive steps whose means are taken as independent: the method of batch means, which
#: respects that neighbouring steps resemble each other (Law and Kelton, Simulation Modeling and Analysis).
BATCHES = 20
#: Fewer steps than this on either side give no interval.
LEAST_STEPS = 40
#: Two-sided 95 % quantile of Student's t for 19 degrees of freedom and up, as used for BATCHES batches.
T_95 = 2.093
#: Steps read of each run; the newest.
STEPS_READ = 200_000
#: Facts that differ between any two runs and say nothing.
NEVER = frozenset({"location", "call", "platform"})

Steps = NDArray[np.float64]


def compare(baseline: Path, candidate: Path) -> dict[str, Any]:
    """Compare two runs, each given by its folder.

    Returns:
        `baseline`, `candidate` (run, name, status, steps), `changed` (name, before, after, of
        configuration and facts), `speed` (steps per second of both, `speedup`, `low` and `high` of its
        95 % interval, null where there are too few steps), `memory`, `phases` (mean ms a step, both),
        `loss`, and `predictions` (code, cause, promised, reached, verdict).

    Raises:
        StoreError: one of them cannot be read.
    """
    sides = [_Side(baseline), _Side(candidate)]
    before, after = sides
    speed = _speed(before, after)
    found: dict[str, Any] = {
        "schema": 1,
        "baseline": before.head(),
        "candidate": after.head(),
        "changed": _changed(before.facts, after.facts),
        "speed": speed,
        "memory": {
            "rss_mb": [side.report["memory"]["rss_mb"] for side in sides],
        },
        "phases": {phase: [side.phase_ms.get(phase) for side in sides] for phase in PHASES},
        "loss": [side.last_loss for side in sides],
        "predictions": _predictions(before, after, speed["speedup"]),
    }
    return found


class _Side:
    """One of the two runs."""

    def __init__(self, folder: Path) -> None:
        self.report = report.build(folder)
        with Store(folder / FILE_NAME) as store:
            self.facts = _flat(store.facts(), store.meta())
            rows = store.streams().get("rank/0", 0)
            keys = ["step_ms", "loss", *(f"{phase}_ms" for phase in PHASES)]
            span = store.span("rank/0") if rows else None
            last = span["last_row"] if span else -1
            columns = store.rows("rank/0", keys, max(0, last - STEPS_READ), last) if span else {}
        self.step_ms = _steady(columns.get("step_ms"))
        self.phase_ms = {phase: _mean(_steady(columns.get(f"{phase}_ms"))) for phase in PHASES}
        losses = np.asarray(columns.get("loss", ()), dtype=np.float64)
        losses = losses[np.isfinite(losses)]
        self.last_loss = float(losses[-10:].mean()) if losses.size else None

    def head(self) -> dict[str, Any]:
        """Which run it is."""
        return {key: self.report[key] for key in ("run", "name", "status", "steps", "world_size")}


def _steady(column: Any) -> Steps:
    values = np.asarray(() if column is None else column, dtype=np.float64)
    values = values[np.isfinite(values)]
    return values[min(int(values.size * WARM_UP_SHARE) + 1, WARM_UP_STEPS) :]


def _mean(values: Steps) -> float | None:
    return float(values.mean()) if values.size else None


def _speed(before: _Side, after: _Side) -> dict[str, float | None]:
    means = [_mean(side.step_ms) for side in (before, after)]
    known = {
        "baseline_steps_per_s": 1e3 / means[0] if means[0] else None,
        "candidate_steps_per_s": 1e3 / means[1] if means[1] else None,
        "speedup": means[0] / means[1] if means[0] and means[1] else None,
        "low": None,
        "high": None,
    }
    errors = [_relative_error(side.step_ms) for side in (before, after)]
    ratio = known["speedup"]
    if ratio is not None and errors[0] is not None and errors[1] is not None:
        # On the logarithm the errors of numerator and denominator add up, and the interval stays positive.
        width = T_95 * math.hypot(errors[0], errors[1])
        known["low"], known["high"] = ratio * math.exp(-width), ratio * math.exp(width)
    return known


def _relative_error(steps: Steps) -> float | None:
    """Standard error of the mean ÷ the mean, by batch means; None for too few steps."""
    if steps.size < LEAST_STEPS:
        return None
    means = np.array([part.mean() for part in np.array_split(steps, BATCHES)])
    return float(means.std(ddof=1) / math.sqrt(BATCHES) / means.mean())


def _flat(facts: Mapping[str, Mapping[str, Any]], meta: Mapping[str, Any]) -> dict[str, Any]:
    """Configuration and facts of the first rank as dotted names -> plain values."""
    flat: dict[str, Any] = {}

    def add(name: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, item in value.items():
                if key not in NEVER:
                    add(f"{name}.{key}", item)
        else:
            flat[name] = value

    for rank in sorted(facts, key=str)[:1]:
        for name, value in facts[rank].items():
            add(name, value)
    for name in ("config", "argv", "world_size"):
        add(name, meta.get(name))
    return flat


#: Facts that are counted during training, so they differ with its length alone.
_COUNTED = (
    "precision.backward", "precision.clips", "precision.scaler_skips", "compile.", "ddp.", "loader_seen",
)  # fmt: skip


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = sorted({*before, *after})
    return [
        {"name": name, "before": before.get(name), "after": after.get(name)}
        for name in names
        if before.get(name) != after.get(name) and not name.startswith(_COUNTED)
    ]


def _predictions(before: _Side, after: _Side, reached: float | None) -> list[dict[str, Any]]:
    """Each promise of the baseline beside what the candidate reached, where its cause is gone."""
    still = {(finding["code"], finding["cause"]) for finding in after.report["findings"]}
    rows = []
    for finding in before.report["findings"]:
        promised = (finding.get("gain") or {}).get("speedup")
        if promised is None:
            continue
        gone = (finding["code"], finding["cause"]) not in still
        rows.append(
            {
                "code": finding["code"],
                "cause": finding["cause"],
                "title": finding["title"],
                "promised": promised,
                "reached": reached if gone else None,
                "verdict": _verdict(promised, reached) if gone else "not followed",
            }
        )
    return rows


def _verdict(promised: float, reached: float | None) -> str:
    if reached is None:
        return "unknown"
    if reached >= KEPT * promised:
        return "confirmed"
    return "less than promised" if reached > 1.0 else "refuted"
