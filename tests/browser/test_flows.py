"""What somebody does with a run: look at a finding, at a stretch of time, at the rest, and send it on."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect
from simulated_run import HEALTHY, PlayedHub, PlayedRun

pytestmark = pytest.mark.browser

RUN = "#/run/20261130-030000-digits-a1b2"
#: How wide the mark of the first chart is, as a share of its plot.
MARKED = """() => {
  const mark = document.querySelector('[data-panel=ribbon] .mark');
  return mark.offsetWidth / (mark.parentElement.clientWidth - 62);
}"""
#: Where marks begin and end, as shares of the time shown: ribbon, band and map of ranks, a GPU's charts.
EDGES = """() => [
  ...['[data-panel=ribbon] > .plot', '[data-panel=ranks_step] > .plot', '.heat'].map(one => [one, 52, 62]),
  ...[1, 2, 3, 4, 5].map((cell) => [`.gpu-row .gpu-cell:nth-child(${cell}) .spark-box`, 0, 0]),
].map(([where, left, around]) => {
  const mark = document.querySelector(`${where} > .mark`);
  const wide = mark.parentElement.clientWidth - around;
  return [mark.offsetLeft, mark.offsetLeft + mark.offsetWidth].map((x) => (x - left) / wide);
})"""


def test_a_finding_marks_its_steps_in_every_chart(page: Page) -> None:
    """Pressed, all charts carry a band; pressed again, none does; the address names the finding meanwhile."""
    page.get_by_role("button", name="Show in charts").click()
    expect(page.locator(".grid")).to_have_class(re.compile("marked"))
    expect(page.locator(".grid")).to_have_attribute("data-mark", "warning")
    assert page.evaluate(MARKED) > 0.5
    page.wait_for_function("() => location.hash.endsWith('?finding=data_starvation')")
    page.keyboard.press("Escape")
    expect(page.locator(".grid")).not_to_have_class(re.compile("marked"))
    page.wait_for_function("() => !location.hash.includes('finding')")


def test_a_finding_marks_its_steps_among_ranks_and_gpus_too(hub: PlayedHub, open_page) -> None:
    """The band and the map of the ranks, and each small chart of a GPU, are marked where large charts are;
    the map's cells keep the colours that its legend explains.
    """
    PlayedRun(hub, world_size=2, gpus=1).play(15)
    page = open_page()
    page.locator(".heat").wait_for()
    page.get_by_role("button", name="Show in charts").first.click()
    page.wait_for_function(f"() => ({EDGES})()[0][0] < 0.1")  # where it began is asked of the hub
    ribbon, *others = page.evaluate(EDGES)
    assert ribbon[1] == pytest.approx(0.5, abs=0.02)  # half a minute is shown at least
    assert others == [pytest.approx(ribbon, abs=0.02)] * 7  # a small chart has a hundred pixels, or fewer
    clear = "mark => getComputedStyle(mark).backgroundColor"
    assert page.locator(".heat > .mark").evaluate(clear) == "rgba(0, 0, 0, 0)"
    page.keyboard.press("Escape")
    expect(page.locator(".mark:visible")).to_have_count(0)


def test_a_finding_by_keyboard(page: Page) -> None:
    """`j` goes to the finding, Enter marks it; the button says so to a screen reader."""
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator(".finding").first).to_have_class(re.compile("chosen"))
    expect(page.locator(".mark-button").first).to_have_attribute("aria-pressed", "true")


def test_a_finding_shows_its_curve_and_how_sure_it_is(page: Page) -> None:
    """The metric that shows it as a small curve, and the steps it was seen over."""
    points = page.locator(".finding .sparkline polyline").first
    expect(points).to_have_attribute("points", re.compile(r"\d"))
    expect(page.locator(".confidence").first).to_have_text(
        re.compile(r"Confidence: (medium|high), seen over")
    )


def test_a_range_narrows_findings_and_numbers(hub: PlayedHub, open_page) -> None:
    """In a stretch of time that a finding does not touch it is not listed, and tiles tell of that stretch."""
    run = PlayedRun(hub, phases=HEALTHY)
    run.play(60)
    run.phases = {**HEALTHY, "data": 60.0}
    run.play(40)
    page = open_page(f"{RUN}?from=5&to=40", wait=".range-label:not(:empty)")
    expect(page.locator('[data-tile="data_share"] .number')).to_have_text(re.compile(r"^1\.\d$"))
    expect(page.locator(".findings > .nothing")).to_have_text("Nothing found in this range.")
    expect(page.locator(".finding-list > .finding:visible")).to_have_count(0)
    page.get_by_role("button", name=re.compile("Outside this range")).click()
    expect(page.locator(".finding:visible").first).to_be_visible()
    expect(page.locator('[data-tile="data_share"] .number')).not_to_have_text(re.compile(r"^1\.\d$"))


def test_an_address_can_be_sent_to_somebody(training: PlayedRun, open_page) -> None:
    """Range and finding are in it: a second viewer sees the same."""
    page = open_page(f"{RUN}?from=4&to=20&finding=data_starvation", wait=".finding.chosen")
    expect(page.locator(".range-label")).to_have_text("4 s – 20 s")
    page.keyboard.press("l")
    page.wait_for_function("() => !location.hash.includes('from=')")
    assert "finding=data_starvation" in page.url


def test_passed_checks_are_listed(page: Page) -> None:
    """What was looked for and not found is told, collapsed: silence is not the same as a pass."""
    details = page.locator("details.passed")
    expect(details).not_to_have_attribute("open", "")
    details.locator("summary").click()
    expect(details).to_contain_text("data_spikes")
    expect(details).not_to_contain_text("data_starvation")


def test_passed_checks_are_listed_also_when_the_snapshot_is_late(page: Page, open_page) -> None:
    """The first update may come before it, and no other one follows from a run that pauses."""
    held: list[Route] = []
    page.context.route("**/api/runs/20*", lambda route: held.append(route))
    late = open_page(tab_of=page)
    late.wait_for_function("() => document.querySelector('.tile .number').textContent !== '–'")
    expect(late.locator("details.passed")).to_be_hidden()
    held[0].continue_()
    expect(late.locator("details.passed")).to_contain_text("data_spikes")


def test_time_left_and_what_the_fix_saves(hub: PlayedHub, open_page) -> None:
    """Where the number of steps is known there is a time left, and the verdict says what of it is saved."""
    run = PlayedRun(hub)
    run.send(events=[{"kind": "fact", "rank": 0, "name": "plan", "value": {"steps": 100_000}}])
    run.play(30)
    page = open_page()
    expect(page.locator(".strip")).to_contain_text(re.compile(r"time left\s*1\s*h 5\d"))
    expect(page.locator(".verdict .saving")).to_have_text(
        re.compile(r"That saves \d\d.min .* of the remaining 1.h")
    )
    expect(page.locator(".strip .alerts")).to_contain_text("1")


def test_no_time_left_is_invented(page: Page) -> None:
    """Without a plan there is none."""
    expect(page.get_by_text("time left")).to_be_hidden()


@pytest.mark.parametrize(
    ("tab", "text"),
    [
        ("Configuration", "Given to attach"),
        ("Facts", "digits.py:31"),
        ("Stacks", "train.py:7 fetch"),
        ("Events", "attach"),
        ("Raw table", "step_ms"),
        ("Downloads", "csv"),
    ],
)
def test_the_drawer_holds_the_rest(training: PlayedRun, page: Page, tab: str, text: str) -> None:
    """Configuration, facts, stacks, events, the rows themselves, and files to take along."""
    frames = [{"file": "train.py", "line": 7, "func": "fetch"}]
    training.send(
        events=[{"kind": "stack", "rank": 0, "threads": [{"name": "MainThread", "frames": frames}]}]
    )
    page.keyboard.press("d")
    page.get_by_role("tab", name=tab).click()
    expect(page.get_by_role("tabpanel")).to_contain_text(text)
    expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_downloads_are_there(page: Page) -> None:
    """Each link brings a file; what the hub cannot write says how to make it able to."""
    page.keyboard.press("d")
    page.get_by_role("tab", name="Downloads").click()
    for link in page.locator(".downloads a").all():
        answer = page.request.get(
            page.evaluate("href => new URL(href, document.baseURI).href", link.get_attribute("href"))
        )
        assert answer.ok, answer.url
        assert "attachment" in answer.headers["content-disposition"]


def test_tabs_by_arrow_keys(page: Page) -> None:
    """Left and right go through the drawer's tabs, as screen readers expect."""
    page.locator(".drawer-open").click()
    page.get_by_role("tab", name="Configuration").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Facts")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("tab", name="Downloads")).to_be_focused()
