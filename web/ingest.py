"""Socket.IO namespace `/ingest`: where agents bring their batches.

An agent connects with `{"token", "run", "host"}` and is sent `welcome` with `{"seq": last}`, the
number of the last batch of that run and host in the store. Each `batch` is the bytes of one
`monitor.batch.Batch` and is answered:

| answer | meaning |
| --- | --- |
| `{"seq": n}` | it is in the store, now or since before |
| `{"error": text}` | it is no good and never will be; send the next one |
| `{"error": text, "retry": true}` | the hub failed (a full disk, …); send it again later |

The connection outlives every such error.
"""

from __future__ import annotations

import logging
import re
from typing import Any, Protocol

import flask
import flask_socketio
from socketio.exceptions import ConnectionRefusedError as Refused

from monitor.batch import MAX_BYTES, Batch, BatchError, from_bytes

from .auth import Access, Refusals
from .live import FRAMING, guarded
from .websocket import ENVIRON_KEY

_log = logging.getLogger("monitor.web")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")


class Taker(Protocol):
    """Where batches go."""

    def take(self, batch: Batch) -> None:
        """Store and digest one batch. It may fail to store it, which `last_seq` tells."""

    def last_seq(self, run: str, host: str) -> int:
        """Number of the last batch that is in the store, of this run and host; 0 before the first."""


class Ingest(flask_socketio.Namespace):  # type: ignore[misc]  # the library is untyped
    """The agents' door. Only those with the ingest token come in, each for one run and host."""

    def __init__(self, access: Access, refusals: Refusals, taker: Taker) -> None:
        super().__init__("/ingest")
        self._access, self._refusals, self._taker = access, refusals, taker
        self._peers: dict[str, tuple[str, str]] = {}
        self.batches = 0

    @property
    def agents(self) -> int:
        """Agents connected."""
        return len(self._peers)

    def trigger_event(self, event: str, *args: Any) -> Any:
        """Dispatch `connect`, `disconnect` and `batch`; everything else is answered with an error."""
        return guarded(super().trigger_event, ("connect", "disconnect", "batch"), event, args)

    def on_connect(self, auth: Any = None) -> None:
        """Let an agent in, or raise the library's refusal."""
        given = auth if isinstance(auth, dict) else {}
        if not self._access.tokens.opens_ingest(given.get("token")):
            self._refusals.note("token")
            raise Refused("the ingest token is missing or wrong")
        run, host = given.get("run"), given.get("host")
        if not all(isinstance(name, str) and _NAME.match(name) for name in (run, host)):
            raise Refused("run and host are names of letters, digits, '.', '_' and '-'")
        sid = flask.request.sid  # type: ignore[attr-defined]
        if sid not in self._peers:
            self._peers[sid] = (str(run), str(host))
            flask.request.environ[ENVIRON_KEY].admit(MAX_BYTES + FRAMING)

    def entered(self, sid: str) -> None:
        """The agent is in: tell it what the store has already."""
        try:
            seq = self._taker.last_seq(*self._peers[sid])
        except Exception:  # noqa: BLE001  whatever it is, nothing that is true can be told
            _log.exception("no last batch of %s", self._peers.get(sid))
            self.disconnect(sid)  # it tries again later; with a wrong number it would drop batches
        else:
            self.emit("welcome", {"seq": seq}, room=sid)

    def on_disconnect(self, *_: Any) -> None:
        """Forget an agent."""
        self._peers.pop(flask.request.sid, None)  # type: ignore[attr-defined]

    def on_batch(self, *args: Any) -> dict[str, Any]:
        """Take one batch; see the table above for the answers."""
        peer = self._peers.get(flask.request.sid)  # type: ignore[attr-defined]
        if peer is None or len(args) != 1 or not isinstance(args[0], bytes):
            return {"error": "batch takes the bytes of one batch"}
        try:
            batch = from_bytes(args[0])
        except BatchError as error:
            return {"error": str(error)}
        if (batch.run, batch.host) != peer:
            return {"error": "this connection brings batches of another run or host"}
        self._taker.take(batch)
        self.batches += 1
        if self._taker.last_seq(*peer) < batch.seq:
            return {"error": "the hub cannot store it now", "retry": True}
        return {"seq": batch.seq}
