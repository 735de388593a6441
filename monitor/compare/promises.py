"""Promises: what each finding of the baseline said its repair would bring, and what it brought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from monitor.compare.side import MOST_LOST
from monitor.diagnosis.core.ranking import ranked_forms

#: A promise is kept when the next run reaches this part of it (the contract).
KEPT = 0.85

Report = Mapping[str, Any]


def promises(before: Report, after: Report, speed: Mapping[str, Any], changed: bool) -> list[dict[str, Any]]:
    """One row for each finding that stood at the baseline's end, gravest first.

    Args:
        before, after: the reports.
        speed: as `speed` compared them.
        changed: whether anything in the configuration did. A cause that is worded anew is not a cause
            removed.

    Returns:
        `code`, `cause`, `title`, `promised` (null: the finding promised no speed), `reached` (null where it
        was not followed), `low`, `high`, `verdict` and `together`: codes of other findings with a promise
        that are gone too, for then nobody can tell which of them brought how much.

        Verdicts: "confirmed", "less than promised", "refuted"; "cannot tell" (the interval holds the promise
        kept and not kept); "not followed" (the finding stands in the candidate too), "not checked"
        (the candidate could not tell); and, of findings without a promise, "gone".
    """
    rows = ranked_forms(standing(before))
    states = [_state(finding, after, changed) for finding in rows]
    gone = [f["code"] for f, state in zip(rows, states, strict=True) if state == "gone" and _promised(f)]
    return [_row(finding, state, speed, gone) for finding, state in zip(rows, states, strict=True)]


def standing(report: Report) -> list[Mapping[str, Any]]:
    """Findings that were not over when the run ended."""
    return [finding for finding in report["findings"] if finding.get("cleared_at_s") is None]


def judge(promised: float, speed: Mapping[str, Any]) -> str:
    """The verdict on a promise that was followed."""
    reached, low, high = speed["speedup"], speed["low"], speed["high"]
    if reached is None or max(speed["lost_share"]) >= MOST_LOST:
        return "cannot tell"
    kept = reached >= KEPT * promised
    if low is None or high is None:
        return _plain(kept, reached)
    if high < 1:
        return "refuted"
    if low > 1:
        return "confirmed" if kept else _short(high, promised, "less than promised")
    return _short(high, promised, "refuted")


def _short(high: float, promised: float, word: str) -> str:
    """Less was reached than promised, but where chance took the rest the promise was kept all the same."""
    return "cannot tell" if high >= promised else word


def _plain(kept: bool, reached: float) -> str:
    """Without an interval the number alone has to do."""
    if reached <= 1:
        return "refuted"
    return "confirmed" if kept else "less than promised"


def _row(
    finding: Mapping[str, Any], state: str, speed: Mapping[str, Any], gone: Sequence[str]
) -> dict[str, Any]:
    promised = _promised(finding)
    followed = state == "gone" and promised is not None
    verdict = judge(promised, speed) if followed and promised is not None else state
    others = [code for code in gone if code != finding["code"]] if followed else []
    return {
        "code": finding["code"],
        "severity": finding["severity"],
        "cause": finding["cause"],
        "title": finding["title"],
        "i18n": finding.get("i18n"),
        "promised": promised,
        "reached": speed["speedup"] if followed else None,
        "low": speed["low"] if followed else None,
        "high": speed["high"] if followed else None,
        "verdict": verdict,
        "together": sorted(set(others)),
    }


def _state(finding: Mapping[str, Any], after: Report, changed: bool) -> str:
    """ "gone", "not followed", or "not checked" where the candidate could not look."""
    causes = [other["cause"] for other in standing(after) if other["code"] == finding["code"]]
    if finding["cause"] in causes or (causes and not changed):
        return "not followed"
    unchecked = {entry["code"] for entry in after["not_checked"]}
    return "not checked" if finding["code"] in unchecked and not causes else "gone"


def _promised(finding: Mapping[str, Any]) -> float | None:
    promised = (finding.get("gain") or {}).get("speedup")
    return float(promised) if isinstance(promised, int | float) else None
