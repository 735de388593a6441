"""Evidence as a person reads it: names that carry their unit become a label and a value with it.

The same as the page does in `static/findings/evidence.js`.
"""

from __future__ import annotations

import json
import re
from typing import Any

from monitor.exports.language import Words
from monitor.report.text import number

_UNITS = {
    "per_s": "1/s", "ms": "ms", "mb": "MB", "pct": "%", "percent": "%", "mhz": "MHz", "cores": "cores",
    "us": "µs", "s": "s", "w": "W", "c": "°C",
}  # fmt: skip
#: The unit is the name's last word, or stands before which quantile it is: wait_ms, wait_ms_p95.
_WITH_UNIT = re.compile(rf"(.+?)_({'|'.join(_UNITS)})((?:_p\d+|_min|_max|_mean)?)\Z")
_SHARE = re.compile(r"(^|_)share(_|$)")
#: Characters of one value.
MAX_TEXT = 160


def shown(key: str, value: Any, words: Words) -> tuple[str, str | None]:
    """Label and value of one entry; the value is None where it was not measured."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _label(key, words), None if value is None else _clip(_text(value, words))
    if _SHARE.search(key):
        return _label(key, words), f"{value * 100:.{1 if 0 < value < 0.0995 else 0}f} %"
    split = _WITH_UNIT.match(key)
    if split is None:
        return _label(key, words), number(value)
    labels = [_label(part, words) for part in (split[1], split[3]) if part]
    return " ".join(labels), f"{number(value)} {words.word(_UNITS[split[2]])}"


def _label(key: str, words: Words) -> str:
    return words.word(key.replace("_", " ").strip())


def _text(value: Any, words: Words) -> str:
    if isinstance(value, bool):
        return words.t("yes") if value else words.t("no")
    if isinstance(value, list):
        return ", ".join(number(v) if isinstance(v, int | float) else str(v) for v in value)
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return words.word(value)


def _clip(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"
