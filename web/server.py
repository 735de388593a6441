"""The HTTP server: Werkzeug's threaded one, bounded, quiet, and ended by one call.

Its own defaults are made for a developer at a terminal: it prints every request, names its version
to everybody, waits for ever for a slow client, and reads gigabytes of a body that nobody wants.
"""

from __future__ import annotations

import contextlib
import io
import logging
import socket
import threading
from typing import Any

from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from . import socketio_compat

_log = logging.getLogger("monitor.web")

#: Seconds a client may take for each piece of its request.
REQUEST_S = 20.0
#: Connections at a time, WebSockets among them. One costs two threads.
MAX_CONNECTIONS = 256
#: Bytes read of one HTTP request, its body included, before the rest is left unread.
MAX_READ = 256 * 1024


class _Bounded(io.BufferedIOBase):
    """A request's bytes, up to MAX_READ of them."""

    def __init__(self, inner: Any) -> None:
        self._inner, self._left = inner, MAX_READ

    def readline(self, size: int | None = -1, /) -> bytes:
        return self._counted(self._inner.readline(self._at_most(size)))

    def read(self, size: int | None = -1, /) -> bytes:
        return self._counted(self._inner.read1(self._at_most(size)))

    def _at_most(self, size: int | None) -> int:
        return self._left if size is None or size < 0 else min(size, self._left)

    def _counted(self, data: bytes) -> bytes:
        self._left -= len(data)
        return data

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._inner.close()
        super().close()


class _Handler(WSGIRequestHandler):
    timeout = REQUEST_S
    protocol_version = "HTTP/1.1"
    error_message_format = '{"error": "malformed request (%(code)d)"}'
    error_content_type = "application/json"

    def setup(self) -> None:
        super().setup()
        self.rfile = _Bounded(self.rfile)

    def make_environ(self) -> dict[str, Any]:
        try:
            return super().make_environ()
        except ValueError:  # an address that is none, such as "http://[/"
            self.send_error(400)
            raise ConnectionError("malformed address") from None

    def version_string(self) -> str:
        return "torchvitals"

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002  the library's name for it
        _log.debug(message, *args)


class Server:
    """A hub's server.

    Args:
        app: the WSGI application.
        listener: a listening socket; it is taken over.
        poll_s: how often it looks whether it is to stop.
    """

    def __init__(self, app: Any, listener: socket.socket, poll_s: float = 0.5) -> None:
        host, port = listener.getsockname()[:2]
        self._server: BaseWSGIServer = make_server(
            host, port, app, threaded=True, request_handler=_Handler, fd=listener.fileno()
        )
        listener.close()
        self._server.log = self._log  # type: ignore[method-assign]
        socketio_compat.admit_with(self._server, self._admit)
        self._connection_slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(poll_s,), name="server", daemon=True
        )

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._server.port

    def start(self) -> None:
        """Serve from now on, in threads of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Take no more requests, and close the port. Returns within `poll_s`."""
        self._server.shutdown()
        self._thread.join()

    def _admit(self, request: Any, address: Any) -> None:
        if not self._connection_slots.acquire(blocking=False):
            with contextlib.suppress(OSError):
                request.close()
            return
        try:
            socketio_compat.serve_in_thread(self._server, request, address, self._connection_slots.release)
        except RuntimeError:  # no more threads are to be had
            self._connection_slots.release()
            request.close()

    def _log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002  the library's name for it
        _log.log(logging.ERROR if type == "error" else logging.DEBUG, message, *args)
