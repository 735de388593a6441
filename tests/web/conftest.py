"""Hubs for tests: real server, real port, real clients."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from webhub import INGEST, VIEWER, Hub, WatchedPipeline, make_batch

from monitor.web.app import create_app
from monitor.web.auth import Tokens
from monitor.web.server import Server


@pytest.fixture
def start_hub(tmp_path: Path) -> Iterator[Callable[..., Hub]]:
    """Starts hubs; all are stopped at the end."""
    started: list[tuple[Hub, Server]] = []

    def start(**options: Any) -> Hub:
        run_dir = tmp_path / "runs"
        run_dir.mkdir(exist_ok=True)
        listener = socket.create_server(("127.0.0.1", 0))
        pipeline = WatchedPipeline(run_dir)
        app = create_app(pipeline, run_dir=run_dir, tokens=Tokens(VIEWER, INGEST), **options)
        server = Server(app, listener, poll_s=0.02)
        server.start()
        hub = Hub(app, server.port, pipeline)
        started.append((hub, server))
        return hub

    yield start
    for hub, server in started:
        hub.close()
        server.stop()
        hub.services.close()
        hub.pipeline.close()


@pytest.fixture
def hub(start_hub: Callable[..., Hub]) -> Hub:
    """One hub with one run, `run-1`."""
    hub = start_hub()
    hub.pipeline.take(make_batch())
    return hub
