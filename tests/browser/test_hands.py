"""Keyboard, looks and sizes."""

from __future__ import annotations

from pathlib import Path

import pytest
from contrast import faint
from playwright.sync_api import Page, expect
from simulated_run import PlayedHub, PlayedRun, shows_step

pytestmark = pytest.mark.browser


def test_help_lists_the_keys(page: Page) -> None:
    """`?` shows the keys, Escape hides them."""
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("all runs")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_findings_by_keyboard(page: Page) -> None:
    """`j` and `k` walk through the findings, `c` copies the fix of the one in focus."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.keyboard.press("j")
    expect(page.locator(".finding").first).to_be_focused()
    page.keyboard.press("c")
    expect(page.locator(".finding .copy").first).to_have_text("Copied")
    assert "num_workers" in page.evaluate("navigator.clipboard.readText()")
    page.keyboard.press("k")
    expect(page.locator(".finding").first).to_be_focused()


def test_copy_button(page: Page) -> None:
    """The button copies exactly what is shown."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").first.click()
    expect(page.locator(".copy").first).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == page.locator(".fix code").first.inner_text()


def test_copy_without_clipboard(page: Page) -> None:
    """Over plain HTTP from another machine there is no clipboard; copying works all the same."""
    page.evaluate("() => Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.get_by_role("button", name="Copy").first.click()
    expect(page.locator(".copy").first).to_have_text("Copied")


def test_go_to_runs(page: Page) -> None:
    """`g` then `r` leads to the list; `r` alone does nothing."""
    page.keyboard.press("r")
    expect(page.locator("h1")).to_have_text("digits")
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page.locator("h1")).to_have_text("Runs")


def test_theme_is_kept(page: Page) -> None:
    """`t` goes from the system's theme to light to dark, and the choice outlives the page."""
    page.keyboard.press("t")
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_theme_follows_the_system(page: Page) -> None:
    """Without a choice the page is as light or dark as the system, at once."""
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(training: PlayedRun, open_page, scheme: str) -> None:
    """All text reaches WCAG AA on its ground, in both themes."""
    page = open_page(color_scheme=scheme, wait=".finding")
    page.locator("details.unchecked summary").click()
    page.wait_for_selector(".main-svg")
    assert faint(page) == []


@pytest.mark.parametrize("width", [320, 390, 768, 1440, 3840])
def test_no_sideways_scrolling(training: PlayedRun, open_page, width: int) -> None:
    """Nothing reaches beyond the window, from a phone to a wall."""
    page = open_page(viewport={"width": width, "height": 900}, wait=".finding")
    page.locator("[data-panel=ribbon]").scroll_into_view_if_needed()
    page.wait_for_selector(".main-svg")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width


def test_one_screen(training: PlayedRun, open_page) -> None:
    """On a common screen verdict, tiles, the first finding and all charts are in view at once."""
    page = open_page(viewport={"width": 1440, "height": 900}, wait=".finding")
    page.wait_for_selector(".main-svg")
    bottom = page.locator('[data-panel="loss"]').evaluate("card => card.getBoundingClientRect().bottom")
    assert bottom <= 900


def test_landmarks_and_headings(page: Page) -> None:
    """A screen reader finds a banner, one main, one first heading, and a name for every section."""
    assert page.get_by_role("banner").count() == 1
    assert page.get_by_role("main").count() == 1
    assert page.locator("h1").count() == 1
    unnamed = page.eval_on_selector_all(
        "main section",
        "all => all.filter(s => !document.getElementById(s.getAttribute('aria-labelledby'))).length",
    )
    assert unnamed == 0
    nameless = page.eval_on_selector_all("button", "all => all.filter(b => !b.textContent.trim()).length")
    assert nameless == 0


def test_focus_is_visible(page: Page) -> None:
    """Whatever the tab key reaches shows that it has the focus."""
    for _ in range(8):
        page.keyboard.press("Tab")
        outline = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
        assert outline not in ("none", ""), page.evaluate(
            "() => document.activeElement.outerHTML.slice(0, 80)"
        )


def test_stillness_on_request(training: PlayedRun, open_page) -> None:
    """Whoever asks for less motion gets none."""
    page = open_page(reduced_motion="reduce")
    moving = page.evaluate("() => document.getAnimations().length")
    assert moving == 0


def test_below_a_path_prefix(tmp_path: Path, open_page) -> None:
    """Behind a proxy's path everything works as at the root: numbers, live line, charts."""
    below = PlayedHub(tmp_path / "below", prefix="/proxy/7007")
    run = PlayedRun(below)
    run.play(30)
    page = open_page(at=below, wait=".main-svg")
    page.wait_for_selector('.link[data-state="open"]')
    run.play(1)
    shows_step(page, run.steps)
    below.stop()
