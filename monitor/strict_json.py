"""JSON that every reader takes: no NaN, no Infinity. The one place that decides what stands for them.

What was not measured is null to whoever reads a report or a page. Between our own parts (tape, batch,
store) a number that is not finite is worth knowing: there it is `marks`, the texts "NaN", "Infinity" and
"-Infinity". Charts have a rule of their own, over whole arrays: `monitor.store.pack.plain`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

loads = json.loads


def dumps(value: Any, *, marks: bool = False, **_: Any) -> str:
    """Encode compactly; what JSON does not have becomes what `plain` makes of it.

    Also stands in for the `json` module where Socket.IO encodes, which is why further arguments are
    taken and ignored.
    """
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError):
        return json.dumps(plain(value, marks=marks), allow_nan=False, separators=(",", ":"))


def plain(value: Any, *, marks: bool = False) -> Any:
    """The same value made of what JSON has: arrays and sets as lists, anything unknown as its text.

    Args:
        value: anything.
        marks: NaN and ±infinity as texts; else null.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else _mark(value) if marks else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item, marks=marks) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item, marks=marks) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist(), marks=marks)
    return str(value)


def _mark(value: float) -> str:
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
