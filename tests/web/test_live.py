"""The browsers' door."""

from __future__ import annotations

import json
import queue
from typing import Any

import pytest
import socketio
from socketio.packet import EVENT
from waiting import until
from webhub import INGEST, VIEWER, Hub, make_batch

from monitor.batch import to_bytes
from monitor.web.live import Encoded, SocketManager, StrictPacket


class Screen:
    """What a viewer was shown. Acknowledges unless it is told to hold back."""

    def __init__(self, hub: Hub, room: dict[str, Any]) -> None:
        self.shown: queue.Queue[dict[str, Any]] = queue.Queue()
        self.client = hub.viewer(on={"update": self.draw, "runs": self.draw})
        self.answer = self.watch(room)

    def draw(self, data: dict[str, Any]) -> None:
        self.shown.put(data)

    def watch(self, room: Any) -> dict[str, Any]:
        return self.client.call("watch", room, namespace="/live")

    def next(self) -> dict[str, Any]:
        return self.shown.get(timeout=5)


def state(seq: int, run: str = "run-1", **more: Any) -> dict[str, Any]:
    return {"run": run, "seq": seq, "status": "running", "rows": {}, **more}


def test_who_comes_sees_the_present_state_at_once(hub: Hub):
    """No waiting for the next batch."""
    hub.pipeline.states["run-1"] = state(41)
    screen = Screen(hub, {"run": "run-1"})
    assert screen.answer == {"ok": True}
    assert screen.next()["seq"] == 41


def test_every_viewer_of_a_run_sees_its_updates_and_no_other(hub: Hub):
    """One room a run."""
    hub.pipeline.take(make_batch("run-2"))
    screens = [Screen(hub, {"run": "run-1"}) for _ in range(3)] + [Screen(hub, {"run": "run-2"})]
    assert [screen.next()["run"] for screen in screens] == ["run-1"] * 3 + ["run-2"]
    hub.pipeline.publish("run-1", state(1, loss=float("nan")))
    assert [screen.next() for screen in screens[:3]] == [state(1, loss=None, first_seq=1)] * 3
    hub.pipeline.publish("run-2", state(9, "run-2"))
    assert screens[3].next()["seq"] == 9


def test_updates_go_on_as_long_as_they_are_drawn(hub: Hub):
    """Each acknowledgement brings the next."""
    screen = Screen(hub, {"run": "run-1"})
    screen.next()
    for seq in (1, 2, 3):
        hub.pipeline.publish("run-1", state(seq))
        assert screen.next()["seq"] == seq


def test_a_viewer_that_never_acknowledges_holds_nothing_up(hub: Hub):
    """It is sent one message; the others, and the agents, notice nothing; nothing piles up for it."""
    slow = hub.viewer()
    slow.eio.handlers["message"] = lambda data: None  # reads, but answers nothing
    slow.emit("watch", {"run": "run-1"}, namespace="/live")
    until(lambda: hub.services.live.publisher.viewers == 1)
    quick, agent = Screen(hub, {"run": "run-1"}), hub.agent("run-1")
    quick.next()
    for seq in range(1, 6):
        hub.pipeline.publish("run-1", state(seq, filler="x" * 100_000))
        assert quick.next()["seq"] == seq
        assert agent.call("batch", to_bytes(make_batch(seq=seq + 1)), namespace="/ingest") == {"seq": seq + 1}
    waiting = [peer.queue.qsize() for peer in hub.services.sockets.server.eio.sockets.values()]
    assert max(waiting) <= 1


def test_the_list_of_runs_is_watched_too(hub: Hub):
    """The runs page sees a run that begins while it is open."""
    screen = Screen(hub, {"runs": True})
    assert [run["run"] for run in screen.next()["runs"]] == ["run-1"]
    hub.pipeline.take(make_batch("run-2"))
    hub.pipeline.publish("run-2", state(1, "run-2"))
    assert [run["run"] for run in screen.next()["runs"]] == ["run-2", "run-1"]


@pytest.mark.parametrize(
    "wish",
    [{}, [], None, 5, "run-1", {"run": None}, {"run": 5}, {"run": "x" * 500}, {"runs": 1}]
    + [
        {"run": "nobody"},
        {"run": "../runs/run-1"},
        {"run": ".."},
        {"run": ""},
        {"run": "run-1/"},
        {"run": "*"},
    ],
)
def test_what_cannot_be_watched_is_said(hub: Hub, wish: Any):
    """A wrong wish is answered with an error, and the next one is heard."""
    screen = Screen(hub, wish)
    assert set(screen.answer) == {"error"}
    assert screen.watch({"run": "run-1"}) == {"ok": True}


