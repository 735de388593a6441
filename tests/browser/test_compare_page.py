"""Runs beside each other: what was changed, what it brought, which promises came true."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contrast import faint
from finished_runs import changed, finding, keep, steps
from playwright.sync_api import Page, expect
from simulated_run import PlayedHub, PlayedRun

from monitor.runs.baselines import set_baseline

pytestmark = pytest.mark.browser


@pytest.fixture
def two(hub: PlayedHub) -> PlayedHub:
    """A slow run, and the same with four workers, twice as fast; both learn the same."""
    loss = 2.0 * np.exp(-0.004 * np.arange(600))
    keep(hub.run_dir, "slow", steps(600, 50.0), findings=[finding()], data_ms=26.0, loss=loss)
    after = changed("loader/1", num_workers=4, prefetch_factor=2)
    keep(hub.run_dir, "fast", steps(600, 24.0, seed=1), facts=after, data_ms=0.5, loss=loss)
    return hub


@pytest.fixture
def page(two: PlayedHub, open_page: Any) -> Page:
    return open_page("#/compare/slow,fast", wait=".speedup")


def test_what_differs_stands_first(page: Page) -> None:
    """Exactly one thing: said as such, with what came with it."""
    headline = page.locator(".pair > *").first.locator(".headline")
    expect(headline).to_have_text("Exactly one thing differs: num_workers 0 → 4 (prefetch_factor – → 2)")


def test_the_speed_up_with_its_interval(page: Page) -> None:
    """As a number, as a word, and drawn on an axis that has 1 on it."""
    card = page.locator(".speedup")
    expect(card.locator(".word")).to_have_text("faster")
    assert float(card.locator(".big .number").inner_text().rstrip("×")) == pytest.approx(2.08, abs=0.1)
    drawing = card.get_by_role("img")
    expect(drawing).to_have_attribute("aria-label", card.get_by_text("95 % interval").inner_text())
    one, bar, dot = (
        drawing.locator(part).evaluate("e => e.getBoundingClientRect().toJSON()")
        for part in (".one", ".bar", ".dot")
    )
    assert one["right"] < bar["left"] < dot["left"] < bar["right"]


def test_promises_have_an_icon_and_a_word(page: Page) -> None:
    """What was promised, what was reached, and the verdict."""
    row = page.locator(".promises tbody tr")
    expect(row).to_contain_text("Training waits for data")
    expect(row.locator("td").first).to_have_text("2.00×")
    expect(row.locator(".word")).to_have_text("confirmed")
    expect(row.locator(".word .icon-ok")).to_be_visible()


def test_phases_before_and_after(page: Page) -> None:
    """Each phase has both bars to one scale."""
    data = page.locator(".bars div", has_text="data")
    expect(data.locator(".number")).to_have_text(["26\u202fms", "0.500\u202fms"])
    before, after = (
        data.locator(f".bar.{side}").evaluate("e => e.offsetWidth") for side in ("before", "after")
    )
    assert before > 20 * after


def test_curves_over_the_same_steps_and_times(page: Page) -> None:
    """Both are drawn over steps, and over time when that is asked for; the address says which."""
    page.wait_for_selector("[data-curve=loss] .main-svg")
    expect(page.locator("[data-curve=loss] .scatterlayer .trace")).to_have_count(2)
    page.get_by_role("link", name="Align by time").click()
    expect(page.locator(".curves h2")).to_have_text("Over the time trained")
    assert page.url.endswith("/time")
    expect(page.locator(".numbers")).to_contain_text("loss after 14")


def test_numbers(page: Page) -> None:
    """Step times and the loss where both have been."""
    expect(page.locator(".numbers tr", has_text="step time p50")).to_contain_text("−5")
    expect(page.locator(".numbers tr", has_text="loss at step 599")).to_contain_text("=")


def test_the_other_way_round(page: Page) -> None:
    """Any run can be made the baseline; then it was the other one that was slower."""
    page.get_by_role("link", name="make it the baseline").click()
    expect(page.locator(".speedup .word")).to_have_text("slower")
    expect(page.locator(".side-of").first).to_contain_text("fast")


def test_three_runs(two: PlayedHub, open_page: Any) -> None:
    """Each beside the first, and all in one chart."""
    keep(two.run_dir, "third", steps(300, 51.0, seed=3), data_ms=26.0)
    page = open_page("#/compare/slow,fast,third", wait=".speedup")
    expect(page.locator(".pair")).to_have_count(2)
    expect(page.locator(".pair").nth(1).locator(".headline")).to_contain_text(
        "Nothing that is recorded differs"
    )
    expect(page.locator(".pair").nth(1).locator(".speedup .word")).to_contain_text("no difference")
    expect(page.locator(".curves .legend li")).to_have_count(3)


def test_a_run_that_is_gone(two: PlayedHub, open_page: Any, complaints: list[str]) -> None:
    """The page says so."""
    page = open_page("#/compare/slow,nobody", wait=".compare .nothing")
    expect(page.locator(".compare .nothing")).to_contain_text("no such run")
    complaints.clear()  # the browser itself notes the 404


def test_the_distance_to_the_baseline_on_a_runs_page(hub: PlayedHub, open_page: Any) -> None:
    """A live run says how fast it is against its baseline, and leads to the comparison."""
    keep(hub.run_dir, "base", steps(600, 144.0), meta={"argv": []})
    run = PlayedRun(hub)
    run.play(20)
    set_baseline(hub.run_dir, "digits", "base")
    page = open_page(f"#/run/{run.run}", wait=".to-baseline:not([hidden])")
    expect(page.locator(".to-baseline")).to_contain_text("× as fast as baseline base (")
    page.locator(".to-baseline a").click()
    expect(page.locator(".side-of").first).to_contain_text("base")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1600])
def test_readable_and_within_the_window(two: PlayedHub, open_page: Any, scheme: str, width: int) -> None:
    """Both themes have contrast, and nothing reaches beyond a phone or a wide screen."""
    page = open_page(
        "#/compare/slow,fast", wait=".speedup", color_scheme=scheme, viewport={"width": width, "height": 900}
    )
    page.wait_for_selector("[data-curve=loss] .main-svg")
    assert faint(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_in_chinese(two: PlayedHub, open_page: Any) -> None:
    """Headline, verdicts and table speak Chinese; names of settings stay as they are."""
    page = open_page("#/compare/slow,fast", wait=".speedup", locale="zh-CN")
    expect(page.locator(".headline")).to_contain_text("恰好有一处不同")
    expect(page.locator(".promises .word")).to_have_text("已证实")
    expect(page.locator(".speedup .word")).to_have_text("更快")


def test_hostile_names_are_only_text(hub: PlayedHub, open_page: Any) -> None:
    """Names, options and values from the training stay text."""
    evil = '<img src=x onerror="window.pwned=1">'
    keep(
        hub.run_dir,
        "one",
        meta={"name": evil, "argv": ["t.py", f"--{evil}", evil]},
        findings=[finding(title=evil, cause=evil)],
    )
    keep(hub.run_dir, "two", meta={"name": evil, "argv": [evil]})
    page = open_page("#/compare/one,two", wait=".speedup")
    expect(page.locator(".side-of").first).to_contain_text(evil)
    assert page.evaluate("window.pwned") is None
    assert page.locator("main img").count() == 0
