"""A finding as text."""

from __future__ import annotations

from monitor.bridges.finding_text import finding_text

FINDING = {"code": "c", "severity": "warning", "title": "slow", "cause": "why", "cleared_at_s": None}


def test_what_helps_is_in_it():
    """Severity, cause, place, advice, fix, and what it brings."""
    gain = {"speedup": 1.5, "basis": "hiding it"}
    text = finding_text({**FINDING, "location": "a.py:1", "advice": "do", "snippet": "x = 1", "gain": gain})
    for part in (
        "warning",
        "slow",
        "`c`",
        "why, at `a.py:1`",
        "do",
        "```\nx = 1\n```",
        "1.50 times",
        "hiding it",
    ):
        assert part in text


def test_what_is_not_known_leaves_no_hole():
    """No empty line, no None."""
    text = finding_text(FINDING)
    assert "None" not in text
    assert text.split("\n\n") == ["**warning: slow** (`c`)", "why"]


def test_what_is_over_says_so():
    """The last line about a finding is not read as if it still stood."""
    assert "warning (over)" in finding_text({**FINDING, "cleared_at_s": 2.0})