@pytest.mark.parametrize("token", [INGEST, "", None, VIEWER[:-1], 5])
def test_no_other_token_lets_a_viewer_in(hub: Hub, token: object):
    """The agents' token shows nothing."""
    assert "token" in hub.refusal("/live", {"token": token})
    assert hub.services.live.viewers == 0


@pytest.mark.parametrize("auth", [None, [], "v" * 32, {"token": {"a": 1}}, 5])
def test_no_shape_of_auth_breaks_the_door(hub: Hub, auth: object):
    """It is the token or it is not."""
    assert "token" in hub.refusal("/live", auth)


def test_cookie_and_bearer_let_a_viewer_in(hub: Hub):
    """The page uses its cookie, a script may use a header."""
    cookie = hub.get(f"/?token={VIEWER}", token=None).headers["Set-Cookie"].split(";")[0]
    hub.client("/live", headers={"Cookie": cookie})
    hub.client("/live", headers={"Authorization": f"Bearer {VIEWER}"})
    assert hub.services.live.viewers == 2


@pytest.mark.parametrize("origin", ["null", "https://evil.example", "http://localhost:1", "file://"])
def test_a_foreign_page_cannot_connect_even_with_the_cookie(hub: Hub, origin: str):
    """A page elsewhere that makes the browser send the cookie is refused for its Origin."""
    cookie = hub.get(f"/?token={VIEWER}", token=None).headers["Set-Cookie"].split(";")[0]
    with pytest.raises(socketio.exceptions.ConnectionError):
        hub.client("/live", headers={"Cookie": cookie}, origin=origin)


def test_a_viewer_cannot_ingest_and_an_agent_cannot_view(hub: Hub):
    """Neither namespace accepts the other's events or token."""
    viewer, agent = hub.viewer(), hub.agent("run-1")
    assert viewer.call("batch", to_bytes(make_batch(seq=2)), namespace="/live") == {"error": "no such event"}
    assert agent.call("watch", {"run": "run-1"}, namespace="/ingest") == {"error": "no such event"}
    assert len(hub.pipeline.taken) == 1


def test_a_gone_viewer_leaves_nothing(hub: Hub):
    """No room, no debt, no callback stays behind."""
    screen = Screen(hub, {"run": "run-1"})
    screen.next()
    screen.client.disconnect()
    until(lambda: hub.services.live.viewers == 0)
    publisher, manager = hub.services.live.publisher, hub.services.sockets.server.manager
    until(lambda: not publisher.viewers and not manager.callbacks)
    assert publisher._rooms == {}


def test_a_run_that_cannot_be_read_is_said(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    """The viewer is told, watches nothing, and may try again."""
    monkeypatch.setattr(hub.pipeline, "snapshot", lambda run: 1 / 0)
    screen = Screen(hub, {"run": "run-1"})
    assert "cannot be read" in screen.answer["error"]
    assert hub.services.live.publisher.viewers == 0


def test_pieces_are_not_collected(hub: Hub):
    """A client that announces more binary pieces than any event has is not listened to."""
    with pytest.raises(ValueError, match="binary"):
        StrictPacket(encoded_packet='52-/live,["watch",{}]')
    assert StrictPacket(encoded_packet='51-/ingest,["batch",{}]').attachment_count == 1


def test_one_message_has_one_encoding(monkeypatch: pytest.MonkeyPatch):
    """However many it goes to, JSON is made once; every reader gets valid JSON."""
    packet = Encoded(EVENT, data=["update", {"x": float("nan")}], namespace="/live", id=3, binary=False)
    text = packet.encode()
    assert packet.encode() is text
    assert text.startswith("2/live,3")
    assert json.loads(text[len("2/live,3") :]) == ["update", {"x": None}]


def test_a_viewer_has_one_open_acknowledgement_at_most(hub: Hub):
    """What the server remembers of a viewer does not grow with what it was sent."""
    screen = Screen(hub, {"run": "run-1"})
    screen.next()
    for seq in (1, 2, 3):
        hub.pipeline.publish("run-1", state(seq))
        screen.next()
    manager: SocketManager = hub.services.sockets.server.manager
    until(lambda: all(len(open_) <= 1 for open_ in manager.callbacks.values()))
