"""Charts: one time range for all of them, the whole history at any zoom, and nothing drawn in vain."""

from __future__ import annotations

import itertools
import re
from contextlib import AbstractContextManager
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from simulated_run import PlayedRun, shows_step

pytestmark = pytest.mark.browser

RANGES = (
    "() => [...document.querySelectorAll('.canvas')].filter(c => c.layout).map(c => c.layout.xaxis.range)"
)
COUNT_DRAWS = """() => { window.drawn = 0; const react = Plotly.react;
  Plotly.react = function (...all) { window.drawn += 1; return react.apply(this, all); }; }"""


@pytest.fixture
def drawn(page: Page) -> Page:
    """The page with all charts drawn."""
    page.wait_for_function(
        "() => [...document.querySelectorAll('.canvas')].filter(c => c.layout).length >= 7"
    )
    return page


def drag(page: Page, panel: str, start: float, end: float) -> None:
    """Draw a range on a chart, from one share of its width to another."""
    box = page.locator(f'[data-panel="{panel}"] .nsewdrag').bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + start * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + (start + end) / 2 * box["width"], y)
    page.mouse.move(box["x"] + end * box["width"], y)
    page.mouse.up()


def held(page: Page) -> None:
    expect(page.locator(".live")).to_have_attribute("aria-pressed", "false")


def narrowed(page: Page) -> list[float]:
    """The range that was drawn, once every chart has it: they are drawn one a frame, after the button."""
    page.wait_for_function(
        f"() => {{ const all = ({RANGES})();"
        " return all.every(r => Math.abs(r[0] - all[0][0]) < 0.01 && r[1] - r[0] < 10); }"
    )
    found: list[float] = page.evaluate(RANGES)[0]
    return found


def test_every_panel_is_there(drawn: Page) -> None:
    """Ribbon, throughput, data share, step time, memory, CPU, loss."""
    panels = drawn.eval_on_selector_all(".card:not([hidden])", "cards => cards.map(c => c.dataset.panel)")
    assert panels == ["ribbon", "throughput", "data", "step", "memory", "cpu", "loss"]


def test_what_has_not_come_yet_is_not_called_unmeasured(training: PlayedRun, open_page) -> None:
    """While the hub still looks for the past a chart says that it is on its way; what is then absent is not
    measured."""
    waiting: list[Any] = []
    page = open_page("#/runs", wait="tbody tr")
    page.route("**/series?*", lambda route: waiting.append(route))  # Playwright marks a listener
    page.goto(page.url.split("#")[0] + f"#/run/{training.run}")
    page.wait_for_function("() => window.Plotly !== undefined && document.querySelector('.strip .status')")
    empty = page.locator("[data-panel=ribbon] .empty")
    page.wait_for_function("() => document.querySelectorAll('.empty:not([hidden])').length >= 4")
    expect(empty).to_have_text("Charts are on their way…")
    for route in waiting:
        route.continue_()
    expect(empty).to_be_hidden()


def test_legends_name_and_tell(drawn: Page) -> None:
    """Every line is named beside its value, and the ribbon's phases in stacking order."""
    expect(drawn.locator('[data-panel="step"] .legend')).to_contain_text(re.compile(r"p50.*p95.*p99"))
    expect(drawn.locator('[data-panel="memory"] .legend')).to_contain_text(
        re.compile("main process.*process tree.*limit")
    )
    expect(drawn.locator('[data-panel="cpu"] .legend')).to_contain_text(
        re.compile("main process.*workers.*all.*usable")
    )
    phases = drawn.locator('[data-panel="ribbon"] .legend .name').all_inner_texts()
    assert phases == ["other", "optimizer", "backward", "forward", "data"]


def test_zoom_in_one_narrows_all(drawn: Page) -> None:
    """A range drawn in one chart holds in every chart."""
    drag(drawn, "throughput", 0.25, 0.5)
    held(drawn)
    first, last = narrowed(drawn)
    assert first == pytest.approx(7.5, abs=0.5)
    assert last == pytest.approx(15, abs=0.5)
    expect(drawn.locator(".range-label")).to_contain_text("–")


