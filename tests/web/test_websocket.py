"""What one connection may cost, before and after it has shown a token."""

from __future__ import annotations

import base64
import os
import socket
import struct
import threading
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from waiting import until
from webhub import VIEWER, Hub, make_batch

from monitor.batch import to_bytes
from monitor.web import websocket

HANDSHAKE = (
    "GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
    "Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: {version}\r\n{more}\r\n"
)


class Raw:
    """A WebSocket made by hand, so that it can do what no library does."""

    def __init__(self, hub: Hub, key: str = "", version: str = "13", more: str = "") -> None:
        key = key or base64.b64encode(os.urandom(16)).decode()
        self.socket = socket.create_connection(("127.0.0.1", hub.port), timeout=10)
        self.socket.sendall(HANDSHAKE.format(key=key, version=version, more=more).encode())
        self.head = b""
        while b"\r\n\r\n" not in self.head and (part := self.socket.recv(1)):
            self.head += part

    def frame(self, data: bytes, code: int = 1, final: bool = True, masked: bool = True) -> None:
        size = len(data)
        head = bytes([code | (0x80 if final else 0)])
        mask = 0x80 if masked else 0
        if size < 126:
            head += bytes([mask | size])
        else:
            head += bytes([mask | 127]) + struct.pack(">Q", size)
        self.socket.sendall(head + (b"\0\0\0\0" if masked else b"") + data)

    def ended(self) -> bool:
        """Read until the hub ends the connection."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionResetError:
            pass
        self.socket.close()
        return True


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patience with strangers ends at once."""
    monkeypatch.setattr(websocket, "STRANGER_S", 0.2)


def connections(hub: Hub) -> int:
    return sum(not peer.closed for peer in hub.services.sockets.server.eio.sockets.values())


def test_compression_is_never_agreed_on(hub: Hub):
    """permessage-deflate costs ten times the CPU, and a small message could unfold into a huge one."""
    raw = Raw(hub, more="Sec-WebSocket-Extensions: permessage-deflate\r\n")
    assert b" 101 " in raw.head
    assert b"extensions" not in raw.head.lower()
    raw.socket.close()


@pytest.mark.parametrize(
    ("key", "version", "more"), [("x", "12", ""), ("", "", ""), ("", "13", "Upgrade: h2c\r\n")]
)
def test_a_bad_handshake_is_answered_in_json(hub: Hub, key: str, version: str, more: str):
    """400 and words, no traceback, no connection left."""
    raw = Raw(hub, key=key, version=version, more=more)
    assert b" 400 " in raw.head.split(b"\r\n")[0]
    assert raw.ended()
    until(lambda: connections(hub) == 0)


def test_polling_is_not_spoken(hub: Hub):
    """One transport, one set of limits."""
    assert hub.get("/socket.io/?EIO=4&transport=polling").status_code == 400


@pytest.mark.usefixtures("quick")
def test_who_shows_no_token_is_sent_away(hub: Hub):
    """A silent connection does not hold its place for long."""
    raw = Raw(hub)
    assert connections(hub) == 1
    assert raw.ended()
    until(lambda: connections(hub) == 0)


@pytest.mark.usefixtures("quick")
def test_chatter_without_a_token_buys_no_time(hub: Hub):
    """The clock runs from the handshake, whatever is said meanwhile."""
    raw = Raw(hub)

    def chatter() -> None:
        try:
            while True:
                raw.frame(b"3")
                threading.Event().wait(0.01)
        except OSError:
            pass

    threading.Thread(target=chatter, daemon=True).start()
    until(lambda: connections(hub) == 0, 5)
    raw.socket.close()


@pytest.mark.usefixtures("quick")
def test_who_has_shown_a_token_may_be_silent(hub: Hub):
    """A viewer of a quiet run stays."""
    viewer = hub.viewer()
    threading.Event().wait(0.4)
    assert viewer.call("watch", {"run": "run-1"}, namespace="/live") == {"ok": True}


