"""What we use of Socket.IO's libraries that their documentation does not promise: here and nowhere else.

| library | name | used for |
| --- | --- | --- |
| python-engineio | `Server._async["websocket"]` | a bounded WebSocket in the place of theirs |
| python-engineio | `Server.sockets`, `Socket.close(wait, abort)` | ending one session, or all |
| python-socketio | `Server._send_packet` | one encoded packet to many connections |
| python-socketio | `Manager.callbacks`, `Server.namespace_handlers` | acknowledgements; who came in |
| simple-websocket | `Base._handle_events`, `input_buffer` | reading no further while messages wait |
| Werkzeug | `process_request`, `process_request_thread` of the threaded server | a bound on connections |

Each has a test of its own in tests/web/test_socketio_compat.py, which fails where a new version takes the
name away; `pyproject.toml` bounds the versions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import simple_websocket
import socketio
from socketio.packet import Packet
from werkzeug.serving import BaseWSGIServer, ThreadedWSGIServer


def use_websocket(server: socketio.Server, websocket: type) -> None:
    """Have each connection run by `websocket(handler, server)(environ, start)`."""
    engine = server.eio
    engine._async = {**engine._async, "websocket": websocket}


def end_connections(server: socketio.Server) -> None:
    """Send everybody away, at once and without a word."""
    for session in list(server.eio.sockets.values()):
        session.close(wait=False, abort=True)


def end_session(handler: Callable[..., Any]) -> None:
    """Take back the session that was opened for a failed handshake; `handler` is its method."""
    session = getattr(handler, "__self__", None)
    if session is not None:
        session.close(wait=False, abort=True)


def namespace_of(server: socketio.Server, name: str) -> Any:
    """The namespace as it was handed to the server; None where there is none of that name."""
    return server.namespace_handlers.get(name)


def send_packet(server: socketio.Server, peer: str, packet: Packet) -> None:
    """Send a packet to the connection `peer`, a session of Engine.IO. Raises KeyError where it has gone."""
    server._send_packet(peer, packet)


def await_answer(manager: socketio.Manager, sid: str, number: int, answered: Callable[..., None]) -> None:
    """Call `answered(…)` when the client `sid` acknowledges packet `number`; earlier ones are forgotten."""
    manager.callbacks[sid] = {number: answered}


def forget_answers(manager: socketio.Manager, sid: str) -> None:
    """The client has gone: no acknowledgement will come."""
    manager.callbacks.pop(sid, None)


class PacedConnection(simple_websocket.Server):  # type: ignore[misc]  # the library is untyped
    """The library's connection. Its reading thread asks `may_go_on` after all it has read."""

    @property
    def waiting(self) -> int:
        """Messages that were read and that nobody has taken yet."""
        return len(self.input_buffer)

    def may_go_on(self) -> bool:
        """Whether to read on; may block until there is room. False ends the connection."""
        return True

    def _handle_events(self) -> bool:
        return bool(super()._handle_events()) and self.may_go_on()


def admit_with(server: BaseWSGIServer, admit: Callable[[Any, Any], None]) -> None:
    """Have `admit(connection, address)` decide what becomes of a new connection, in the accepting thread."""
    server.process_request = admit  # type: ignore[method-assign, assignment]


def serve_in_thread(server: BaseWSGIServer, request: Any, address: Any, ended: Callable[[], None]) -> None:
    """Serve it in a thread of its own; `ended()` when it is over. Raises RuntimeError without one."""
    assert isinstance(server, ThreadedWSGIServer)

    def serve() -> None:
        try:
            server.process_request_thread(request, address)
        finally:
            ended()

    threading.Thread(target=serve, name="request", daemon=True).start()
