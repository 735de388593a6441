"""English and Chinese: by the browser, by the button, and nothing left untranslated."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect
from simulated_run import PlayedHub, PlayedRun

pytestmark = pytest.mark.browser

#: Visible texts with Latin words and no Chinese in them, outside of names and code.
LATIN = """() => {
  const names = 'code, pre, h1, .run-id, .brand, .location, kbd, option, .sentence, tbody a, dt, .tree, ' +
    '[lang=en]';
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (parent.closest(`${names}, script, style, svg, noscript`) || !parent.checkVisibility()) continue;
    if (/[A-Za-z]{3,}/.test(node.data) && !/[\\u4e00-\\u9fff]/.test(node.data)) found.push(node.data.trim());
  }
  return [...new Set(found)];
}"""
#: The field's own names, the same in both languages.
NAMES = re.compile(
    r"^SIG|GPU|CPU|RSS|PSS|CUDA|torch|NVLink|PCIe|^min$|^num_workers=\d+$|^rank\b|p\d\d$", re.IGNORECASE
)


def untranslated(page: Page) -> list[str]:
    return [text for text in page.evaluate(LATIN) if not NAMES.search(text)]


@pytest.mark.parametrize(
    ("locale", "lang"), [("en-GB", "en"), ("zh-CN", "zh-CN"), ("zh-TW", "zh-CN"), ("de-DE", "en")]
)
def test_the_browser_chooses(training: PlayedRun, open_page, locale: str, lang: str) -> None:
    """Whoever reads Chinese gets Chinese, everybody else English; screen readers are told which."""
    page = open_page(locale=locale)
    expect(page.locator("html")).to_have_attribute("lang", lang)


def test_english_loads_no_catalogue(training: PlayedRun, open_page) -> None:
    """Chinese texts come to those only who read them."""
    page = open_page()
    loaded = page.evaluate("() => performance.getEntriesByType('resource').map(one => one.name)")
    assert not [name for name in loaded if "/zh" in name]


def test_the_button_changes_everything_and_is_kept(page: Page) -> None:
    """Verdict, findings, charts, keys: all at once, with the range and the finding as they were."""
    page.get_by_role("button", name="Show in charts").click()
    page.wait_for_function("() => location.hash.includes('finding=')")
    page.get_by_role("button", name="简体中文").click()
    expect(page.locator(".verdict p").first).to_contain_text("训练在等待数据")
    expect(page.locator(".finding.chosen h3")).to_have_text("训练在等待数据")
    expect(page.get_by_role("button", name="English")).to_be_visible()
    page.reload()
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    page.get_by_role("button", name="English").click()
    expect(page.locator(".finding h3").first).to_have_text("Training waits for data")


def test_nothing_is_left_in_english(hub: PlayedHub, open_page) -> None:
    """On the page of a run, in its drawer and in its help there is no sentence that is not Chinese."""
    run = PlayedRun(hub, gpus=1)
    run.play(30)
    page = open_page(locale="zh-CN", wait=".finding")
    page.wait_for_selector(".main-svg")
    page.locator("details.unchecked summary").click()
    assert untranslated(page) == []
    page.keyboard.press("?")
    assert untranslated(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("d")
    for tab in page.get_by_role("tab").all():
        tab.click()
        expect(page.get_by_role("tabpanel").locator(".nothing, h3, table, .downloads").first).to_be_visible()
        assert untranslated(page) == []
    report = page.locator('.downloads a[href*="export.html"]')  # the last tab's
    expect(report).to_have_attribute("href", re.compile(r"[?&]language=zh-CN"))


def test_dead_runs_and_the_list_in_chinese(hub: PlayedHub, open_page) -> None:
    """How a run ended, and the list of runs."""
    run = PlayedRun(hub)
    run.play(3)
    run.end(signal=9)
    page = open_page("#/run/20261130-030000-digits-a1b2", locale="zh-CN", wait=".banner")
    expect(page.locator(".banner").first).to_contain_text("被 SIGKILL")
    assert untranslated(page) == []
    page.evaluate("location.hash = '#/runs'")
    page.wait_for_selector("tbody tr")
    assert untranslated(page) == []