def test_a_stranger_cannot_send_much(hub: Hub):
    """Before a token is seen, 16 KB is all that is taken, in one piece or in many."""
    for pieces in (1, 64):
        raw = Raw(hub)
        try:
            for piece in range(pieces):
                raw.frame(b"4" * (1_000_000 // pieces), code=0 if piece else 1, final=piece == pieces - 1)
        except OSError:
            pass
        assert raw.ended()
    until(lambda: connections(hub) == 0)


def test_a_viewer_cannot_send_much_either(hub: Hub):
    """It has only requests to make."""
    viewer = hub.viewer()
    viewer.emit("watch", {"run": "x" * 100_000}, namespace="/live")
    until(lambda: hub.services.live.viewers == 0)


def test_a_flood_is_not_collected(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    """While a batch is being stored the socket is not read on: the agent's kernel waits, not our memory."""
    agent, go = hub.agent("run-2"), threading.Event()
    take = hub.pipeline.take
    monkeypatch.setattr(hub.pipeline, "take", lambda batch: (go.wait(10), take(batch)))
    answers: list[dict[str, int]] = []
    for seq in range(1, 41):
        data = to_bytes(make_batch("run-2", seq=seq, rows=2_000))
        agent.emit("batch", data, namespace="/ingest", callback=answers.append)
    held = [connection_of(thread) for thread in threading.enumerate() if connection_of(thread) is not None]
    until(lambda: any(connection.input_buffer for connection in held))
    # one read from the socket may bring a few messages at once
    assert max(len(connection.input_buffer) for connection in held) <= websocket.MAX_WAITING + 4
    go.set()
    until(lambda: len(answers) == 40)


def connection_of(thread: threading.Thread) -> websocket._Connection | None:
    owner = getattr(thread, "_owner", None)
    return owner if isinstance(owner, websocket._Connection) else None


def test_a_viewer_that_does_not_read_is_given_up(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    """Its connection ends after a while, with its threads; the others saw nothing of it."""
    monkeypatch.setattr(websocket, "SEND_S", 1)
    raw = Raw(hub)
    raw.frame(f'40/live,{{"token":"{VIEWER}"}}'.encode())
    until(lambda: hub.services.live.viewers == 1)
    hub.pipeline.states["run-1"] = {"run": "run-1", "seq": 1, "filler": "x" * 30_000_000}
    raw.frame(b'42/live,["watch",{"run":"run-1"}]')
    until(lambda: hub.services.live.viewers == 0)
    raw.socket.close()


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    frames=st.lists(
        st.tuples(st.binary(max_size=40), st.integers(0, 15), st.booleans(), st.booleans()), max_size=5
    )
)
def test_no_frames_break_the_hub(hub: Hub, frames: list[tuple[bytes, int, bool, bool]]):
    """Whatever frames come, that connection is the only one to suffer, and no thread dies of it."""
    raw = Raw(hub)
    try:
        for frame in frames:
            raw.frame(*frame)
        raw.socket.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    assert raw.ended()


PACKETS = st.text(alphabet='0123456789-/,[]{}":live ingest_placehod', max_size=40)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(packets=st.lists(PACKETS, max_size=4))
def test_no_packets_break_the_hub(hub: Hub, packets: list[str]):
    """Nor does anything in Engine.IO's or Socket.IO's own language, token shown or not."""
    raw = Raw(hub)
    try:
        raw.frame(f'40/live,{{"token":"{VIEWER}"}}'.encode())
        for packet in packets:
            raw.frame(b"4" + packet.encode())
        raw.socket.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    assert raw.ended()
    assert hub.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    "packet",
    [
        '2/live,["connect",{},{"token":"x"}]',
        '2/live,["disconnect"]',
        '51-/live,["watch",{"_placeholder":true,"num":9}]',
    ]
    + [
        "3/live,99[]",
        '2/live,7["watch"]',
        '2/live,["watch"' + "[" * 5000,
        "5999999999-/live,[]",
        "52-/live,[]",
        "1/live,",
        "0/live,",
    ],
)
def test_known_tricks_do_nothing(hub: Hub, packet: str):
    """Reserved events, missing attachments, unknown acknowledgements, deep nesting."""
    raw = Raw(hub)
    raw.frame(f'40/live,{{"token":"{VIEWER}"}}'.encode())
    raw.frame(b"4" + packet.encode())
    raw.socket.shutdown(socket.SHUT_WR)
    assert raw.ended()
    until(lambda: hub.services.live.viewers == 0)
    assert hub.get("/api/runs").status_code == 200


def test_the_hub_hears_all_that_one_agent_says(start_hub: Callable[..., Hub]):
    """A batch as large as may be arrives whole."""
    hub = start_hub()
    agent = hub.agent("run-2")
    data = to_bytes(make_batch("run-2", rows=20_000))
    assert agent.call("batch", data, namespace="/ingest") == {"seq": 1}
