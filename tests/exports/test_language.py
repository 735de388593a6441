"""The report's two languages: one catalogue, nothing left out, nothing made up."""

from __future__ import annotations

import ast
import json
import re
import subprocess

import pytest
from sources import ROOT, modules

from monitor.exports import language
from monitor.exports.language import LANGUAGES, Words
from monitor.panels import drawn_by

CHINESE = Words("zh-CN")


def texts() -> set[str]:
    """Every text that the report itself says: what is handed to `t`, and the titles of its charts."""
    found = {panel.title for panel in drawn_by("report")} | {
        p.unit for p in drawn_by("report") if "/" in p.unit
    }
    for module in modules().values():
        for node in ast.walk(module.tree) if module.room == "exports" else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "words.t":
                (first,) = node.args
                if isinstance(first, ast.Constant):
                    found.add(first.value)
    return found


def test_every_text_has_a_translation():
    """And there are some: the rule sees them."""
    assert "Configuration and facts" in texts()
    assert sorted(text for text in texts() if CHINESE.t(text) == text) == []


def test_the_reports_own_catalogue_is_used():
    """What the report no longer says leaves its catalogue, and every field is kept."""
    entries = dict(
        re.findall(r'^  "(.+)": "(.+)",$', (ROOT / "static/locale/zh-report.js").read_text(), re.MULTILINE)
    )
    assert sorted(set(entries) - texts()) == []
    for english, chinese in entries.items():
        assert set(re.findall(r"\{\w+\}", english)) == set(re.findall(r"\{\w+\}", chinese)), english


def test_it_reads_every_entry_that_a_browser_reads():
    """The catalogue is read as text here: not one entry of the page's is missed or read otherwise."""
    script = 'import("./locale/zh.js").then(({MESSAGES}) => console.log(JSON.stringify(MESSAGES)))'
    told = subprocess.run(
        ["node", "--input-type=module", "-e", script],
        cwd=ROOT / "static",
        capture_output=True,
        check=True,
        timeout=60,
    )
    page = json.loads(told.stdout)
    assert len(page) > 500
    assert {text: CHINESE.t(text) for text in page} == page


def test_a_hubs_text_is_said_by_its_template():
    """With its parameters, pairs and known words among them translated too."""
    pair = [
        "{title}: {cause}.",
        {"title": "Training waits for data", "cause": ["{number} workers", {"number": "3"}]},
    ]
    assert CHINESE.said("English", pair) == "训练在等待数据\uff1a3 个工作进程。"
    assert CHINESE.said("Training waits for data") == "训练在等待数据"
    assert Words("en").said("English", pair) == "English"


def test_what_nobody_translated_stays_as_the_hub_said_it():
    """A template of a newer agent, and a nested one, are shown in English, whole."""
    assert CHINESE.said("unheard of: 3", ["unheard of: {n}", {"n": "3"}]) == "unheard of: 3"
    assert CHINESE.said("x", ["{what}.", {"what": ["new {n:.1f}", {"n": "3.0"}]}]) == "new 3.0。"


@pytest.mark.parametrize(
    "pair", [[], ["x"], [["x"], {}], ["{what}.", 3], "xy", {"what": "x"}, 7, ["{what}.", None]]
)
def test_a_damaged_pair_leaves_the_text(pair: object):
    """A store may hold anything."""
    assert CHINESE.said("the text", pair) == "the text"


def test_a_parameter_is_text():
    """Whatever it is called and whatever it holds: no field of it is filled in."""
    assert (
        CHINESE.said("", ["{what}.", {"what": "{what} {self}", "self": "x", "template": "y"}])
        == "{what} {self}。"
    )


def test_without_a_catalogue_it_is_english(monkeypatch: pytest.MonkeyPatch, tmp_path):
    """An installation without the page's files still has a report, and calls it English."""
    monkeypatch.setattr(language, "_static", lambda: tmp_path)
    language._chinese.cache_clear()
    try:
        words = Words(LANGUAGES[1])
    finally:
        language._chinese.cache_clear()
    assert (words.code, words.t("Findings")) == ("en", "Findings")