def test_zoom_fetches_its_own_history(drawn: Page) -> None:
    """A narrower range is asked for anew, at most 600 points wide, once per stream."""
    drawn.wait_for_load_state("networkidle")

    def asks(stream: str) -> AbstractContextManager[Any]:
        return drawn.expect_request(lambda request: f"stream={stream}" in request.url)

    with asks("run") as run, asks("proc") as proc, asks("host") as host:
        drag(drawn, "ribbon", 0.2, 0.6)
    for request in (run.value, proc.value, host.value):
        assert "points=600" in request.url
        assert "from=5." in request.url or "from=6" in request.url


def test_double_click_returns_to_following(drawn: Page) -> None:
    """A double click on any chart shows the newest data again."""
    drag(drawn, "cpu", 0.3, 0.6)
    held(drawn)
    drawn.locator('[data-panel="cpu"] .nsewdrag').dblclick()
    expect(drawn.locator(".live")).to_have_attribute("aria-pressed", "true")


def test_live_button_returns_to_following(drawn: Page, training: PlayedRun) -> None:
    """While held, new data moves nothing; "Live" brings the newest back."""
    drag(drawn, "loss", 0.3, 0.6)
    held(drawn)
    before = narrowed(drawn)
    training.play(8)
    shows_step(drawn, training.steps)
    assert drawn.evaluate(RANGES)[0] == before
    drawn.locator(".live").click()
    drawn.wait_for_function(f"() => ({RANGES})().every(r => r[0] === 0 && r[1] >= 38)")


def test_spans(drawn: Page, training: PlayedRun) -> None:
    """A span button follows the newest data over that span."""
    training.play(200)
    drawn.get_by_role("button", name="2 min").click()
    drawn.wait_for_function(f"() => ({RANGES})().every(r => Math.abs(r[1] - r[0] - 120) < 0.1)")
    expect(drawn.get_by_role("button", name="2 min")).to_have_attribute("aria-pressed", "true")


def test_keys_zoom_and_move(drawn: Page) -> None:
    """Plus, minus and the arrows do what dragging does."""
    drawn.keyboard.press("+")
    held(drawn)
    drawn.wait_for_function(f"() => Math.abs(({RANGES})()[0][1] - ({RANGES})()[0][0] - 15) < 0.5")
    before = drawn.evaluate(RANGES)[0]
    drawn.keyboard.press("ArrowLeft")
    drawn.wait_for_function(f"() => ({RANGES})()[0][0] < {before[0] - 1}")
    drawn.keyboard.press("l")
    expect(drawn.locator(".live")).to_have_attribute("aria-pressed", "true")


def test_new_rows_join_the_lines(drawn: Page, training: PlayedRun) -> None:
    """A live update lengthens the lines without another request for history."""
    drawn.wait_for_load_state("networkidle")
    asked: list[str] = []
    drawn.on("request", lambda request: asked.append(request.url) if "/series" in request.url else None)
    training.play(3)
    newest = "() => document.querySelector('[data-panel=throughput] .canvas').data.at(-1).x.at(-1)"
    drawn.wait_for_function(f"() => ({newest})() >= 32.9")
    assert asked == []


def test_whole_history_of_a_long_run(hub, open_page) -> None:
    """A page opened late draws the run from its first second."""
    run = PlayedRun(hub)
    run.play(400)
    page = open_page()
    page.wait_for_function("() => document.querySelector('[data-panel=step] .canvas')?.data?.[0].x[0] < 4")
    times = page.evaluate("() => document.querySelector('[data-panel=step] .canvas').data[0].x")
    assert times[-1] > 396
    assert 100 <= len(times) <= 600
    assert max(b - a for a, b in itertools.pairwise(times)) < 5


