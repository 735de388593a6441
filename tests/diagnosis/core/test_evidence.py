"""Evidence is worded once: the page and the report draw the same rows."""

from __future__ import annotations

import pytest

from monitor.diagnosis.core.evidence import MAX_TEXT, EvidenceRow, evidence_rows
from monitor.diagnosis.core.messages import pair_of


def row(key: str, value: object) -> EvidenceRow:
    (only,) = evidence_rows({key: value})
    return only


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("data_share", 0.314, ("data share", "31", "%")),
        ("data_share", 0.0123, ("data share", "1.2", "%")),
        ("share", 0.02, ("share", "2.0", "%")),
        ("wait_ms", 4.5, ("wait", "4.5", "ms")),
        ("wait_p50_ms", 14.4, ("wait p50", "14.4", "ms")),
        ("wait_ms_p95", 143, ("wait p95", "143", "ms")),
        ("rss_mb", 900, ("rss", "900", "MB")),
        ("peak_mb", 71_500, ("peak", "71.5", "GB")),
        ("step_ms_max", 31_000, ("step max", "31", "s")),
        ("steps_per_s", 20.5, ("steps", "20.5", "/s")),
        ("stalled_s", 31, ("stalled", "31", "s")),
        ("main_cores", 1.5, ("main", "1.5", "cores")),
        ("usable_cpus", 2, ("usable cpus", "2", "")),
        ("sharers", 3, ("sharers", "3", "")),
        ("num_workers", 0, ("num workers", "0", "")),
        ("gave_up", True, ("gave up", "yes", "")),
        ("pinned", False, ("pinned", "no", "")),
        ("phase", "forward", ("phase", "forward", "")),
        ("where", "train.py:3", ("where", "train.py:3", "")),
        ("batch", [3, 0.5, "x"], ("batch", "3, 0.5, x", "")),
        ("sizes", {"a": 1}, ("sizes", '{"a": 1}', "")),
        ("gpu_util", None, ("gpu util", None, "")),
    ],
)
def test_a_row_has_label_value_and_unit(key: str, value: object, says: tuple[str, str | None, str]):
    """The unit is the name's; shares are per cent; what was not measured is none, and never zero."""
    told = row(key, value)
    assert (told.label, told.value, told.unit) == says


def test_the_order_is_the_detectors():
    """What it names first is read first."""
    assert [one.label for one in evidence_rows({"b": 1, "a": 2})] == ["b", "a"]


def test_a_label_with_a_quantile_can_be_translated():
    """Its parts are looked up one by one."""
    assert pair_of(row("wait_ms_p95", 1.0).label) == ["{what} {which}", {"what": "wait", "which": "p95"}]
    assert pair_of(row("wait_ms", 1.0).label) is None


def test_a_long_value_is_cut():
    """A finding cannot fill the page with one line."""
    assert len(row("line", "x" * 999).value or "") == MAX_TEXT + 1
