"""Evidence as a person reads it: each entry becomes a row of label, value and unit, ready to be drawn."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.quantities import number, quantity

#: Characters of one value (own).
MAX_TEXT = 160


@dataclass(frozen=True)
class EvidenceRow:
    """One entry of a finding's evidence.

    Attributes:
        label: what it is; a text with a template (see `message`) where it names a quantile too.
        value: as text, a word or a number; None where it was not measured.
        unit: "" where it has none; a word ("cores") or a sign.
    """

    label: str
    value: str | None
    unit: str = ""


def evidence_rows(evidence: Mapping[str, Any]) -> list[EvidenceRow]:
    """A finding's evidence, in its order."""
    return [_row(key, value) for key, value in evidence.items()]


def _row(key: str, value: Any) -> EvidenceRow:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return EvidenceRow(_label(key), None if value is None else _clip(_text(value)))
    measured = quantity(key, value)
    label = _label(measured.name)
    if measured.kind:
        label = message("{what} {which}", what=label, which=measured.kind)
    return EvidenceRow(label, measured.value, measured.unit)


def _label(key: str) -> str:
    return key.replace("_", " ").strip()


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(number(v) if isinstance(v, int | float) else str(v) for v in value)
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _clip(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"
