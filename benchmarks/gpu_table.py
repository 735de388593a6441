"""The table of `gpu_check`: our figures beside others', and whether they agree. Pure but for `write`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal

#: What the table stands between in the document.
BEGIN, END = "<!-- gpu_check: begin -->", "<!-- gpu_check: end -->"


@dataclass(frozen=True)
class Row:
    """One figure.

    Attributes:
        ours, other: the same figure measured by us and by somebody else; None: not measured.
        source: who that is.
        tolerance: how far they may be apart, as a share of the other's.
        sense: whether ours must be the same, or that at most, or at least.
    """

    figure: str
    ours: float | str | None
    other: float | str | None
    source: str
    tolerance: float = 0.0
    sense: Literal["same", "most", "least"] = "same"

    @property
    def holds(self) -> bool | None:
        """Whether they agree; None where one of them was not measured."""
        ours, other = self.ours, self.other
        if ours is None or other is None:
            return None
        if isinstance(ours, str) or isinstance(other, str):
            return ours == other
        if math.isnan(ours) or math.isnan(other):
            return None
        room, apart = self.tolerance * abs(other) + 1e-9, ours - other
        return {"same": abs(apart) <= room, "most": apart <= room, "least": -apart <= room}[self.sense]


def found_row(twin: str, wanted: Sequence[str], found: Sequence[str]) -> Row:
    """Whether a script got the findings that it must have. In brackets are those that are information.

    Any other finding that is no information is one too many, and shown.
    """
    named = {code.strip("()") for code in found}
    loud = {code for code in found if not code.startswith("(")}
    expected = ", ".join(wanted) or "nothing"
    ok = set(wanted) <= named and loud <= set(wanted)
    ours = expected if ok else ", ".join(found) or "nothing"
    return Row(f"findings of {twin}", ours, expected, "the script")


_SENSES = {"same": "", "most": "at most ", "least": "at least "}


def render(rows: Iterable[Row]) -> str:
    """The table as Markdown."""
    lines = ["| figure | ours | other | measured by | agree |", "| --- | --- | --- | --- | --- |"]
    verdicts = {True: "yes", False: "**no**", None: "not measured"}
    for row in rows:
        cells = [
            row.figure,
            _text(row.ours),
            _SENSES[row.sense] + _text(row.other),
            row.source,
            verdicts[row.holds],
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _text(value: float | str | None) -> str:
    if value is None or isinstance(value, str):
        return "–" if value is None else value
    return "–" if math.isnan(value) else f"{value:.4g}"


def write(path: Path, rows: Sequence[Row], about: dict[str, Any], today: date | None = None) -> None:
    """Put the table, and on what and when it was measured, in the place of what stands between the marks.

    Raises:
        ValueError: the document has no such place.
    """
    text = path.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"{path} lacks the marks that the table stands between")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    agree = sum(row.holds is True for row in rows)
    told = sum(row.holds is not None for row in rows)
    day = (today or date.today()).isoformat()
    line = f"{about['name']}, torch {about['torch']}, CUDA {about['cuda']}, {day}: {agree} of {told} agree."
    path.write_text(f"{head}{BEGIN}\n\n{line}\n\n{render(rows)}\n\n{END}{tail}")
