"""JSON that every reader takes: no NaN, no Infinity."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

loads = json.loads


def dumps(value: Any, **_: Any) -> str:
    """Encode compactly. NaN and ±infinity become null, arrays lists, anything unknown its text.

    Also stands in for the `json` module where Socket.IO encodes, which is why further arguments are
    taken and ignored.
    """
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError):
        return json.dumps(plain(value), allow_nan=False, separators=(",", ":"))


def plain(value: Any) -> Any:
    """The same value made of what JSON has."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value)
