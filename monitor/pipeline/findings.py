"""Findings as a page draws them: in their order, worded, with how sure they are and what shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from monitor.diagnosis.core.confidence import confidence
from monitor.diagnosis.core.doctor import curves
from monitor.diagnosis.core.evidence import evidence_rows
from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.lifecycle import Record
from monitor.diagnosis.core.messages import pair_of
from monitor.diagnosis.core.ranking import ranked, ranked_records
from monitor.diagnosis.core.saving import remaining_s, saving
from monitor.report.contract import finding_form
from monitor.run_state import RunState
from monitor.strict_json import plain


def drawn(records: Iterable[Record]) -> list[dict[str, Any]]:
    """The report's form of each finding (see `finding_form`), gravest first, and besides:

    `id` stays the same while the finding lives; `evidence_rows` are `label`, `value` (null: not measured),
    `unit`; `confidence` is `level` and `why`; `curve` is [origin, key] of the metric that shows it, or null.
    Where a label or a reason has parameters, `i18n` is its pair.
    """
    shown = curves()
    return [
        {
            **finding_form(record),
            "id": "/".join(record.finding.identity),
            "evidence_rows": [
                {"label": row.label, "value": row.value, "unit": row.unit, **_pair(row.label)}
                for row in evidence_rows(plain(record.finding.evidence))
            ],
            "confidence": _sure(record),
            "curve": shown.get(record.finding.code),
        }
        for record in ranked_records(records)
    ]


def _sure(record: Record) -> dict[str, Any]:
    certainty = confidence(record.finding)
    return {"level": certainty.level, "why": certainty.why, **_pair(certainty.why)}


def _pair(text: str) -> dict[str, Any]:
    pair = pair_of(text)
    return {} if pair is None else {"i18n": pair}


def time_left(
    state: RunState,
    verdict: Mapping[str, Any],
    standing: Sequence[Finding],
    planned: int | None,
    *,
    live: bool,
) -> dict[str, Any]:
    """What is left of a run, and what the finding that its verdict promises something of costs.

    Args:
        verdict: the verdict.
        standing: findings that stand, oldest first.
        planned: steps that the run means to take, where that is known.
        live: whether it goes on.

    Returns:
        `remaining_s`, null where nobody knows; `saving`: `text` and, where it has one, `i18n`; null where
        there is nothing to say.
    """
    left_s = remaining_s(state.steps, planned, state.now_s) if live else None
    first = ranked(standing)[0] if verdict["key"] == "finding_gain" else None
    text = saving(first.gain if first else None, left_s, state.now_s)
    return {"remaining_s": left_s, "saving": {"text": text, **_pair(text)} if text else None}
