"""The page while a run goes on, and when something goes wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from simulated_run import HEALTHY, PlayedHub, PlayedRun, shows_step
from waiting import until

pytestmark = pytest.mark.browser

CONNECTED = '.link[data-state="open"]'


def requests_for(page: Page, part: str) -> list[str]:
    seen: list[str] = []
    page.on("request", lambda request: seen.append(request.url) if part in request.url else None)
    return seen


def test_updates_arrive_by_themselves(page: Page, training: PlayedRun) -> None:
    """A step taken now is on the page a moment later, with no request."""
    page.wait_for_selector(CONNECTED)
    page.wait_for_load_state("networkidle")
    asked = requests_for(page, "/api/")
    training.play(1)
    shows_step(page, training.steps)
    assert asked == []


def test_title_and_icon_tell_the_state(page: Page, training: PlayedRun) -> None:
    """The tab shows speed and name, and its icon warns."""
    expect(page).to_have_title(re.compile(r"^▲ [\d.]+ it/s – digits$"))
    assert page.locator("link[rel=icon]").get_attribute("href") == "static/app/favicon-warn.svg"


def test_stale_data_is_loud(page: Page) -> None:
    """Six seconds without data from a run that runs, and the age is shouted."""
    expect(page.locator(".age")).to_be_visible()
    expect(page.locator(".age.stale")).to_be_visible(timeout=12_000)
    expect(page.locator(".age.stale")).to_contain_text(re.compile(r"data age\s*[5-9]\.\d"))


def test_killed_run(hub: PlayedHub, open_page) -> None:
    """A killed run names signal, last step and last phase; no age, since nothing is to come."""
    run = PlayedRun(hub, phases=HEALTHY)
    run.play(3)
    run.end(signal=9)
    page = open_page(f"#/run/{run.run}")
    expect(page.locator(".banner.critical")).to_have_text(
        re.compile(rf"Killed by SIGKILL at step {run.steps - 1},? during backward\.")
    )
    expect(page.locator(".strip .status")).to_have_text("killed")
    expect(page.locator(".age")).to_be_hidden()
    expect(page).to_have_title("✕ killed – digits")


def test_death_while_watching(page: Page, training: PlayedRun) -> None:
    """A crash shows itself on an open page."""
    page.wait_for_selector(CONNECTED)
    training.send(events=[{"kind": "exception", "rank": 0, "type": "RuntimeError", "message": "boom"}])
    training.end(code=1, reason="RuntimeError: boom")
    expect(page.locator(".banner.critical")).to_contain_text("Crashed (RuntimeError: boom)")


def test_hub_gone_and_back(hub: PlayedHub, open_page, tmp_path: Path, complaints: list[str]) -> None:
    """A hub that dies is reported; when it is back so is everything, the missed part included."""
    run = PlayedRun(hub, phases=HEALTHY)
    run.play(30)
    page = open_page()
    page.wait_for_selector(CONNECTED)
    hub.stop()
    expect(page.locator(".banner.warning")).to_contain_text("Connection to the hub lost")
    expect(page.locator(".link")).to_have_text("no connection")
    asked = requests_for(page, "/series")  # from before the hub is back: the page may ask at once
    fresh = PlayedHub(hub.run_dir, hub.port)
    try:
        run.hub = fresh
        run.play(5)
        page.wait_for_selector(CONNECTED)
        expect(page.locator(".banner-lines .banner")).to_have_count(0)
        shows_step(page, run.steps)
        until(lambda: page.evaluate("1") and any("stream=run" in url for url in asked))
    finally:
        fresh.stop()
        complaints.clear()  # the browser notes each refused connection


def test_lost_agent(hub: PlayedHub, open_page) -> None:
    """A lost agent is said, and that the training goes on."""
    run = PlayedRun(hub)
    run.play(3)
    live = hub.pipeline._runs[run.run]
    live.data_unix_s -= 60
    page = open_page(f"#/run/{run.run}")
    expect(page.locator(".banner-lines .banner")).to_contain_text("agent is gone")


def test_agent_as_a_thread(hub: PlayedHub, open_page) -> None:
    """Where the agent is a thread of the trainer, the page says so."""
    run = PlayedRun(hub)
    run.send(events=[{"kind": "run", "thread": True}])
    run.play(2)
    page = open_page()
    expect(page.locator(".banner-lines .banner.info")).to_contain_text("thread of the training process")


def test_diverged_loss_is_named(page: Page, training: PlayedRun) -> None:
    """A loss that is not finite is called NaN, loudly."""
    page.wait_for_selector(CONNECTED)
    training.send(events=[{"kind": "nan_loss", "rank": 0, "step": training.steps}])
    training.play(1, loss=float("nan"))
    expect(page.locator('[data-tile="loss"] .number')).to_have_text("NaN")
    expect(page.locator('[data-tile="loss"]')).to_have_class(re.compile("alarm"))


def test_a_viewer_without_access(hub: PlayedHub, open_page, complaints: list[str]) -> None:
    """A page whose cookie is gone says how to come back."""
    run = PlayedRun(hub)
    run.play(2)
    page = open_page("#/runs", wait="tbody tr")
    page.context.clear_cookies()
    page.evaluate(f"location.hash = '#/run/{run.run}'")
    expect(page.locator(".banner.critical")).to_contain_text(re.compile("no access|refused"))
    complaints.clear()  # the browser notes the 403


def test_leaving_a_run_ends_its_connection(page: Page, hub: PlayedHub) -> None:
    """The list keeps no live connection, and coming back opens one."""
    page.wait_for_selector(CONNECTED)
    page.evaluate("location.hash = '#/runs'")
    page.wait_for_selector("tbody tr")
    assert page.evaluate("document.querySelectorAll('.card').length") == 0
    page.go_back()
    page.wait_for_selector(CONNECTED)
