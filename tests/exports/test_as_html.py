"""The report as one page, read as text and looked at in a browser."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from batches import RUN
from finished_runs import finding, keep

from monitor.exports.as_html import write
from monitor.exports.choice import Choice
from monitor.exports.language import LANGUAGES
from monitor.store import Store

ADDRESS = re.compile(
    r"""(?:src|href|action|srcset)\s*=|url\(|https?://|<script|javascript:|\bon\w+=["']""", re.I
)


class Tags(HTMLParser):
    """Tag names, and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def page(run_dir: Path) -> str:
    """The whole page."""
    with Store(run_dir / RUN / "store.sqlite") as store:
        return b"".join(write(store, Choice())).decode()


@pytest.fixture(scope="module")
def chinese(run_dir: Path) -> str:
    """The same in Chinese."""
    with Store(run_dir / RUN / "store.sqlite") as store:
        return b"".join(write(store, Choice(language="zh-CN"))).decode()


def test_it_needs_nothing_else(page: str):
    """No script, no address, no handler; and it forbids itself to load anything."""
    assert ADDRESS.search(re.sub("&lt;.*?&gt;", "", page)) is None
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page
    assert not {"script", "link", "img", "iframe", "object", "form"} & set(Tags(page).tags)


def test_everything_told_is_text(page: str):
    """Name, finding and configuration of a hostile run appear as written, and run nothing."""
    assert "<script" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 5
    assert "num_workers=4) # <b>" in Tags(page).text


def test_it_says_what_the_report_says(page: str):
    """Verdict, figures, the finding with cause, advice, fix and gain, and what was not checked."""
    text = Tags(page).text
    for told in (
        "5,000",
        "finished",
        "start workers",
        "train.py:31",
        "2.00 times as fast",
        "Not checked",
        "lr",
    ):
        assert told in text
    assert "▲ Warning" in text
    assert "None" not in text


def test_what_was_not_measured_is_said_to_be_so(page: str):
    """A dash with words for a screen reader, never a zero."""
    assert 'aria-label="not measured">–' in page


#: Latin words between tags: three letters and more.
LATIN = re.compile(r">([^<>]*[A-Za-z]{3}[^<>]*)<")
#: What is the same in every language: names of a run and of code, units, dates.
NAMES = re.compile(
    r"^20\d{6}-|^20\d\d-|^p\d\d|^rank/|UTC| min$|alert\(1\)|^worker$|no steps|start workers|hiding the wait"
)


def test_it_is_in_the_language_asked_for(chinese: str):
    """Verdict, headings, labels, findings, reasons: no sentence stays English, and readers are told which."""
    assert '<html lang="zh-CN">' in chinese
    for told in (
        "状态",
        "已完成",
        "诊断结果",
        "▲ 警告",
        "随时间变化",
        "未检查",
        "配置与事实",
        "等待数据",
        "前向",
    ):
        assert told in chinese
    body = chinese[chinese.index("<header>") : chinese.index('<section class="facts">')]
    body = re.sub(r"<(code|pre|style)>.*?</\1>", "", body, flags=re.DOTALL)
    left = {text.strip() for text in LATIN.findall(body) if not re.search("[\u4e00-\u9fff]", text)}
    assert sorted(text for text in left if not NAMES.search(text)) == []


def test_what_was_said_with_numbers_is_said_in_chinese(tmp_path: Path):
    """Cause, advice, gain and reason come by their templates, with the figures that English has."""
    said = {
        "cause": ["slower {phase}", {"phase": "forward"}],
        "advice": [
            "Batches are read in the training loop itself: let {workers} read ahead.",
            {"workers": "2 workers"},
        ],
        "basis": ["{ms:.1f} ms of each step go into logging", {"ms": "4.0"}],
    }
    why = {
        "code": "recompiles",
        "why": "fewer than 20 steps",
        "i18n": ["fewer than {steps} steps after warm-up", {"steps": "20"}],
    }
    one = finding(cause="slower forward", advice="let 2 workers read ahead", i18n=said)
    folder = keep(tmp_path, "one", findings=[one], meta={"not_checked": [why]})
    with Store(folder / "store.sqlite") as store:
        text = Tags(b"".join(write(store, Choice(language="zh-CN"))).decode()).text
    for told in (
        "训练在等待数据",
        "前向变慢",
        "让2 workers预先读取",
        "每步有 4.0 毫秒",
        "预热之后不足 20 步",
        "2.00 倍",
    ):
        assert told in text


def test_both_languages_tell_the_same(page: str, chinese: str):
    """The same tags in the same order, and the same figures."""
    assert Tags(chinese).tags == Tags(page).tags
    assert ADDRESS.search(re.sub("&lt;.*?&gt;", "", chinese)) is None
    assert re.findall(r' d="([^"]+)"', chinese) == re.findall(r' d="([^"]+)"', page)


@pytest.mark.browser
@pytest.mark.parametrize("language", LANGUAGES)
def test_it_looks_right_in_both_themes_and_on_paper(
    language: str, page: str, chinese: str, tmp_path: Path, chromium: Any
):
    """Opened from disk: no console message, no request, nothing wider than a phone, text readable."""
    file = tmp_path / "report.html"
    file.write_text(page if language == "en" else chinese)
    context = chromium.new_context(viewport={"width": 390, "height": 800}, color_scheme="dark")
    try:
        tab, heard = context.new_page(), []
        tab.on("console", lambda message: heard.append(message.text))
        tab.on("pageerror", lambda error: heard.append(str(error)))
        tab.on("request", lambda request: heard.append(request.url))
        tab.goto(file.as_uri())
        ground = "getComputedStyle(document.documentElement).backgroundColor"
        assert heard == [file.as_uri()]
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        dark = tab.evaluate(ground)
        tab.emulate_media(color_scheme="light")
        light = tab.evaluate(ground)
        tab.emulate_media(color_scheme="dark", media="print")
        assert (dark, light, tab.evaluate(ground)) == ("rgb(13, 16, 20)", "rgb(255, 255, 255)", light)
        assert tab.evaluate("getComputedStyle(document.querySelector('.line')).stroke") == "rgb(0, 114, 178)"
    finally:
        context.close()


@pytest.mark.parametrize("began", [1e300, -1e300, float("nan"), 10**400, "yesterday"])
def test_a_beginning_that_is_none(tmp_path: Path, began: Any):
    """Of a damaged store, or of a clock that was: not known, and the rest of the page is there."""
    folder = keep(tmp_path, "odd", meta={"started_unix_s": began})
    with Store(folder / "store.sqlite") as store:
        seen = Tags(b"".join(write(store, Choice())).decode())
    assert "Started–" in seen.text
