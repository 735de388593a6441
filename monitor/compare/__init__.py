"""Compare: runs → what was changed, what it changed, and which promises came true.

`side` reads a run, `difference` says what was changed, `speed` what that brought and whether it can be told
from chance (`statistics`), `promises` which predictions came true, `align` makes curves on a common axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from monitor.compare.align import curves, losses
from monitor.compare.difference import differences
from monitor.compare.promises import KEPT, promises
from monitor.compare.settings import code
from monitor.compare.side import Side, read
from monitor.compare.speed import speed
from monitor.compare.text import lines
from monitor.runs import stamp
from monitor.schema import PHASES

__all__ = ["KEPT", "Side", "compare", "distance", "lines", "pair", "read", "side_by_side", "speed"]

#: Steps of each run that its distance to a baseline is taken from, the newest.
DISTANCE_STEPS = 20_000
#: Version of the comparison's form.
SCHEMA = 1


def compare(baseline: Path, candidate: Path) -> dict[str, Any]:
    """Compare two runs, each given by its folder; see `pair`. Raises StoreError."""
    return pair(read(baseline), read(candidate))


def distance(baseline: Path, run: Path) -> dict[str, Any]:
    """How fast `run`, which may go on, is against its baseline; see `speed`. Raises StoreError."""
    return speed(_lately(baseline, stamp(baseline)), _lately(run, stamp(run)))


@lru_cache(4)
def _lately(folder: Path, _stamp: object) -> Side:
    """The newest steps of a run, as long as its store is the same: pages ask every few seconds."""
    return read(folder, DISTANCE_STEPS)


def side_by_side(folders: Sequence[Path], align: str = "step") -> dict[str, Any]:
    """Compare the first of several runs with each of the others.

    Args:
        folders: two or more.
        align: "step" or "time"; what the curves have in common.

    Returns:
        `runs` (one head each), `align`, `comparisons` (one `pair` for each run but the first) and `curves`.

    Raises:
        StoreError: one of them cannot be read.
    """
    sides = [read(folder) for folder in folders]
    return {
        "schema": SCHEMA,
        "align": align,
        "runs": [side.head for side in sides],
        "comparisons": [pair(sides[0], side, align) for side in sides[1:]],
        "curves": curves(sides, align),
    }


def pair(before: Side, after: Side, align: str = "step") -> dict[str, Any]:
    """Two runs beside each other.

    Returns:
        `baseline` and `candidate` (run, name, status, …), `changed` (see `difference`), `code`
        (whether the script was edited), `speed` (see
        `speed`), `memory` (peaks in MB, both), `phases` (mean ms a step, both), `loss` (the newest, both),
        `loss_at` (see `align.losses`) and `predictions` (see `promises`).
    """
    sides = (before, after)
    changed, fast = differences(before, after), speed(before, after)
    return {
        "schema": SCHEMA,
        "baseline": before.head,
        "candidate": after.head,
        "changed": changed,
        "code": code(before, after),
        "speed": fast,
        "memory": {
            **{key: [side.report["memory"][key] for side in sides] for key in before.report["memory"]},
            "gpu_memory_used_mb": [side.gpu_mb for side in sides],
        },
        "phases": {phase: [side.mean(f"{phase}_ms") for side in sides] for phase in PHASES},
        "step_ms": [side.report["step_ms"] for side in sides],
        **losses(before, after, align),
        "predictions": promises(before.report, after.report, fast, bool(changed)),
    }
