"""Quantities as a person reads them: numbers, lengths of time, and values with the unit of their name."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Last word of a name -> unit.
_UNITS = {
    "per_s": "/s", "ms": "ms", "mb": "MB", "pct": "%", "percent": "%", "mhz": "MHz", "cores": "cores",
    "us": "µs", "s": "s", "w": "W", "c": "°C",
}  # fmt: skip
#: The unit is the name's last word, or stands before what kind of value it is: wait_ms, wait_ms_p95.
WITH_UNIT = re.compile(rf"(.+?)_({'|'.join(_UNITS)})((?:_p\d+|_min|_max|_mean)?)\Z")
SHARE = re.compile(r"(^|_)share(_|$)")
#: From this many on, a value is told in the next larger unit.
_LARGE = 10_000
_LARGER = {"ms": "s", "MB": "GB"}


@dataclass(frozen=True)
class Quantity:
    """A number taken apart.

    Attributes:
        name: what it is of, without unit and kind ("wait"); words are joined by "_".
        kind: which of several values ("p95", "max"); "" where the name says none.
        value: the number as text.
        unit: "ms", "MB", "%", "/s" …; "" for a plain count.
    """

    name: str
    kind: str
    value: str
    unit: str


def quantity(name: str, value: float) -> Quantity:
    """The unit comes from the name: `wait_ms_p95` is in milliseconds, a share of one becomes per cent."""
    if SHARE.search(name):
        return Quantity(name, "", f"{value * 100:.{1 if 0 < value < 0.0995 else 0}f}", "%")
    found = WITH_UNIT.match(name)
    if found is None:
        return Quantity(name, "", number(value), "")
    unit = _UNITS[found[2]]
    if abs(value) >= _LARGE and unit in _LARGER:
        value, unit = value / 1000, _LARGER[unit]
    return Quantity(found[1], found[3].removeprefix("_"), number(value), unit)


def number(value: float | None) -> str:
    """Three digits that matter: "20.1", "643", "0.051"; "–" for None."""
    if value is None:
        return "–"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def duration(seconds: float | None) -> str:
    """ "41 s", "3 min 20 s", "2 h 5 min", "3 d 4 h"; "–" for None."""
    if seconds is None:
        return "–"
    if seconds < 100:
        return f"{seconds:.3g} s"
    rounded = round(seconds)
    for size, unit, part, smaller in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if rounded >= size:
            rest = rounded % size // part
            return f"{rounded // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{rounded} s"
