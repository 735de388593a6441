"""One WebSocket connection on the server's side, with limits in time and memory.

The Socket.IO server takes any class with `wait`, `send` and `close` as its WebSocket. The one it
brings reads without bound before it looks at a message's size, sends without looking whether all of
it went, and waits for ever for a peer that stopped reading. Anyone who can reach the port gets as
far as this, before any token is seen, so it is bounded here.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import simple_websocket
from wsproto.events import BytesMessage, TextMessage
from wsproto.utilities import ProtocolError

from . import socketio_compat
from .guard import Start, refuse
from .socketio_compat import PacedConnection

_log = logging.getLogger("monitor.web")

#: Key in the WSGI environ under which the namespaces find their connection's `WebSocket`.
ENVIRON_KEY = "monitor.websocket"
#: Bytes of one message before its sender has shown a token.
STRANGER_BYTES = 16 * 1024
#: Seconds a connection may take until it has shown a token.
STRANGER_S = 10.0
#: Complete messages that wait for their handler before the socket is no longer read.
MAX_WAITING = 8
#: Seconds a send may wait for a peer that does not read.
SEND_S = 20
#: Bytes read at once.
_CHUNK = 65536


class _Connection(PacedConnection):
    """The library's connection, made to push back instead of collecting without end."""

    def __init__(self, environ: dict[str, Any]) -> None:
        self._taken, self._sending, self._over = threading.Event(), threading.Lock(), False
        sock: socket.socket = environ["werkzeug.socket"]
        # The HTTP server's timeout would make every send a partial one; the kernel's does not.
        sock.settimeout(None)
        if os.name == "posix":
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_S, 0))
        super().__init__(environ, receive_bytes=_CHUNK, max_message_size=STRANGER_BYTES, thread_class=_Reader)

    def receive(self, timeout: float | None = None) -> Any:
        """The next message, as the library's; makes room for one more."""
        message = super().receive(timeout)
        self._taken.set()
        return message

    def send(self, data: str | bytes) -> None:
        """Send all of one message, or give the connection up."""
        try:
            with self._sending:
                message = BytesMessage(data) if isinstance(data, bytes) else TextMessage(data)
                self.sock.sendall(self.ws.send(message))
        except (OSError, ProtocolError):
            self.abort()
            raise simple_websocket.ConnectionClosed from None

    def abort(self) -> None:
        """End the connection without a word, and wake whoever waits for it."""
        self._over, self.connected = True, False
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.event.set()
        self._taken.set()

    def may_go_on(self) -> bool:
        """Wait until there is room; False where it has ended, or the library would call it back to life."""
        while not self._over and self.waiting >= MAX_WAITING:
            self._taken.clear()
            if self.waiting >= MAX_WAITING:
                self._taken.wait(1.0)
        return not self._over


class _Reader(threading.Thread):
    """The library's reading thread. What a peer's bytes can make it raise ends the connection, quietly."""

    def __init__(self, target: Callable[[], None]) -> None:
        super().__init__(name="websocket-reader", daemon=True)
        self._body, self._owner = target, getattr(target, "__self__", None)

    def run(self) -> None:
        """Read until the connection ends."""
        try:
            self._body()
        except Exception as error:  # noqa: BLE001  the peer's doing; the connection is the only victim
            _log.debug("websocket ended: %s", error)
        finally:
            if isinstance(self._owner, _Connection):
                self._owner.abort()
                self._owner.sock.close()


class WebSocket:
    """What the Socket.IO server calls for each connection: `WebSocket(handler, server)(environ, start)`."""

    def __init__(self, handler: Callable[[WebSocket], Any], server: Any) -> None:
        self._handler = handler
        self._admitted = False
        self._until = time.monotonic() + STRANGER_S
        self._connection: _Connection | None = None

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        """Shake hands and run the connection to its end.

        Raises:
            ConnectionError: always at the end; the HTTP server's sign that no answer is to be written.
        """
        try:
            self._connection = _Connection(environ)
        except (ProtocolError, simple_websocket.ConnectionError, OSError, KeyError, ValueError):
            socketio_compat.end_session(self._handler)
            return refuse(start, "400 BAD REQUEST", "not a WebSocket handshake")
        environ[ENVIRON_KEY] = self
        try:
            self._handler(self)
        finally:
            self._connection.abort()
        raise ConnectionError("websocket closed")

    def admit(self, limit: int) -> None:
        """Its sender has shown a token: messages up to `limit` bytes, and all the time in the world."""
        self._admitted = True
        if self._connection is not None:
            self._connection.max_message_size = limit

    def wait(self) -> Any:
        """The next message; None once the connection is over."""
        assert self._connection is not None
        while True:
            left = None if self._admitted else self._until - time.monotonic()
            if left is not None and left <= 0:
                return None
            try:
                message = self._connection.receive(left)
            except simple_websocket.ConnectionClosed:
                return None
            if message is not None or not self._connection.connected:
                return message

    def send(self, message: str | bytes) -> None:
        """Send one message. Raises OSError once the connection is over."""
        assert self._connection is not None
        try:
            self._connection.send(message)
        except simple_websocket.ConnectionClosed:
            raise OSError("websocket closed") from None

    def close(self) -> None:
        """Say good-bye and end the connection."""
        if self._connection is not None and self._connection.connected:
            with contextlib.suppress(OSError, ProtocolError, simple_websocket.ConnectionClosed):
                self._connection.close()
            self._connection.abort()
