"""A reverse proxy with a path prefix, as nginx, a notebook server or VS Code put before a hub. Bytes in,
bytes out, so WebSockets pass. What does not lie below the prefix are pages of its own.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Mapping

#: Longest head of a request.
_HEAD = 65536


class Proxy:
    """Listens on a port of 127.0.0.1 and hands on what lies below `prefix`, without it.

    Args:
        port: the hub's.
        prefix: "/" or like "/user/a/proxy/7007/".
        pages: path -> HTML of its own pages.
        headers: told to the hub, over those of the client; None takes one out.
    """

    def __init__(
        self,
        port: int,
        prefix: str = "/",
        pages: Mapping[str, str] | None = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> None:
        self._hub, self._prefix, self.pages, self._headers = port, prefix, dict(pages or {}), headers or {}
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _listen(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            head = self._read_head(client)
            line, *fields = head.split("\r\n")
            method, target, version = line.split(" ")
            path = target.split("?")[0]
            if path in self.pages:
                client.sendall(_answer("200 OK", self.pages[path], method))
            elif not target.startswith(self._prefix):
                client.sendall(_answer("404 Not Found", "no such page", method))
            else:
                line = f"{method} /{target[len(self._prefix) :]} {version}"
                self._pass_on(client, line, [field for field in fields if field])

    def _pass_on(self, client: socket.socket, line: str, fields: list[str]) -> None:
        known = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
        told = {**known, **{name.lower(): value for name, value in self._headers.items()}}
        if known.get("upgrade", "").lower() != "websocket":
            told["connection"] = "close"  # one request a connection is all that this proxy understands
        head = [line, *(f"{name}: {value}" for name, value in told.items() if value is not None), "", ""]
        with socket.create_connection(("127.0.0.1", self._hub)) as hub:
            hub.sendall("\r\n".join(head).encode("latin-1"))
            back = threading.Thread(target=_pour, args=(hub, client), daemon=True)
            back.start()
            _pour(client, hub)
            back.join()

    @staticmethod
    def _read_head(client: socket.socket) -> str:
        data = b""
        while b"\r\n\r\n" not in data and len(data) < _HEAD:
            part = client.recv(1)  # what follows the head belongs to whoever is behind
            if not part:
                raise OSError("gone")
            data += part
        return data.decode("latin-1")


def _pour(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _answer(status: str, body: str, method: str) -> bytes:
    data = body.encode()
    fields = ["Content-Type: text/html", f"Content-Length: {len(data)}", "Connection: close"]
    head = "\r\n".join([f"HTTP/1.1 {status}", *fields, "", ""])
    return head.encode() + (b"" if method == "HEAD" else data)
