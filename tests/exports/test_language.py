"""The report's two languages: one catalogue, nothing left out, nothing made up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sources import ROOT
from texts import report_texts

from monitor.exports import language
from monitor.exports.language import LANGUAGES, Words

CHINESE = Words("zh-CN")


def test_every_text_has_a_translation():
    """And there are some: the rule sees them."""
    assert "Configuration and facts" in report_texts()
    assert sorted(text for text in report_texts() if CHINESE.t(text) == text) == []


def test_it_reads_every_entry_that_a_browser_reads():
    """Of the same file: `fetch` and `json()` there, and here."""
    page = json.loads((ROOT / "static/locale/zh-CN.json").read_text())["messages"]
    assert len(page) > 900
    assert {text: CHINESE.t(text) for text in page} == page


def test_a_new_language_is_one_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Nothing else names it."""
    (tmp_path / "fr.json").write_text(json.dumps({"name": "Français", "messages": {"Findings": "Constats"}}))
    monkeypatch.setattr(language, "_folder", lambda: tmp_path)
    words = Words("fr")
    assert (words.code, words.t("Findings")) == ("fr", "Constats")
    assert set(LANGUAGES) == {"en", *(path.stem for path in (ROOT / "static/locale").glob("*.json"))}


def test_a_hubs_text_is_said_by_its_template():
    """With its parameters, pairs and known words among them translated too."""
    pair = [
        "{title}: {cause}.",
        {"title": "Training waits for data", "cause": ["{number} workers", {"number": "3"}]},
    ]
    assert CHINESE.translate("English", pair) == "训练在等待数据\uff1a3 个工作进程。"
    assert CHINESE.translate("Training waits for data") == "训练在等待数据"
    assert Words("en").translate("English", pair) == "English"


def test_what_nobody_translated_stays_as_the_hub_said_it():
    """A template of a newer agent, and a nested one, are shown in English, whole."""
    assert CHINESE.translate("unheard of: 3", ["unheard of: {n}", {"n": "3"}]) == "unheard of: 3"
    assert CHINESE.translate("x", ["{what}.", {"what": ["new {n:.1f}", {"n": "3.0"}]}]) == "new 3.0。"


@pytest.mark.parametrize(
    "pair", [[], ["x"], [["x"], {}], ["{what}.", 3], "xy", {"what": "x"}, 7, ["{what}.", None]]
)
def test_a_damaged_pair_leaves_the_text(pair: object):
    """A store may hold anything."""
    assert CHINESE.translate("the text", pair) == "the text"


def test_a_parameter_is_text():
    """Whatever it is called and whatever it holds: no field of it is filled in."""
    assert (
        CHINESE.translate("", ["{what}.", {"what": "{what} {self}", "self": "x", "template": "y"}])
        == "{what} {self}。"
    )


def test_without_a_catalogue_it_is_english(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """An installation without the page's files still has a report, and calls it English."""
    monkeypatch.setattr(language, "_folder", lambda: tmp_path)
    language._catalogue.cache_clear()
    try:
        words = Words(LANGUAGES[1])
    finally:
        language._catalogue.cache_clear()
    assert (words.code, words.t("Findings")) == ("en", "Findings")
