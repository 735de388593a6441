"""A real hub, real Chromium, and three things every test here holds the page to: no console error, no
request to anybody else, no error that went unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page
from simulated_run import PlayedHub, PlayedRun
from waiting import PATIENCE_S

Open = Callable[..., Page]


#: Werkzeug skips closing a file when the browser hung up while it was sent; the collector closes it.
HUNG_UP = "ignore:Exception ignored in. <_io.FileIO:pytest.PytestUnraisableExceptionWarning"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Pages are closed whenever a test ends, also in the middle of a file."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings(HUNG_UP))


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[PlayedHub]:
    """A hub without runs."""
    started = PlayedHub(tmp_path / "played")
    yield started
    started.stop()


@pytest.fixture
def training(hub: PlayedHub) -> PlayedRun:
    """A run that starves, half a minute old."""
    run = PlayedRun(hub)
    run.play(30)
    return run


@pytest.fixture
def complaints() -> list[str]:
    """What the browser complained of. A test that provokes complaints empties it."""
    return []


@pytest.fixture
def open_page(chromium: Browser, hub: PlayedHub, complaints: list[str]) -> Iterator[Open]:
    """Opens pages: `open_page("#/runs", viewport=…, color_scheme=…)`, or as a `tab_of` another."""
    contexts: list[BrowserContext] = []

    def open_(
        hash_: str = "",
        *,
        at: PlayedHub = hub,
        wait: str = ".tile .number",
        tab_of: Page | None = None,
        **options: Any,
    ) -> Page:
        page = (context_of(options) if tab_of is None else tab_of.context).new_page()
        page.on("console", lambda message: _note(message.type in ("error", "warning"), message.text))
        page.on("pageerror", lambda error: _note(True, str(error)))
        page.on("request", lambda request: _note(_is_foreign(request.url, at.port), request.url))
        page.goto(at.url(hash_))
        page.wait_for_selector(wait)
        return page

    def context_of(options: dict[str, Any]) -> BrowserContext:
        context = chromium.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
        contexts.append(context)
        context.set_default_timeout(1e3 * PATIENCE_S)
        return context

    def _note(bad: bool, text: str) -> None:
        if bad:
            complaints.append(text)

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def page(open_page: Open, training: PlayedRun) -> Page:
    """The page of `training`, with its numbers in place."""
    opened = open_page()
    opened.wait_for_function("() => document.querySelector('.tile .number').textContent !== '–'")
    return opened


def _is_foreign(url: str, port: int) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != f"127.0.0.1:{port}"
