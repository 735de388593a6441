"""Ranking: one order of findings, whichever form they have."""

from __future__ import annotations

import random
from typing import Any

import pytest

from monitor.diagnosis.core.finding import Finding, gain_from_share
from monitor.diagnosis.core.lifecycle import Record
from monitor.diagnosis.core.ranking import gravity, ranked, ranked_forms, ranked_records
from monitor.report.contract import finding_form


def record(
    code: str,
    severity: Any,
    share: float | None = None,
    raised_at_s: float = 1.0,
    cleared: float | None = None,
) -> Record:
    gain = None if share is None else gain_from_share(share, "")
    return Record(Finding(code, severity, "", "c", gain=gain), raised_at_s, cleared)


#: In the order that is wanted.
ORDER = [
    record("worst", "critical"),
    record("much", "warning", 0.4),
    record("little", "warning", 0.1),
    record("earlier", "warning", raised_at_s=1.0),
    record("later", "warning", raised_at_s=2.0),
    record("alike", "warning", raised_at_s=3.0),
    record("alike_too", "warning", raised_at_s=3.0),
    record("advice", "info", 0.9),
    record("over", "critical", 0.9, cleared=5.0),
]


@pytest.mark.parametrize("seed", range(5))
def test_what_hurts_most_comes_first(seed: int):
    """What stands, by severity, by what it saves, by age; what is over last, however it came."""
    shuffled = random.Random(seed).sample(ORDER, len(ORDER))
    assert ranked_records(shuffled) == ORDER


@pytest.mark.parametrize("seed", range(5))
def test_reports_and_records_have_the_same_order(seed: int):
    """A finding stands in the same place whether it comes from a live run or from a store."""
    forms = [finding_form(one) for one in random.Random(seed).sample(ORDER, len(ORDER))]
    assert [form["code"] for form in ranked_forms(forms)] == [one.finding.code for one in ORDER]


def test_equal_findings_keep_their_order():
    """Findings without a record have no age: they stay as they came, so that a list does not jump."""
    one, other = (Finding(code, "warning", "", "") for code in ("z", "a"))
    assert ranked([one, other]) == [one, other]
    assert ranked([other, one]) == [other, one]


def test_a_severity_that_is_not_known_comes_last():
    """A damaged store breaks nothing."""
    assert [gravity(word) for word in ("critical", "warning", "info", "apocalyptic")] == [0, 1, 2, 3]
    assert [form.get("severity") for form in ranked_forms([{}, {"severity": "info"}])] == ["info", None]


def test_the_list_that_came_in_is_left_alone():
    """Sorting makes a new list."""
    findings = [Finding("i", "info", "", ""), Finding("c", "critical", "", "")]
    ranked(findings)
    assert findings[0].code == "i"
