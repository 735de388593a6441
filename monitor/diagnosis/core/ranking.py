"""Ranking: what hurts most comes first. The one order of findings, for reports, exports and the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from monitor.diagnosis.core.finding import SEVERITIES, Finding
from monitor.diagnosis.core.lifecycle import Record

Form = Mapping[str, Any]
Weight = tuple[int, float]


def gravity(severity: str) -> int:
    """0 for the most severe; a severity that is not known here comes last."""
    known = SEVERITIES[::-1]
    return known.index(severity) if severity in known else len(known)


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """By severity, then by what removing them saves; those without a gain last, equal ones as they came."""
    return sorted(findings, key=_weight)


def ranked_records(records: Iterable[Record]) -> list[Record]:
    """As `ranked`: those that stand first, then those that are over, the older of two equal ones first."""
    return sorted(
        records,
        key=lambda record: (
            record.cleared_at_s is not None,
            *_weight(record.finding),
            record.raised_at_s,
            record.finding.identity,
        ),
    )


def ranked_forms(forms: Iterable[Form]) -> list[Form]:
    """As `ranked_records`, of findings in the form of a report. Keys that are missing count as unknown."""
    return sorted(
        forms,
        key=lambda form: (
            form.get("cleared_at_s") is not None,
            gravity(str(form.get("severity"))),
            -_saved((form.get("gain") or {}).get("share_of_step")),
            form.get("raised_at_s") or 0.0,
            (str(form.get("code")), str(form.get("cause"))),
        ),
    )


def _weight(finding: Finding) -> Weight:
    return gravity(finding.severity), -_saved(finding.gain.share_of_step if finding.gain else None)


def _saved(share: float | None) -> float:
    return -1.0 if share is None else share
