"""The contract's form of a finding, there and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from monitor.diagnosis.core.finding import Finding, Gain
from monitor.diagnosis.core.lifecycle import Record
from monitor.diagnosis.core.messages import Pair, again, pair_of
from monitor.strict_json import plain

_FIELDS = {field.name for field in fields(Finding)} - {"gain", "ranks"}

#: What a finding says in sentences; all but `basis` are fields of it.
_TEXT_FIELDS = ("title", "cause", "advice")


def finding_form(record: Record) -> dict[str, Any]:
    """A record as CONTRACT.md lists it under `findings`.

    Where sentences have parameters, `i18n` holds their templates: field (`basis` is the gain's) -> pair.
    """
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
    pairs = _pairs(finding)
    return {**result, "i18n": plain(pairs)} if pairs else result


def _pairs(finding: Finding) -> dict[str, Pair]:
    texts = {name: getattr(finding, name) for name in _TEXT_FIELDS}
    if finding.gain is not None:
        texts["basis"] = finding.gain.basis
    return {name: pair for name, text in texts.items() if (pair := pair_of(text)) is not None}


def without_templates(texts: Any) -> Any:
    """A finding's form, a verdict or a reason without its templates, which only pages need."""
    if isinstance(texts, Mapping):
        return {key: value for key, value in texts.items() if key != "i18n"}
    return texts


def record_of(form: Mapping[str, Any]) -> Record:
    """The record behind a form. Raises KeyError or TypeError where it is none."""
    known = {name: form[name] for name in _FIELDS if name in form}
    gain, pairs = form.get("gain"), form.get("i18n") or {}
    known.update({name: again(known[name], pairs.get(name)) for name in _TEXT_FIELDS if name in known})
    restored_gain = gain and Gain(
        gain["share_of_step"], gain["speedup"], again(gain["basis"], pairs.get("basis"))
    )
    finding = Finding(**known, gain=restored_gain, ranks=tuple(form.get("ranks") or ()))
    return Record(finding, form["raised_at_s"], form.get("cleared_at_s"))
