"""Evidence in the report reads as on the page."""

from __future__ import annotations

import json
import subprocess

import pytest
from sources import ROOT

from monitor.exports.evidence import MAX_TEXT, shown
from monitor.exports.language import Words

ENTRIES = [
    ("data_share", 0.314), ("wait_ms", 4.5), ("wait_ms_p95", 45.2), ("num_workers", 0), ("grown_mb", 120.4),
    ("first_step", 20), ("gave_up", True), ("worker", "spawn"), ("dims", [3, 5]), ("unknown", None),
]  # fmt: skip


@pytest.mark.parametrize("code", ["en", "zh-CN"])
def test_labels_are_those_of_the_page(code: str):
    """In both languages: who knows one finds the other's figures at once."""
    script = f"""
      import {{ evidence }} from "./findings/evidence.js";
      import {{ useMessages }} from "./locale/i18n.js";
      import {{ MESSAGES }} from "./locale/zh.js";
      useMessages("{code}", "{code}" === "en" ? {{}} : MESSAGES);
      console.log(JSON.stringify({json.dumps(ENTRIES)}.map(([key, value]) => evidence(key, value).label)));"""
    run = ["node", "--input-type=module", "-e", script]
    told = subprocess.run(run, cwd=ROOT / "static", capture_output=True, check=True, timeout=60)
    assert [shown(key, value, Words(code))[0] for key, value in ENTRIES] == json.loads(told.stdout)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("data_share", 0.314, "31 %"),
        ("data_share", 0.0123, "1.2 %"),
        ("wait_ms", 4.5, "4.5 ms"),
        ("wait_ms_p95", 45.2, "45.2 ms"),
        ("main_cores", 1.5, "1.5 cores"),
        ("num_workers", 0, "0"),
        ("gave_up", True, "yes"),
        ("phase", "forward", "forward"),
        ("batch", [3, 0.5, "x"], "3, 0.5, x"),
        ("sizes", {"a": 1}, '{"a": 1}'),
        ("unknown", None, None),
    ],
)
def test_values_have_their_unit(key: str, value: object, says: str | None):
    """From the name; what was not measured is none, and never zero."""
    assert shown(key, value, Words())[1] == says


def test_words_and_units_in_chinese():
    """Of a value too, where the catalogue knows it."""
    chinese = Words("zh-CN")
    assert shown("wait_ms", 4.5, chinese) == ("等待", "4.5 ms")
    assert shown("phase", "forward", chinese) == ("阶段", "前向")
    assert shown("gave_up", False, chinese) == ("已放弃", "否")


def test_a_long_value_is_cut():
    """A finding cannot fill the report with one line."""
    assert len(shown("line", "x" * 999, Words())[1] or "") == MAX_TEXT + 1
