"""One contract for each name of Socket.IO's libraries that nobody promises: it fails without the name."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from typing import Any

import pytest
import socketio
import tomllib
from engineio.socket import Socket as Session
from socketio.packet import EVENT, Packet
from sources import ROOT, modules
from waiting import until
from webhub import Hub
from werkzeug.serving import ThreadedWSGIServer, make_server

from monitor.web import socketio_compat

#: What only `socketio_compat` may name.
PRIVATE = re.compile(
    r"\._async\b|_send_packet|_handle_events|\bprocess_request|\.eio\b|\.callbacks\b|namespace_handlers"
    r"|input_buffer"
)


def test_nobody_else_names_them():
    """The private names stand in one module of the hub."""
    named = [
        module.name
        for module in modules().values()
        if module.room == "web" and PRIVATE.search(module.path.read_text())
    ]
    assert named == ["monitor.web.socketio_compat"]


@pytest.mark.parametrize(
    "name", ["flask-socketio", "python-socketio", "python-engineio", "simple-websocket", "werkzeug"]
)
def test_versions_are_bounded(name: str):
    """A release that may rename them all is not taken unseen."""
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (bounds,) = [need for need in needs if need.startswith(f"{name}>=")]
    assert re.search(r",<\d+$", bounds)


def test_async():
    """`_async` holds the class of WebSockets, which is made as (handler, server) and called as WSGI."""
    server = socketio.Server(async_mode="threading")
    before = dict(server.eio._async)
    socketio_compat.use_websocket(server, Odd)
    assert before["websocket"] is not None
    assert server.eio._async == {**before, "websocket": Odd}
    session = Session(server.eio, "sid")
    assert session._upgrade_websocket({"x": 1}, print) == [{"x": 1}, print, server.eio]


class Odd:
    """In the place of a WebSocket."""

    def __init__(self, handler: Callable[..., Any], server: Any) -> None:
        assert callable(handler)
        self._server = server

    def __call__(self, environ: dict[str, Any], start: Any) -> list[Any]:
        return [environ, start, self._server]


def test_send_packet():
    """`_send_packet(peer, packet)` encodes the packet and hands its text to that connection alone."""
    server, sent = socketio.Server(async_mode="threading"), []
    server.eio.send = lambda peer, text: sent.append((peer, text))
    packet = Packet(EVENT, data=["update", {"a": 1}], namespace="/live", id=7, binary=False)
    socketio_compat.send_packet(server, "peer-1", packet)
    assert sent == [("peer-1", '2/live,7["update",{"a":1}]')]


def test_answers():
    """`callbacks` holds what is called with a client's acknowledgement, by its number, once."""
    manager, heard = socketio.Manager(), []
    manager.set_server(socketio.Server(async_mode="threading"))
    socketio_compat.await_answer(manager, "sid", 7, lambda *args: heard.append(args))
    manager.trigger_callback("sid", 7, ["drawn"])
    manager.trigger_callback("sid", 7, ["again"])
    assert heard == [("drawn",)]
    socketio_compat.await_answer(manager, "sid", 8, lambda *args: heard.append(args))
    socketio_compat.forget_answers(manager, "sid")
    manager.trigger_callback("sid", 8, [])
    assert heard == [("drawn",)]


def test_namespace_handlers():
    """`namespace_handlers` gives a namespace back as it was registered."""
    server, live = socketio.Server(async_mode="threading"), socketio.Namespace("/live")
    server.register_namespace(live)
    assert socketio_compat.namespace_of(server, "/live") is live
    assert socketio_compat.namespace_of(server, "/other") is None


def test_sessions(hub: Hub):
    """`sockets` holds every session, and `close(wait=False, abort=True)` ends one."""
    client = hub.viewer()
    server = hub.services.sockets.server
    assert len(server.eio.sockets) == 1
    socketio_compat.end_connections(server)
    until(lambda: not client.connected)
    session = Session(server.eio, "odd")
    server.eio.sockets["odd"] = session
    socketio_compat.end_session(session._websocket_handler)
    assert session.closed
    socketio_compat.end_session(lambda: None)  # bound to no session: nothing to take back


def test_handle_events():
    """`_handle_events` runs after each read, ends the connection with False; `input_buffer` is what waits."""
    ours, theirs = socket.socketpair()
    environ = {
        "werkzeug.socket": ours, "REQUEST_METHOD": "GET", "HTTP_HOST": "x", "HTTP_UPGRADE": "websocket",
        "HTTP_CONNECTION": "Upgrade", "HTTP_SEC_WEBSOCKET_VERSION": "13",
        "HTTP_SEC_WEBSOCKET_KEY": "dGhlIHNhbXBsZSBub25jZQ==", "wsgi.input": None,
    }  # fmt: skip
    waited = []

    class Two(socketio_compat.PacedConnection):
        def may_go_on(self) -> bool:
            waited.append(self.waiting)
            return self.waiting < 2

    connection = Two(environ)
    assert b"101" in theirs.recv(4096)
    for number in (1, 2):
        theirs.sendall(b"\x81\x83\0\0\0\0abc")  # a text frame with the mask 0
        until(lambda number=number: number in waited)
    until(lambda: not connection.connected)
    theirs.close()


def test_process_request():
    """`process_request` gets each new connection, and `process_request_thread` serves one to its end."""

    def hello(environ: dict[str, Any], start: Any) -> list[bytes]:
        start("200 OK", [("Content-Length", "5")])
        return [b"hello"]

    server = make_server("127.0.0.1", 0, hello, threaded=True)
    assert isinstance(server, ThreadedWSGIServer)
    server.log = lambda *_: None
    admitted, ended = [], []

    def admit(request: Any, address: Any) -> None:
        admitted.append(address)
        socketio_compat.serve_in_thread(server, request, address, lambda: ended.append(address))

    socketio_compat.admit_with(server, admit)
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as client:
        server.handle_request()
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        answer = b""
        while part := client.recv(65536):
            answer += part
    until(lambda: ended == admitted)
    server.server_close()
    assert answer.endswith(b"hello")


def test_the_agents_socket(hub: Hub):
    """The agent reads `client.eio.ws`, to bound a send of its own."""
    assert hasattr(hub.viewer().eio.ws, "sock")
