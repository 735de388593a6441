"""Frames: the dashboard inside a notebook's page. The outermost WSGI layer; sees a request before its Host.

`/?ticket=…` is answered with the way to `/in/PASS/`; what is asked for below that is answered as if it stood
at the top and a viewer's cookie came with it. Such a request is exempt from the checks of Host and Origin:
they protect those whose browser adds a cookie by itself, and nobody's browser adds a pass by itself. That
is what lets one mechanism work behind a notebook server's proxy whatever its name is.

Only these pages may be framed by others than the hub's own, and only by those in ANCESTORS.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qsl, urlencode

from monitor import frame_tickets

from .auth import ADMITTED, Tokens

#: Who may frame a page that was asked for with a pass, besides its own origin (a notebook server's proxy):
#: notebooks on this machine or through a tunnel, VS Code, Colab.
ANCESTORS = (
    "'self' http://localhost:* http://127.0.0.1:* vscode-webview: vscode-file: "
    "https://colab.research.google.com https://*.googleusercontent.com https://*.colab.dev"
)
#: Longest query that a ticket's address may have besides it.
_MAX_FIELDS = 20
_PATH = re.compile(r"/in/([A-Za-z0-9._-]{1,128})(/.*)\Z")
_OVER = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>torchvitals</title>
<style>body{font:15px/1.6 system-ui,sans-serif;margin:2rem;color:#1b1f24;background:#fff}
@media(prefers-color-scheme:dark){body{color:#e6e8eb;background:#14171a}}</style>
<p>This view of the dashboard has ended. Run the cell again to see it.</p></html>"""

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Frames:
    """WSGI middleware around the guards.

    Args:
        app: everything else.
        tokens: the hub's.
        clock: unix seconds.
    """

    def __init__(self, app: Wsgi, tokens: Tokens, clock: Callable[[], float] = time.time) -> None:
        self._app, self._tokens, self._clock = app, tokens, clock

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Trade a ticket, enter with a pass, or hand the request on as it is."""
        path, query = str(environ.get("PATH_INFO", "")), str(environ.get("QUERY_STRING", ""))
        found = _PATH.match(path)
        if found is not None:
            if not self._good(found[1], "pass"):
                return _over(start)
            environ["SCRIPT_NAME"] = f"{environ.get('SCRIPT_NAME', '')}/in/{found[1]}"
            environ["PATH_INFO"], environ[ADMITTED] = found[2], True
        elif path == "/" and "ticket=" in query:
            return self._trade(query, start, asked=environ.get("REQUEST_METHOD") == "HEAD")
        return self._app(environ, start)

    def _trade(self, query: str, start: Callable[..., Any], asked: bool) -> Iterable[bytes]:
        """`asked`: a notebook's page wants to know only whether it can reach us under this address."""
        try:
            fields = parse_qsl(query, max_num_fields=_MAX_FIELDS)
        except ValueError:
            fields = []
        if not any(name == "ticket" and self._good(given, "ticket") for name, given in fields):
            return _over(start)
        if asked:
            start("204 NO CONTENT", _headers(0)[1:])
            return []
        rest = urlencode([(name, value) for name, value in fields if name not in ("ticket", "token")])
        address = f"./in/{frame_tickets.issue(self._tokens.viewer, 'pass', self._clock())}/"
        start("303 SEE OTHER", _headers(0) + [("Location", f"{address}?{rest}" if rest else address)])
        return []

    def _good(self, given: str, kind: frame_tickets.Kind) -> bool:
        return frame_tickets.holds(given, self._tokens.viewer, kind, self._clock())


def _over(start: Callable[..., Any]) -> list[bytes]:
    start("403 FORBIDDEN", _headers(len(_OVER)) + [("Content-Type", "text/html; charset=utf-8")])
    return [_OVER]


def _headers(length: int) -> list[tuple[str, str]]:
    """Of an answer that shows nothing, so anybody may frame it: it is how a person learns what to do."""
    return [
        ("Content-Length", str(length)),
        ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cache-Control", "no-store"),
    ]
