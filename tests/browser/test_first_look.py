"""What somebody sees who opens the page."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect
from simulated_run import HEALTHY, PlayedHub, PlayedRun

pytestmark = pytest.mark.browser

EVIL = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>'


def tile(page: Page, name: str) -> str:
    return page.locator(f'[data-tile="{name}"] .number').inner_text()


def test_newest_live_run(page: Page, training: PlayedRun) -> None:
    """The bare address shows the newest run that lives: name, status, step, epoch."""
    expect(page.locator("h1")).to_have_text("digits")
    expect(page.locator(".strip .status")).to_have_text("running")
    expect(page.locator(".strip")).to_contain_text(f"step{training.steps}")
    expect(page.locator(".strip")).to_contain_text("epoch0")


def test_tiles_tell_the_numbers(page: Page, training: PlayedRun) -> None:
    """Tiles show the hub's own numbers."""
    tiles = training.hub.pipeline.snapshot(training.run)["tiles"]
    assert float(tile(page, "steps_per_s")) == pytest.approx(tiles["steps_per_s"], rel=0.01)
    assert float(tile(page, "step_p50_ms")) == pytest.approx(tiles["step_p50_ms"], rel=0.01)
    assert float(tile(page, "data_share")) == pytest.approx(100 * tiles["data_share"], abs=0.6)


def test_not_measured_is_no_zero(page: Page) -> None:
    """What nobody measured is a dash that says so."""
    tokens = page.locator('[data-tile="tokens_per_s"] .number')
    expect(tokens).to_have_text("–")
    expect(tokens).to_have_attribute("title", "not measured")


def test_no_gpu_in_words(page: Page) -> None:
    """Without a GPU the page says so, and draws no GPU chart."""
    expect(page.locator('[data-tile="gpu"]')).to_contain_text("no GPU")
    expect(page.locator(".absent").first).to_have_text("GPU utilisation and memory: no GPU")
    expect(page.locator('[data-panel="gpu"]')).to_be_hidden()


def test_gpu_in_numbers(hub: PlayedHub, open_page) -> None:
    """With GPUs there are their utilisation and memory, in tile and charts."""
    PlayedRun(hub, gpus=2).play(5)
    page = open_page()
    expect(page.locator('[data-tile="gpu"]')).to_contain_text("% of 2")
    expect(page.locator('[data-panel="gpu"]')).to_be_visible()
    expect(page.locator('[data-panel="gpus"]')).to_be_visible()
    expect(page.locator('[data-panel="data"]')).to_be_hidden()


def test_verdict_in_one_sentence(page: Page) -> None:
    """The verdict is one sentence with a tone, and is read out once."""
    verdict = page.locator(".verdict")
    expect(verdict).to_have_attribute("data-tone", "warning")
    expect(verdict.locator("p")).to_contain_text("Training waits for data")
    expect(verdict.locator("[aria-live=polite]")).to_contain_text("Training waits for data")


def test_healthy_run(hub: PlayedHub, open_page) -> None:
    """A healthy run is called healthy, and has no finding."""
    PlayedRun(hub, phases=HEALTHY).play(30)
    page = open_page()
    expect(page.locator(".verdict")).to_have_attribute("data-tone", "good")
    expect(page.locator(".findings > .nothing")).to_have_text("Nothing found so far.")


def test_finding_says_what_to_change(page: Page) -> None:
    """A finding has severity in words, evidence with units, place, advice, fix and gain with its basis."""
    card = page.locator(".finding").first
    expect(card.locator(".severity")).to_have_text("Warning")
    expect(card.locator("h3")).to_have_text("Training waits for data")
    expect(card.locator(".location")).to_contain_text("digits.py:31")
    expect(card.locator(".evidence")).to_contain_text(re.compile(r"wait ms p50|wait p50"))
    expect(card.locator("pre")).to_contain_text("num_workers=")
    expect(card.locator(".gain")).to_contain_text(re.compile(r"up to \d\.\d+× faster"))
    expect(card.locator(".basis")).to_contain_text("ms a step")


def test_not_checked_is_told(page: Page) -> None:
    """Checks that could not run are listed with their reason, collapsed."""
    details = page.locator("details.unchecked")
    expect(details).not_to_have_attribute("open", "")
    details.locator("summary").click()
    expect(details.locator("li").first).to_be_visible()


def test_list_of_runs(hub: PlayedHub, open_page) -> None:
    """The list has all runs, live ones first, and leads to each."""
    old = PlayedRun(hub, name="old", run="20261129-030000-old-ffff")
    old.play(3)
    old.end(code=0, clean=True)
    PlayedRun(hub, name="new").play(3)
    page = open_page("#/runs", wait="tbody tr")
    expect(page.locator("tbody tr").first).to_contain_text("new")
    expect(page.locator("tbody tr").nth(1)).to_contain_text("finished")
    page.get_by_role("link", name="old").click()
    expect(page.locator("h1")).to_have_text("old")
    assert page.url.endswith("#/run/20261129-030000-old-ffff")


def test_only_ended_runs(hub: PlayedHub, open_page) -> None:
    """Where no run lives the bare address shows the list."""
    run = PlayedRun(hub)
    run.play(2)
    run.end(code=0, clean=True)
    page = open_page(wait="tbody tr")
    expect(page.locator("h1")).to_have_text("Runs")


def test_no_runs(open_page) -> None:
    """A hub without runs says how to begin."""
    page = open_page(wait=".runs .nothing")
    expect(page.locator(".nothing")).to_contain_text("torchvitals run train.py")


def test_unknown_run(hub: PlayedHub, open_page, complaints: list[str]) -> None:
    """An address of a run that is not there says so."""
    page = open_page("#/run/nope", wait=".banner")
    expect(page.locator(".banner").first).to_contain_text("no such run")
    complaints.clear()  # the browser itself notes the 404


def test_hostile_names_are_only_text(hub: PlayedHub, open_page) -> None:
    """Names, places and code from the training stay text, whatever is in them."""
    loader = {"location": EVIL, "call": f"DataLoader({EVIL!r}, num_workers=0)", "dataset": EVIL}
    run = PlayedRun(hub, name=EVIL, loader=loader)
    run.play(30)
    run.send(events=[{"kind": "warn", "rank": 0, "text": EVIL}])
    page = open_page()
    expect(page.locator("h1")).to_have_text(EVIL)
    expect(page.locator(".finding .location").first).to_contain_text("<img")
    expect(page.locator(".banner-lines .banner")).to_contain_text("<img")
    page.evaluate("location.hash = '#/runs'")
    expect(page.locator("tbody th a")).to_have_text(EVIL)
    assert page.evaluate("window.pwned") is None
    assert page.locator("img, main script").count() == 0


def test_first_numbers_come_at_once(hub: PlayedHub, training: PlayedRun, open_page) -> None:
    """Tiles and verdict wait for neither the chart library nor the history."""
    page = open_page(wait=".verdict[data-tone=warning]")
    loaded = page.evaluate(
        "() => performance.getEntriesByType('resource').filter(e => e.name.includes('plotly.js'))"
        ".map(e => e.startTime)"
    )
    seen = page.evaluate("() => performance.now()")
    assert all(start < seen for start in loaded)
    expect(page.locator('[data-tile="steps_per_s"] .number')).not_to_have_text("–")
