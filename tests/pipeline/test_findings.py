"""Findings as the page draws them: sorted, worded and judged by the hub."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

from monitor.diagnosis.core.doctor import curves, discover
from monitor.diagnosis.core.finding import Finding, gain_from_share
from monitor.diagnosis.core.lifecycle import Record
from monitor.pipeline.findings import drawn, time_left
from monitor.run_state import RunState
from monitor.schema import METRICS

STARVED = Finding(
    "data_starvation", "warning", "Training waits for data", "num_workers=0",
    {"wait_ms_p95": 12_000.0, "hideable_share": 0.25, "rhythm_batches": float("nan")},
    gain=gain_from_share(0.25, "a quarter"), first_step=5, last_step=1204,
)  # fmt: skip
STALLED = Finding("stall", "critical", "No progress", "stuck")
STATE = cast(RunState, SimpleNamespace(steps=1000, now_s=3600.0))


def test_the_gravest_comes_first():
    """Nobody sorts on the page."""
    told = drawn([Record(STARVED, 1.0), Record(STALLED, 2.0)])
    assert [one["code"] for one in told] == ["stall", "data_starvation"]


def test_a_finding_is_worded_and_judged():
    """Rows of evidence with units, how sure it is, and the metric that shows it; all of it is JSON."""
    (told,) = drawn([Record(STARVED, 1.0)])
    assert told["evidence_rows"] == [
        {
            "label": "wait p95", "value": "12", "unit": "s",
            "i18n": ["{what} {which}", {"what": "wait", "which": "p95"}],
        },
        {"label": "hideable share", "value": "25", "unit": "%"},
        {"label": "rhythm batches", "value": None, "unit": ""},
    ]  # fmt: skip
    assert (told["id"], told["confidence"]["level"]) == ("data_starvation/num_workers=0", "high")
    assert tuple(told["curve"]) == ("run", "data_share")
    assert json.loads(json.dumps(told, allow_nan=False))["evidence"]["rhythm_batches"] is None


def test_the_identity_does_not_change_with_numbers_or_ranks():
    """A card stays where it is while its finding is renewed."""
    renewed = Finding("stall", "warning", "No progress", "stuck", {"stalled_s": 3}, ranks=(1, 2))
    assert drawn([Record(renewed, 1.0)])[0]["id"] == drawn([Record(STALLED, 1.0)])[0]["id"]


def test_curves_are_metrics_that_there_are():
    """Of the schema, by origin and key."""
    known = {(metric.origin, metric.key) for metric in METRICS}
    assert {code: curve for code, curve in curves().items() if curve not in known} == {}
    assert set(curves()) < {detector.code for detector in discover()}


def time(said: str, findings: list[Finding], **more: Any) -> dict[str, Any]:
    return time_left(STATE, {"key": said}, findings, more.get("planned"), live=more.get("live", True))


def test_the_saving_is_that_of_the_verdict_s_finding():
    """With its template, so that it can be said in another language."""
    told = time("finding_gain", [STARVED], planned=4000)
    assert told["remaining_s"] == 10_800
    assert told["saving"]["text"] == "That saves 45 min of the remaining 3 h."
    assert told["saving"]["i18n"][1] == {"saved": "45 min", "left": "3 h"}


def test_a_run_that_is_over_has_nothing_left():
    """Then it is what was lost."""
    told = time("finding_gain", [STARVED], planned=4000, live=False)
    assert (told["remaining_s"], told["saving"]["text"]) == (None, "It has cost 15 min of 1 h so far.")


def test_where_the_verdict_promises_nothing_nothing_is_saved():
    """However many findings stand."""
    assert time("healthy", []) == {"remaining_s": None, "saving": None}
    assert time("stalled", [STARVED, STALLED])["saving"] is None
