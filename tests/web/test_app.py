"""The doors together."""

from __future__ import annotations

import logging
import queue
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flask
import pytest
from waiting import until
from webhub import Hub, make_batch

from monitor.batch import to_bytes
from monitor.web.app import services_of
from monitor.web.source import Source


def test_what_an_agent_sends_a_browser_sees(hub: Hub):
    """In at one door, through the pipeline, out at the other, with every row."""
    seen: queue.Queue[dict[str, Any]] = queue.Queue()
    viewer = hub.viewer(on={"update": seen.put})
    viewer.call("watch", {"run": "run-1"}, namespace="/live")
    first = seen.get(timeout=5)
    agent = hub.agent("run-1")
    for seq in (2, 3, 4):
        agent.call("batch", to_bytes(make_batch(seq=seq)), namespace="/ingest")
    shown = [first]
    while shown[-1]["steps"] < 16:
        shown.append(seen.get(timeout=5))
    after = shown[1:]
    assert all(now["first_seq"] == before["seq"] + 1 for before, now in zip(shown, after, strict=False))
    assert shown[-1]["seq"] == first["seq"] + 3


def test_two_hubs_in_one_process_share_nothing(start_hub: Callable[..., Hub]):
    """No globals: what one hub knows the other does not."""
    one, other = start_hub(), start_hub()
    one.viewer()
    assert (one.services.live.viewers, other.services.live.viewers) == (1, 0)
    assert one.app is not other.app


def test_a_hub_is_busy_while_anybody_is_connected(hub: Hub):
    """An agent or a viewer; a read by REST does not count."""
    assert not hub.services.busy
    hub.get("/api/runs")
    assert not hub.services.busy
    viewer = hub.viewer()
    assert hub.services.busy
    viewer.disconnect()
    until(lambda: not hub.services.busy)


def test_a_fault_of_ours_is_logged_and_not_shown(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """500 in JSON, the traceback in the log, no debugger."""
    monkeypatch.setattr(Source, "runs", lambda self: 1 / 0)
    with caplog.at_level(logging.ERROR):
        answer = hub.get("/api/runs")
    assert (answer.status_code, set(answer.json())) == (500, {"error"})
    assert "ZeroDivisionError" in caplog.text
    assert not hub.app.debug


def test_an_address_is_right_or_it_is_not(hub: Hub):
    """No redirects that could be led elsewhere."""
    for path in ("//evil.example", "/api//runs", "/api/runs/", "/index.html", "/socket.io"):
        assert hub.get(path).status_code in (404, 405), path


def test_closed_doors_send_everybody_away(hub: Hub):
    """Agents keep what was not answered; nothing is taken any more."""
    agent, viewer = hub.agent("run-1"), hub.viewer()
    hub.services.close()
    until(lambda: not agent.connected and not viewer.connected)
    assert not hub.services.busy


def test_the_doors_are_found_on_the_app(hub: Hub):
    """For whoever runs the hub."""
    assert services_of(hub.app) is hub.services
    with pytest.raises(KeyError):
        services_of(flask.Flask("other"))


def test_every_route_is_documented(hub: Hub):
    """docs/api.md lists each of them."""
    page = (Path(__file__).parents[2] / "docs/api.md").read_text()
    told = set(re.findall(r"^\| `(/[^` ]*)` \|", page, re.MULTILINE))
    assert {re.sub(r"<\w+:", "<", rule.rule) for rule in hub.app.url_map.iter_rules()} - told == set()
