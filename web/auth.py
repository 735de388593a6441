"""Who may come in: the Host header, the Origin header, and the two tokens.

A page somewhere on the internet can make a browser on this machine send requests here. Three checks
stand in its way, in this order: the Host header must name this hub (a name that was re-pointed at
127.0.0.1 does not), the Origin header, where one counts, must be our own, and the request must carry
the viewer's token. Agents carry another token that opens nothing but their own door.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from werkzeug.http import parse_cookie

_log = logging.getLogger("monitor.web")

#: Names under which a hub on this machine is always known, whatever the port (SSH tunnels change it).
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
#: Set in the WSGI environ of a request that came with a pass (see `frames`); no header can set it.
ADMITTED = "torchvitals.admitted"
#: Shortest token taken, in characters: 128 bits in base64.
MIN_TOKEN = 22
#: Seconds between two log lines about refused tries.
REFUSALS_LOG_S = 60.0

_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(?::([0-9]{1,5}))?\Z")
_ORIGIN = re.compile(r"https?://(.+)\Z")

Environ = Mapping[str, Any]


@dataclass(frozen=True)
class Tokens:
    """The two secrets. Each opens its own door and no other.

    Raises:
        ValueError: one is too short to be a secret, or both are the same.
    """

    viewer: str = field(repr=False)
    ingest: str = field(repr=False)

    def __post_init__(self) -> None:
        if min(len(self.viewer), len(self.ingest)) < MIN_TOKEN or self.viewer == self.ingest:
            raise ValueError(f"two different tokens of at least {MIN_TOKEN} characters are needed")

    def opens_view(self, given: object) -> bool:
        """Whether `given` is the viewer's token. Takes the same time whatever is wrong with it."""
        return same(given, self.viewer)

    def opens_ingest(self, given: object) -> bool:
        """Whether `given` is the agents' token."""
        return same(given, self.ingest)

    @property
    def cookie(self) -> str:
        """What the viewer's cookie holds: proof of the token, not the token itself."""
        return hmac.new(self.viewer.encode(), b"torchvitals cookie 1", hashlib.sha256).hexdigest()


def same(given: object, secret: str) -> bool:
    """Compare without telling by the time taken how far `given` was right."""
    text = given if isinstance(given, str) else ""
    return hmac.compare_digest(text.encode("utf-8", "replace"), secret.encode())


def split_host(header: str) -> tuple[str, int | None] | None:
    """A Host header as (name, port): `[::1]:7007` -> ("[::1]", 7007). None where it is no host."""
    found = _HOST.match(header.lower())
    if found is None:
        return None
    port = int(found[2]) if found[2] else None
    return (found[1], port) if port is None or port < 65536 else None


def host_name(given: str) -> str:
    """A host as a person names it, as `Access.hosts` holds it: lower case, without a port.

    Raises:
        ValueError: it is no name of a host.
    """
    found = split_host(given)
    if found is None:
        raise ValueError(f"{given!r} is no host name; give one like gpu1.example.org")
    return found[0]


def origin_name(given: str) -> str:
    """An origin as a person names it, as `Access.origins` holds it.

    Raises:
        ValueError: it is no origin.
    """
    origin = given.lower().rstrip("/")
    found = _ORIGIN.match(origin)
    if found is None or split_host(found[1]) is None:
        raise ValueError(f"{given!r} is no origin; give one like https://team.example.org")
    return origin


@dataclass(frozen=True)
class Access:
    """The rules of one hub.

    Attributes:
        tokens: its secrets.
        hosts: names it answers to besides the loopback's, any port; IPv6 addresses in brackets.
        origins: origins that may connect besides the page's own, as "https://host:port".
        own_address: whether the address that the request arrived at is a good Host too. Right for a
            hub on all interfaces; an attack by DNS rebinding always shows a name, never an address.
    """

    tokens: Tokens
    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    own_address: bool = False

    def host_is_ours(self, header: str, address: str | None = None) -> bool:
        """Whether a Host header names this hub. `address` is the socket's own, where known."""
        found = split_host(header)
        if found is None:
            return False
        name = found[0]
        if name in LOOPBACK or name in self.hosts:
            return True
        return self.own_address and address is not None and name.strip("[]") == address.lower()

    def origin_is_ours(self, origin: str | None, host: str) -> bool:
        """Whether a request from `origin` may act. None is a client that is no browser.

        The page's own origin is the one whose host and port are those of the Host header, which has
        been checked before. "null" (a sandboxed frame, a local file) is nobody's.
        """
        if origin is None:
            return True
        found = _ORIGIN.match(origin.lower())
        return found is not None and (found[1] == host.lower() or origin.lower() in self.origins)

    def allows_origin(self, origin: str | None, environ: Environ) -> bool:
        """`origin_is_ours` in the form that the Socket.IO server asks for. A pass needs no origin."""
        return ADMITTED in environ or self.origin_is_ours(origin, environ.get("HTTP_HOST", ""))

    def may_view(self, environ: Environ) -> bool:
        """Whether a request carries the viewer's token: as cookie, as Bearer, as `?token=`; or a pass."""
        if ADMITTED in environ:
            return True
        if self.tokens.opens_view(bearer(environ)) or self.tokens.opens_view(query_token(environ)):
            return True
        return same(parse_cookie(_cookies(environ)).get(cookie_name(environ)), self.tokens.cookie)


def _cookies(environ: Environ) -> str:
    """The Cookie header, what is no ASCII replaced. Cookies do not tell ports apart, so other programs' come
    along, and the library fails at one that is no UTF-8.
    """
    return str(environ.get("HTTP_COOKIE", "")).encode("ascii", "replace").decode()


def bearer(environ: Environ) -> str | None:
    """The token of an `Authorization: Bearer …` header."""
    kind, _, token = str(environ.get("HTTP_AUTHORIZATION", "")).partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def query_token(environ: Environ) -> str | None:
    """The token of the query string."""
    try:
        given = parse_qs(str(environ.get("QUERY_STRING", "")), max_num_fields=100).get("token")
    except ValueError:
        return None
    return given[0] if given else None


def cookie_name(environ: Environ) -> str:
    """The cookie's name, with the port as the browser sees it.

    Cookies do not tell ports apart. With the port in its name, two hubs on a machine, or behind two
    tunnels, do not overwrite each other's.
    """
    found = split_host(environ.get("HTTP_HOST", ""))
    return f"torchvitals_{(found and found[1]) or 'web'}"


class Refusals:
    """Counts refused tries and writes one log line a minute about them, without their contents."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._count: Counter[str] = Counter()
        self._next = float("-inf")

    def note(self, why: str) -> None:
        """One more. `why` is one of a few fixed words ("host", "origin", "token")."""
        with self._lock:
            self._count[why] += 1
            if self._clock() < self._next:
                return
            self._next = self._clock() + REFUSALS_LOG_S
            counts = ", ".join(f"{kind} {count}" for kind, count in sorted(self._count.items()))
            self._count.clear()
        _log.warning("refused since the last such line: %s", counts)
