"""Briefs: the ranks of one host in averages over about a second each, as their agent makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from monitor.run_state.columns import Array, Columns
from monitor.schema import BRIEF_STEP_BASE, PHASES, combine

Table = Mapping[str, Array]


def unfolded(
    t_s: Sequence[float] | Array, columns: Mapping[str, Sequence[float] | Array]
) -> dict[str, Array]:
    """A block's rows in plain terms.

    Returns:
        `rank` and `end` (steps taken, both int64), `end_s` (when the last of them ended, float64), and each
        column as it came. Empty where the block is not of this kind.
    """
    if not {"rank", "steps", "end_high", "end_low"} <= set(columns):
        return {}
    held = {key: np.asarray(values) for key, values in columns.items()}
    counts = np.stack([held[key] for key in ("rank", "steps", "end_high", "end_low")]).astype(np.float64)
    fit = np.isfinite(counts).all(axis=0) & (counts >= 0).all(axis=0)
    held = {key: values[fit] for key, values in held.items()}
    end = held["end_high"].astype(np.int64) * BRIEF_STEP_BASE + held["end_low"].astype(np.int64)
    ago = np.nan_to_num(held["ago_s"].astype(np.float64)) if "ago_s" in held else 0.0
    end_s = np.asarray(t_s, np.float64)[fit] - ago
    return {**held, "rank": held["rank"].astype(np.int64), "end": end, "end_s": end_s}


def newest(columns: Columns, keys: Sequence[str]) -> dict[str, float]:
    """What a host's ranks' newest values make together; NaN where none has any."""
    table = columns.table()
    if "rank" not in table:
        return dict.fromkeys(keys, float("nan"))
    ranks = table["rank"][::-1]
    _, last = np.unique(ranks, return_index=True)
    out = {}
    for key in keys:
        values = table[key][::-1][last] if key in table else np.empty(0)
        out[key] = combine(key, values.tolist())
    return out


def phases(table: Table, t_s: Sequence[float]) -> list[tuple[int, str, float]]:
    """(rank, phase, since when) of each row that knows a phase; the rows were told at `t_s`."""
    if "phase" not in table or len(t_s) != len(table["rank"]):
        return []
    since = np.asarray(t_s) - np.nan_to_num(table.get("phase_for_s", np.zeros(len(t_s))))
    rows = zip(table["rank"].tolist(), table["phase"].tolist(), since.tolist(), strict=True)
    return [(rank, PHASES[int(at)], since_s) for rank, at, since_s in rows if 0 <= at < len(PHASES)]


def kept(columns: Columns) -> dict[str, Array]:
    """A host's rows in memory, as `unfolded` gives them."""
    table = columns.table()
    return unfolded(
        table["t_s"], {key: values for key, values in table.items() if key not in ("step", "t_s")}
    )
