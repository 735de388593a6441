"""Align: step time and loss of several runs on one axis, and the loss of two where both have been."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from monitor.compare.side import Side
from monitor.compare.statistics import Steps

#: Points of one curve.
POINTS = 300
#: A loss is the mean over so many steps around a point: single batches scatter.
AROUND = 10


def curves(sides: Sequence[Side], align: str) -> list[dict[str, Any]]:
    """For each run `x` (the middle of each point: a step's number, or seconds of training), and `step_ms` and
    `loss` there, null where they were not measured. At most POINTS points each, all of one width.
    """
    axes = [_axis(side, align) for side in sides]
    most = max((float(axis[-1]) for axis in axes if axis.size), default=0.0)
    width = most / POINTS or 1.0
    if align == "step":
        width = max(width, 1.0)
    return [_curve(side, axis, width) for side, axis in zip(sides, axes, strict=True)]


def losses(before: Side, after: Side, align: str) -> dict[str, Any]:
    """`loss` (the newest of both) and `loss_at`: `{"step" or "time_s": where, "loss": [both]}`.

    Where is the last step, or the last moment, that both have reached and know their loss of; null where
    there is none.
    """
    sides = (before, after)
    known = [np.flatnonzero(np.isfinite(side.columns["loss"])) for side in sides]
    newest = [_around(side, rows, None) for side, rows in zip(sides, known, strict=True)]
    key = "step" if align == "step" else "time_s"
    if not (known[0].size and known[1].size):
        return {"loss": newest, "loss_at": None}
    axes = [_axis(side, align)[rows] for side, rows in zip(sides, known, strict=True)]
    where = min(float(axis[-1]) for axis in axes)
    if any(axis[0] > where for axis in axes):
        return {"loss": newest, "loss_at": None}
    there = [
        _around(side, rows, int(np.searchsorted(axis, where, "right")) - 1)
        for side, rows, axis in zip(sides, known, axes, strict=True)
    ]
    return {"loss": newest, "loss_at": {key: int(where) if align == "step" else where, "loss": there}}


def _axis(side: Side, align: str) -> Steps:
    """Step numbers, or seconds since the run's first step began."""
    if align == "step" or not side.columns["t_s"].size:
        return side.columns["row"]
    ends_s, first_ms = side.columns["t_s"], side.columns["step_ms"][0]
    began: Steps = ends_s - ends_s[0] + (first_ms / 1e3 if np.isfinite(first_ms) else 0.0)
    return began


def _around(side: Side, rows: Any, at: int | None) -> float | None:
    """Mean loss of the AROUND known steps that end with number `at` of `rows`, or with the last."""
    if not rows.size:
        return None
    chosen = rows[: None if at is None else at + 1][-AROUND:]
    return float(side.columns["loss"][chosen].mean()) if chosen.size else None


def _curve(side: Side, axis: Steps, width: float) -> dict[str, Any]:
    bins = np.minimum((axis / width).astype(np.int64), POINTS - 1)
    held = np.unique(bins)
    out: dict[str, Any] = {"run": side.report["run"], "x": [float((i + 0.5) * width) for i in held]}
    for key in ("step_ms", "loss"):
        values = side.columns[key]
        known = np.isfinite(values)
        counts = np.bincount(bins[known], minlength=POINTS)[held]
        sums = np.bincount(bins[known], weights=values[known], minlength=POINTS)[held]
        out[key] = [float(s / c) if c else None for s, c in zip(sums, counts, strict=True)]
    return out
