"""The report as one page, read as text and looked at in a browser."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from batches import RUN
from kept import keep

from monitor.exports.as_html import write
from monitor.exports.choice import Choice
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
    assert "▲ warning" in text
    assert "None" not in text


def test_what_was_not_measured_is_said_to_be_so(page: str):
    """A dash with words for a screen reader, never a zero."""
    assert 'aria-label="not measured">–' in page


@pytest.mark.browser
def test_it_looks_right_in_both_themes_and_on_paper(page: str, tmp_path: Path, chromium: Any):
    """Opened from disk: no console message, no request, nothing wider than a phone, text readable."""
    file = tmp_path / "report.html"
    file.write_text(page)
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
