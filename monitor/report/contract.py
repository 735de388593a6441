"""The contract's form of a finding, there and back, and values as JSON can hold them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from monitor.diagnosis.course import Record
from monitor.diagnosis.finding import Finding, Gain

_FIELDS = {field.name for field in fields(Finding)} - {"gain", "ranks"}


def plain(value: Any) -> Any:
    """The same value in JSON's terms: null for what is not finite, lists for sequences, text for the rest."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return str(value)


def finding_form(record: Record) -> dict[str, Any]:
    """A record as CONTRACT.md lists it under `findings`."""
    finding, gain = record.finding, record.finding.gain
    form = {
        "code": finding.code,
        "severity": finding.severity,
        "title": finding.title,
        "cause": finding.cause,
        "evidence": finding.evidence,
        "advice": finding.advice,
        "snippet": finding.snippet,
        "gain": gain and {"speedup": gain.speedup, "share_of_step": gain.share_of_step, "basis": gain.basis},
        "ranks": finding.ranks,
        "first_step": finding.first_step,
        "last_step": finding.last_step,
        "raised_at_s": record.raised_at_s,
        "cleared_at_s": record.cleared_at_s,
        "location": finding.location,
    }
    result: dict[str, Any] = plain(form)
    return result


def record_of(form: Mapping[str, Any]) -> Record:
    """The record behind a form. Raises KeyError or TypeError where it is none."""
    known = {name: form[name] for name in _FIELDS if name in form}
    gain = form.get("gain")
    told = None if gain is None else Gain(gain["share_of_step"], gain["speedup"], gain["basis"])
    finding = Finding(**known, gain=told, ranks=tuple(form.get("ranks") or ()))
    return Record(finding, form["raised_at_s"], form.get("cleared_at_s"))
