"""The dashboard inside a notebook's page."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from webhub import INGEST, VIEWER, Hub

from monitor import frame_tickets
from monitor.web.frames import ANCESTORS

EVIL = {"Host": "evil.example", "Origin": "https://evil.example"}


def ticket(at: float | None = None) -> str:
    return frame_tickets.issue(VIEWER, "ticket", time.time() if at is None else at)


def entered(hub: Hub, query: str = "") -> str:
    """The path that a ticket is traded for."""
    answer = hub.get(f"/?ticket={ticket()}{query}", token=None)
    assert answer.status_code == 303
    return answer.headers["Location"].removeprefix(".")


def test_a_ticket_is_traded_for_a_path_that_opens_everything(hub: Hub):
    """No cookie is needed, so it works where browsers keep cookies back. Relative, so any prefix holds."""
    answer = hub.get(f"/?ticket={ticket()}&a=1", token=None)
    place = answer.headers["Location"]
    assert place.startswith("./in/")
    assert place.endswith("/?a=1")
    assert "Set-Cookie" not in answer.headers
    inside = place[1:].removesuffix("?a=1")
    for path in ("", "api/runs", "static/app/main.js", "api/runs/run-1/export.csv"):
        assert hub.get(inside + path, token=None).status_code == 200
    assert hub.get(inside + "nowhere", token=None).status_code == 404


def test_a_page_can_ask_whether_it_reaches_us(hub: Hub):
    """HEAD with a ticket is answered without a redirect, and readable from another origin by its success."""
    answer = hub.get(f"/?ticket={ticket()}", token=None, method="HEAD")
    assert (answer.status_code, "Cross-Origin-Resource-Policy" in answer.headers) == (204, False)
    assert hub.get(f"/?ticket={ticket(0)}", token=None, method="HEAD").status_code == 403


@pytest.mark.parametrize("prefix", ["/in/", "/?ticket="])
@pytest.mark.parametrize(
    "given",
    [
        "1-" + "0" * 32,
        frame_tickets.issue(VIEWER, "ticket", 0),
        frame_tickets.issue(VIEWER, "pass", 0),
        frame_tickets.issue(INGEST, "pass", time.time()),
        frame_tickets.issue(INGEST, "ticket", time.time()),
        VIEWER,
        "",
    ],
    ids=["made up", "old ticket", "old pass", "pass of agents", "ticket of agents", "token", "none"],
)
def test_what_ended_or_is_none_opens_nothing(hub: Hub, prefix: str, given: str):
    """A person is told to run the cell again; nothing is told about the hub."""
    answer = hub.get(f"{prefix}{given}{'/' if prefix == '/in/' else ''}", token=None)
    assert answer.status_code in (403, 404)
    assert "run-1" not in answer.text
    assert "Set-Cookie" not in answer.headers


def test_an_ended_view_says_what_to_do(hub: Hub):
    """In words, in the frame."""
    assert "Run the cell again" in hub.get(f"/in/{frame_tickets.issue(VIEWER, 'pass', 0)}/", token=None).text


def test_a_pass_holds_under_any_name(hub: Hub):
    """A notebook server's proxy tells its own name as Host. Nobody's browser adds a pass by itself, so no
    page elsewhere gains by it.
    """
    inside = entered(hub)
    assert hub.get(inside + "api/runs", token=None, headers={"Host": "hub.example.org"}).status_code == 200
    assert hub.get(inside + "api/runs", token=None, headers={"Host": "no host; at all"}).status_code == 403


def test_a_rebound_name_gains_nothing_by_the_way_in(hub: Hub):
    """Neither the viewer's token nor its cookie makes a wrong name right, below a path of its own either."""
    for path in (f"/?token={VIEWER}", f"/in/x/?token={VIEWER}", "/in/x/api/runs"):
        assert hub.get(path, headers=EVIL).status_code == 403


def test_only_pages_with_a_pass_may_be_framed_by_others(hub: Hub):
    """And only by notebooks; all else by nobody but the hub's own page."""
    inside = hub.get(entered(hub), token=None).headers["Content-Security-Policy"]
    plain = hub.get("/").headers["Content-Security-Policy"]
    assert f"frame-ancestors {ANCESTORS}" in inside
    assert plain.endswith("frame-ancestors 'self'")
    assert "*" not in ANCESTORS.replace("localhost:*", "").replace("127.0.0.1:*", "").replace("//*.", "")


def test_the_live_channel_opens_with_a_pass(hub: Hub):
    """Its path follows the page's. The origin is whatever the proxy's page has."""
    inside = entered(hub)
    client = hub.client("/live", socketio_path=f"{inside}socket.io", origin="https://hub.example.org")
    assert client.call("watch", {"run": "run-1"}, namespace="/live") == {"ok": True}


def test_a_pass_opens_no_agents_door(hub: Hub):
    """It is a viewer's."""
    refusal = hub.refusal(
        "/ingest", {"run": "run-1", "host": "box"}, socketio_path=f"{entered(hub)}socket.io"
    )
    assert "token" in refusal


def test_behind_a_proxy_with_a_prefix_it_holds_too(start_hub: Callable[..., Hub]):
    """`--proxy` and a pass do not get in each other's way."""
    hub = start_hub(proxy=True)
    headers = {"X-Forwarded-Prefix": "/tv", "X-Forwarded-Host": "team.example", "X-Forwarded-Proto": "https"}
    assert hub.get(entered(hub) + "api/runs", token=None, headers=headers).status_code == 200


def test_a_pass_becomes_no_cookie(hub: Hub):
    """A cookie would be good for as long as the viewer's token is; a pass ends by itself."""
    for token in ("x", INGEST, ""):
        answer = hub.get(f"{entered(hub)}?token={token}", token=None)
        assert "Set-Cookie" not in answer.headers
    assert "Set-Cookie" in hub.get(f"{entered(hub)}?token={VIEWER}", token=None).headers
