"""`torchvitals serve --otlp`: a hub that pushes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

from collector import Receiver

from monitor.cli import serve


@pytest.mark.parametrize("way", ["option", "variable"])
def test_a_collector_gets_what_metrics_tells(receiver: Receiver, way: str) -> None:
    """From the hub's own process, a last time when it ends; it ends as ever."""
    words = ["--otlp", receiver.url] if way == "option" else []
    env = {**os.environ, **({} if words else {"MONITOR_OTLP_ENDPOINT": receiver.url})}
    command = [sys.executable, "-m", "monitor", "serve", *words]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as hub:
        assert hub.stdout is not None
        while "token=" not in hub.stdout.readline():
            pass
        hub.send_signal(signal.SIGTERM)
        assert hub.wait(30) == 0
    named = {m.name for _, r in receiver.taken for m in r.resource_metrics[0].scope_metrics[0].metrics}
    assert {"torchvitals.agents", "torchvitals.viewers", "torchvitals.batches"} <= named


def test_without_its_library_the_hub_serves_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One line in its log says what to install."""
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    monkeypatch.delitem(sys.modules, "monitor.bridges.to_otlp", raising=False)
    for name in [name for name in sys.modules if name.startswith("opentelemetry.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter", None)
    assert serve._pusher("http://127.0.0.1:1", list) is None
    assert "torchvitals[otlp]" in caplog.text