def test_missed_updates_are_fetched(drawn: Page, training: PlayedRun) -> None:
    """Rows that never came by themselves are asked for, and the lines have no hole."""
    drawn.wait_for_load_state("networkidle")
    live = training.hub.pipeline._runs[training.run]
    publish = training.hub.pipeline.publish
    training.hub.pipeline.publish = None
    training.play(20)
    training.hub.pipeline.publish = publish
    asked: list[str] = []
    drawn.on("request", lambda request: asked.append(request.url) if "/series" in request.url else None)
    training.play(1)
    longest_gap = """() => {
      const x = document.querySelector('[data-panel=throughput] .canvas').data.at(-1).x;
      return x.at(-1) > 50 ? Math.max(...x.slice(1).map((t, i) => t - x[i])) : 1e9; }"""
    drawn.wait_for_function(f"() => ({longest_gap})() < 3")
    assert asked
    assert live.state.now_s == training.t_s


def test_hidden_tab_draws_nothing(drawn: Page, training: PlayedRun) -> None:
    """While hidden only title and numbers change; shown again, the charts catch up."""
    drawn.evaluate(COUNT_DRAWS)
    drawn.evaluate(
        "() => { Object.defineProperty(document, 'hidden', { value: true, configurable: true });"
        " document.dispatchEvent(new Event('visibilitychange')); }"
    )
    drawn.evaluate("() => { window.drawn = 0; }")
    training.play(5)
    shows_step(drawn, training.steps)
    assert drawn.evaluate("window.drawn") == 0
    drawn.evaluate("() => { delete document.hidden; document.dispatchEvent(new Event('visibilitychange')); }")
    drawn.wait_for_function("() => window.drawn >= 7")


def test_only_what_is_on_screen_is_drawn(open_page, training: PlayedRun) -> None:
    """Charts below the fold are drawn when they are scrolled to."""
    page = open_page(viewport={"width": 390, "height": 700})
    page.wait_for_selector("[data-panel=loss]", state="attached")
    page.wait_for_function("() => window.Plotly")
    training.play(1)
    shows_step(page, training.steps)
    assert page.evaluate("() => !document.querySelector('[data-panel=loss] .canvas').data")
    page.locator("[data-panel=loss]").scroll_into_view_if_needed()
    page.wait_for_function("() => document.querySelector('[data-panel=loss] .canvas').data")


def test_throughput_in_another_unit(drawn: Page) -> None:
    """Throughput is drawn in one unit at a time, and only measured ones are offered."""
    buttons = drawn.locator('[data-panel="throughput"] .legend button')
    expect(buttons).to_have_count(2)
    buttons.nth(1).click()
    expect(buttons.nth(1)).to_have_attribute("aria-pressed", "true")
    drawn.wait_for_function(
        "() => document.querySelector('[data-panel=throughput] .canvas').data.at(-1).y.at(-1) > 500"
    )


def test_crosshair_reads_all_charts(drawn: Page) -> None:
    """Pointing at a moment in one chart reads every chart at that moment."""
    newest = drawn.locator('[data-panel="loss"] .legend .number').inner_text()
    drawn.locator('[data-panel="ribbon"] .nsewdrag').hover(position={"x": 20, "y": 40})
    expect(drawn.locator('[data-panel="ribbon"] .cross-tag')).to_have_text(re.compile(r"^[\d.]+ s$"))
    expect(drawn.locator('[data-panel="loss"] .legend .number')).not_to_have_text(newest)
    drawn.mouse.move(5, 5)
    expect(drawn.locator('[data-panel="loss"] .legend .number')).to_have_text(newest)


def test_no_chart_library(training: PlayedRun, open_page, complaints: list[str], monkeypatch) -> None:
    """Without the chart library everything else works, and the page says what is missing."""
    monkeypatch.setattr("monitor.web.assets.plotly", lambda: None)
    page = open_page()
    expect(page.get_by_text("No charts: the chart library could not be loaded.")).to_be_visible()
    expect(page.locator(".finding h3").first).to_have_text("Training waits for data")
    complaints.clear()  # the browser notes the 404
