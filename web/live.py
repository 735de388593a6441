"""Socket.IO namespace `/live`: what browsers watch. Also makes the Socket.IO server itself.

| event | direction | data |
| --- | --- | --- |
| `watch` | from the browser | `{"run": id}` one run, or `{"runs": true}` the list |
| `update` | to the browser | the run's state; see `publisher` on `seq` and `first_seq` |
| `runs` | to the browser | `{"runs": […]}`, as `GET api/runs` |

`watch` is answered with `{"ok": true}` or `{"error": text}`. `update` and `runs` are to be acknowledged
once they are drawn.

A viewer watches one thing at a time. Its first message is the whole present state, which carries no
debts: `first_seq` is absent. It proves itself with the cookie, a Bearer header, or `{"token": …}` at
connect.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

import flask
import flask_socketio
import socketio
from socketio.exceptions import ConnectionRefusedError as Refused
from socketio.packet import EVENT, Packet

from monitor import strict_json
from monitor.batch import MAX_BYTES

from . import socketio_compat
from .auth import Access, Refusals
from .publisher import LIST, Publisher
from .websocket import ENVIRON_KEY, WebSocket

_log = logging.getLogger("monitor.web")

#: Longest message of a browser, in bytes. It has only requests to make.
MAX_REQUEST = 16 * 1024
#: Room for Socket.IO's own framing around a batch, in bytes.
FRAMING = 4096


class Source(Protocol):
    """Where the states of runs come from."""

    def has(self, run: str) -> bool:
        """Whether there is a run of that name."""

    def runs(self) -> list[dict[str, Any]]:
        """The list of runs, newest first."""

    def snapshot(self, run: str) -> dict[str, Any] | None:
        """A run's present state; None when there is no such run."""


class StrictPacket(Packet):  # type: ignore[misc]  # the library is untyped
    """Socket.IO packet whose JSON never holds NaN, and which comes in two pieces at most."""

    json = strict_json

    def decode(self, encoded_packet: str) -> int:
        """Decode; returns how many binary pieces follow. Raises ValueError for more than one.

        The library would collect as many as a client announces.
        """
        pieces = super().decode(encoded_packet) or 0
        if pieces > 1:
            raise ValueError("no event has more than one binary piece")
        return int(pieces)


class Encoded(StrictPacket):
    """A packet that is encoded once, however many connections it is sent to."""

    def encode(self) -> str:
        """The text, made at the first call."""
        if not hasattr(self, "_text"):
            self._text: str = super().encode()
        return self._text


class SocketManager(socketio.Manager):  # type: ignore[misc]
    """The library's manager, with two differences.

    A message that wants acknowledgements is encoded once for all who get it (all share its number,
    which need only be unique per connection). And a namespace is told when a client has been let in,
    since what is sent before that would overtake the welcome.
    """

    def __init__(self) -> None:
        super().__init__()
        self._numbers = itertools.count(1)

    def connect(self, sid: str, namespace: str) -> Any:
        """A client has passed; tell its namespace's `entered(sid)`."""
        sid = super().connect(sid, namespace)
        handler = socketio_compat.namespace_of(self.server, namespace)
        if handler is not None and hasattr(handler, "entered"):
            handler.entered(sid)
        return sid

    def send_once(
        self, sids: Iterable[str], event: str, data: Any, namespace: str, drawn: Callable[[str], None]
    ) -> None:
        """Encode `[event, data]` once and send it to each of `sids`; `drawn(sid)` at each acknowledgement."""
        number = next(self._numbers)
        message = Encoded(EVENT, data=[event, data], namespace=namespace, id=number, binary=False)
        for sid in sids:
            peer = self.eio_sid_from_sid(sid, namespace)
            if peer is None:
                continue
            socketio_compat.await_answer(self, sid, number, partial(_answered, drawn, sid))
            try:
                socketio_compat.send_packet(self.server, peer, message)
            except Exception as error:  # noqa: BLE001  it has just gone; the others must not miss theirs
                _log.debug("not sent to %s: %s", sid, error)
            if not self.is_connected(sid, namespace):
                socketio_compat.forget_answers(self, sid)


def _answered(drawn: Callable[[str], None], sid: str, *_: Any) -> None:
    drawn(sid)


