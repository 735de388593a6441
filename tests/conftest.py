"""Shared by all tests: a state folder and an environment of their own, and one browser."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from own_processes import processes_of

CHROMIUM_ARGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


@pytest.fixture(autouse=True)
def own_environment() -> Iterator[None]:
    """What a framework writes into the environment (Accelerate: LOCAL_RANK) does not reach the next test."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(autouse=True)
def own_state(own_environment: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Tokens, ports and runs of this test live in its own folder; no hub that it started stays."""
    state = tmp_path / "state"
    monkeypatch.setenv("MONITOR_STATE_DIR", str(state))
    monkeypatch.setenv("MONITOR_RUN_DIR", str(tmp_path / "runs"))
    monkeypatch.delenv("MONITOR", raising=False)
    yield state
    if (state / "hubs").exists():
        for pid in processes_of(state).values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """One browser for all tests (Playwright starts once a process); each test opens a context of its own."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=CHROMIUM_ARGS)
        yield browser
        browser.close()


@pytest.fixture
def receiver() -> Iterator[Any]:
    """A `collector.Receiver`: takes what is pushed to it."""
    from collector import Receiver  # needs OTLP's messages, which most tests do not

    server = Receiver()
    yield server
    server.shutdown()
    server.server_close()
