"""The outermost WSGI layer: nothing inside it sees a request from the wrong place.

It checks Host before anything else, then Origin where a request could act (Socket.IO, and every
method but GET and HEAD), and sets the security headers on every answer, its own refusals included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from monitor.strict_json import dumps

from .auth import ADMITTED, Access, Refusals, split_host
from .frames import ANCESTORS

Start = Callable[..., Any]
Wsgi = Callable[[dict[str, Any], Start], Iterable[bytes]]

SOCKET_PATH = "/socket.io"
#: Longest body of any HTTP request, in bytes. Nothing here takes one.
MAX_BODY = 16 * 1024
#: Plotly writes style elements and draws images from data: and blob: URLs; nothing else needs more
#: than 'self'. The host is named because older browsers do not count ws: as 'self'.
POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self' ws://{host} wss://{host}; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors {ancestors}"
)


class HostGuard:
    """WSGI middleware that checks Host only. `refusals` counts who was turned away."""

    def __init__(self, app: Wsgi, access: Access, refusals: Refusals) -> None:
        self._app, self._access, self._refusals = app, access, refusals

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        """Refuse with 403, or hand the request on."""
        host = environ.get("HTTP_HOST", "")
        admitted = ADMITTED in environ and split_host(host) is not None
        if not (admitted or self._access.host_is_ours(host, own_address(environ))):
            self._refusals.note("host")
            return refuse(start, "403 FORBIDDEN", _host_advice(host))
        return self._admit(environ, start, host)

    def _admit(self, environ: dict[str, Any], start: Start, host: str) -> Iterable[bytes]:
        return self._app(environ, start)


class Guard(HostGuard):
    """WSGI middleware that checks Host and Origin and sets the security headers."""

    def _admit(self, environ: dict[str, Any], start: Start, host: str) -> Iterable[bytes]:
        # permessage-deflate makes a message ten times as dear and lets a small one unfold into a huge one.
        environ.pop("HTTP_SEC_WEBSOCKET_EXTENSIONS", None)
        if _could_act(environ) and not self._access.allows_origin(environ.get("HTTP_ORIGIN"), environ):
            self._refusals.note("origin")
            return refuse(start, "403 FORBIDDEN", "this page is not allowed to talk to the hub (Origin)")
        if not _body_is_small(environ):
            return refuse(start, "413 CONTENT TOO LARGE", f"no request has more than {MAX_BODY} bytes")

        def guarded(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            ancestors = ANCESTORS if ADMITTED in environ else "'self'"
            return start(status, headers + security_headers(host, headers, ancestors), *rest)

        return self._app(environ, guarded)


def security_headers(
    host: str, present: Iterable[tuple[str, str]] = (), ancestors: str = "'self'"
) -> list[tuple[str, str]]:
    """Headers for every answer, but for those that are `present`. `ancestors` may show it in a frame."""
    known = {name.lower() for name, _ in present}
    headers = [
        ("Content-Security-Policy", POLICY.format(host=host, ancestors=ancestors)),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
        ("Cache-Control", "no-store"),
    ]
    return [(name, value) for name, value in headers if name.lower() not in known]


def refuse(start: Start, status: str, why: str) -> list[bytes]:
    """Answer with a JSON error."""
    body = dumps({"error": why}).encode()
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    start(status, headers + security_headers("localhost"))
    return [body]


def own_address(environ: dict[str, Any]) -> str | None:
    """The address of this machine that the request arrived at; None where the server does not tell."""
    connection = environ.get("werkzeug.socket")
    try:
        address = str(connection.getsockname()[0]) if connection is not None else None
        # a socket for both families shows IPv4 addresses in IPv6's clothes
        return address.removeprefix("::ffff:") if address else None
    except OSError:
        return None


def _body_is_small(environ: dict[str, Any]) -> bool:
    length = str(environ.get("CONTENT_LENGTH") or "0")
    return length.isascii() and length.isdigit() and len(length) < 20 and int(length) <= MAX_BODY


def _could_act(environ: dict[str, Any]) -> bool:
    path = str(environ.get("PATH_INFO", ""))
    return path.startswith(SOCKET_PATH) or environ.get("REQUEST_METHOD") not in ("GET", "HEAD")


def _host_advice(host: str) -> str:
    name = "".join(c for c in host.rsplit(":", 1)[0] if c.isalnum() or c in "._-")[:80]
    return f"this hub does not answer to that name; start it with --allow-host {name or 'NAME'}"