class Live(flask_socketio.Namespace):  # type: ignore[misc]
    """The browsers' door. Only those with the viewer's token come in."""

    def __init__(self, access: Access, refusals: Refusals, source: Source) -> None:
        super().__init__("/live")
        self._access, self._refusals, self._source = access, refusals, source
        self._manager: SocketManager | None = None
        self.publisher = Publisher(self._broadcast, source.runs)
        self._sids: set[str] = set()

    def attach(self, manager: SocketManager) -> None:
        """Send through `manager` from now on."""
        self._manager = manager
        self.publisher.start()

    @property
    def viewers(self) -> int:
        """Browsers connected."""
        return len(self._sids)

    def trigger_event(self, event: str, *args: Any) -> Any:
        """Dispatch `connect`, `disconnect` and `watch`; everything else is answered with an error."""
        return guarded(super().trigger_event, ("connect", "disconnect", "watch"), event, args)

    def on_connect(self, auth: Any = None) -> None:
        """Let a viewer in, or raise the library's refusal."""
        environ, sid = flask.request.environ, flask.request.sid  # type: ignore[attr-defined]
        given = auth.get("token") if isinstance(auth, dict) else None
        if not (self._access.tokens.opens_view(given) or self._access.may_view(environ)):
            self._refusals.note("token")
            raise Refused(
                "the viewer's token is missing or wrong; open the address that `torchvitals url` prints"
            )
        self._sids.add(sid)
        environ[ENVIRON_KEY].admit(MAX_REQUEST)

    def on_disconnect(self, *_: Any) -> None:
        """Forget a viewer."""
        sid = flask.request.sid  # type: ignore[attr-defined]
        self._sids.discard(sid)
        self.publisher.leave(sid)

    def on_watch(self, *args: Any) -> dict[str, Any]:
        """Watch a run, or the list."""
        wish = args[0] if args and isinstance(args[0], dict) else {}
        sid = flask.request.sid  # type: ignore[attr-defined]
        if sid not in self._sids:
            return {"error": "connect first"}
        run = LIST if wish.get("runs") is True else wish.get("run")
        if not isinstance(run, str):
            return {"error": 'watch takes {"run": id} or {"runs": true}'}
        if wish.get("runs") is not True and not self._source.has(run):
            return {"error": f"no run is called {run[:128]!r}; see api/runs"}
        if not self.publisher.enter(sid, run) or self._first(sid, run):
            return {"ok": True}
        return {"error": "the run cannot be read now; try again"}

    def _first(self, sid: str, room: str) -> bool:
        """Send the room's present state. Where there is none, the viewer is out of the room again."""
        try:
            state = {"runs": self._source.runs()} if room == LIST else self._source.snapshot(room)
        except Exception:  # noqa: BLE001  a damaged store is this run's trouble only
            _log.exception("no state of %s", room)
            state = None
        if state is None:
            self.publisher.leave(sid)
            return False
        self.publisher.first(sid, "runs" if room == LIST else "update", state)
        return True

    def _broadcast(self, sids: list[str], event: str, data: Any) -> None:
        assert self._manager is not None, "attach() comes first"
        self._manager.send_once(sids, event, data, self.namespace, self._drawn)

    def _drawn(self, sid: str) -> None:
        room = self.publisher.acknowledged(sid)
        if room is not None:
            self._first(sid, room)


def guarded(call: Callable[..., Any], events: tuple[str, ...], event: Any, args: tuple[Any, ...]) -> Any:
    """Dispatch one event of a client: unknown ones and our own faults become an answer, never a traceback
    on the wire, and never the end of the connection.
    """
    if event not in events:
        return {"error": "no such event"}
    try:
        return call(event, *args)
    except Refused:
        raise
    except Exception:  # noqa: BLE001  a client's event must not end the thread that reads the next one
        _log.exception("%s failed", event)
        if event == "connect":  # whatever is returned from here lets the client in
            raise Refused("the hub failed at this; its log says why") from None
        return {"error": "the hub failed at this; its log says why", "retry": True}


def open_sockets(
    app: flask.Flask, namespaces: Iterable[Any], origin_is_ours: Callable[[str, dict[str, Any]], bool]
) -> flask_socketio.SocketIO:
    """The Socket.IO server of `app`: WebSocket only, threads, bounded messages, no log of its own."""
    quiet = logging.getLogger("monitor.web.socketio")
    quiet.setLevel(logging.CRITICAL)
    sockets = flask_socketio.SocketIO(
        app,
        async_mode="threading",
        transports=["websocket"],
        cors_allowed_origins=origin_is_ours,
        cors_credentials=False,
        manage_session=False,
        async_handlers=False,
        max_http_buffer_size=MAX_BYTES + FRAMING,
        client_manager=SocketManager(),
        serializer=StrictPacket,
        logger=quiet,
        engineio_logger=quiet,
    )
    socketio_compat.use_websocket(sockets.server, WebSocket)
    for namespace in namespaces:
        sockets.on_namespace(namespace)
    return sockets
