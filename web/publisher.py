"""Brings the newest state of each run to its viewers: at most twice a second, the newest wins.

`publish` is called by whoever takes batches and returns at once; sending is this module's own
thread, so a slow viewer never delays an agent. A viewer owes an acknowledgement for what it was
sent last, and is sent nothing more until it acknowledges; then it gets the newest. So at most one
message waits for each viewer, however slow it is.

What a viewer must know. An update's `rows` are those since the update before. Its `seq` is its
number, and `first_seq` the number of the first update that was folded into it (several that came
within half a second become one, none of their rows lost). A viewer that holds everything up to
`last` may append the rows when `first_seq <= last + 1`; otherwise it missed some, and fetches them
by REST. Rows that it has already (not newer than its newest) it ignores.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_log = logging.getLogger("monitor.web")

#: Seconds between two updates of a run (2 Hz, what a page of Plotly charts can draw).
INTERVAL_S = 0.5
#: Seconds between two versions of the list of runs.
LIST_INTERVAL_S = 2.0
#: Rows of one stream that updates folded into one may carry; beyond it viewers fetch by REST.
MAX_ROWS = 1_200
#: The room of those who watch the list of runs. No run is called so.
LIST = "*"

Update = Mapping[str, Any]
#: Sends one event to several viewers, encoded once: (viewers, event, data).
Send = Callable[[list[str], str, Any], None]


@dataclass
class _Viewer:
    room: str
    owes: bool = False
    missed: bool = False
    waiting_for_first: bool = True


@dataclass
class _Room:
    """One run (or the list): what waits to be sent, what was sent last, when the next may go."""

    pending: Update | None = None
    newest: Update | None = None
    due: float = field(default=float("-inf"))


class Publisher:
    """Rooms and who is in them.

    Args:
        send: see `Send`; called without a lock held.
        runs: makes the list of runs, for those who watch it.
        clock: seconds, rising.
    """

    def __init__(
        self, send: Send, runs: Callable[[], list[Any]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._send, self._runs, self._clock = send, runs, clock
        self._wake = threading.Condition()
        self._viewers: dict[str, _Viewer] = {}
        self._rooms: dict[str, _Room] = {}
        self._behind: set[str] = set()
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name="publisher", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def close(self) -> None:
        """Stop; nothing is sent afterwards."""
        with self._wake:
            self._closed = True
            self._wake.notify()

    @property
    def viewers(self) -> int:
        """How many are watching."""
        return len(self._viewers)

    def publish(self, run: str, update: Update) -> None:
        """A run's newest update, from any thread. Forgotten at once where nobody watches."""
        with self._wake:
            changed = False
            for name in (run, LIST):
                room = self._rooms.get(name)
                if room is None:
                    continue
                changed = True
                room.pending = _folded(room.pending, update) if name == run else {}
            if changed:
                self._wake.notify()

    def enter(self, viewer: str, room: str) -> bool:
        """`viewer` watches `room` from now on, and no other. True when it may be sent the first state
        now; False while it owes an acknowledgement (it is sent the state once it acknowledges).
        """
        with self._wake:
            known = self._viewers.get(viewer)
            owes = known is not None and known.owes
            self._out(viewer)
            self._viewers[viewer] = _Viewer(room, owes=owes)
            self._rooms.setdefault(room, _Room())
            return not owes

    def first(self, viewer: str, event: str, state: Any) -> None:
        """Send `viewer` its room's state, which is as new as the call of `enter` at least."""
        with self._wake:
            known = self._viewers.get(viewer)
            if known is None or known.owes:
                return
            known.owes, known.waiting_for_first = True, False
        self._send([viewer], event, state)

    def acknowledged(self, viewer: str) -> str | None:
        """`viewer` has drawn what it was sent. Returns its room when its first state is due now."""
        with self._wake:
            known = self._viewers.get(viewer)
            if known is None:
                return None
            known.owes = False
            if known.waiting_for_first:
                return known.room
            if known.missed:
                self._behind.add(viewer)
                self._wake.notify()
            return None

    def leave(self, viewer: str) -> None:
        """`viewer` is gone. Nothing is kept of it."""
        with self._wake:
            self._out(viewer)

    def _out(self, viewer: str) -> None:
        known = self._viewers.pop(viewer, None)
        self._behind.discard(viewer)
        if known is not None and all(other.room != known.room for other in self._viewers.values()):
            self._rooms.pop(known.room, None)

    def _loop(self) -> None:
        while True:
            with self._wake:
                while not self._closed and not self._ready():
                    self._wake.wait(self._delay())
                if self._closed:
                    return
                parcels = self._parcels()
            for viewers, room, data in parcels:
                self._deliver(viewers, room, data)

    def _deliver(self, viewers: list[str], room: str, data: Update) -> None:
        try:
            if room == LIST:
                self._send(viewers, "runs", {"runs": self._runs()})
            else:
                self._send(viewers, "update", data)
        except Exception:  # noqa: BLE001  one run's trouble must not end the others' updates
            _log.exception("could not publish %s", room)

    def _ready(self) -> bool:
        now = self._clock()
        return bool(self._behind) or any(r.pending is not None and r.due <= now for r in self._rooms.values())

    def _delay(self) -> float | None:
        due = [room.due for room in self._rooms.values() if room.pending is not None]
        return max(min(due) - self._clock(), 0.0) if due else None

    def _parcels(self) -> list[tuple[list[str], str, Update]]:
        """What is to be sent now: (viewers, room, data). Marks the viewers as owing."""
        now, parcels = self._clock(), []
        for name, room in self._rooms.items():
            if room.pending is None or room.due > now:
                continue
            room.newest, room.pending = room.pending, None
            room.due = now + (LIST_INTERVAL_S if name == LIST else INTERVAL_S)
            parcels.append((self._takers(name), name, room.newest))
        for viewer in self._behind:
            known = self._viewers[viewer]
            newest = self._rooms[known.room].newest
            if known.missed and not known.owes and newest is not None:
                known.owes, known.missed = True, False
                parcels.append(([viewer], known.room, newest))
        self._behind.clear()
        return [parcel for parcel in parcels if parcel[0]]

    def _takers(self, name: str) -> list[str]:
        takers = []
        for viewer, known in self._viewers.items():
            if known.room != name:
                continue
            known.missed = known.owes or known.waiting_for_first
            if not known.missed:
                known.owes = True
                takers.append(viewer)
        return takers


def _folded(old: Update | None, new: Update) -> Update:
    """`new` with the rows of `old`, which was never sent, before its own."""
    seq = new.get("seq", 0)
    if old is None:
        return {**new, "first_seq": new.get("first_seq", seq)}
    earlier, later = old.get("rows") or {}, new.get("rows") or {}
    rows = {name: _joined(earlier.get(name), later.get(name)) for name in {**earlier, **later}}
    if any(len(stream.get("t_s", ())) > MAX_ROWS for stream in rows.values()):
        return {**new, "first_seq": seq}
    return {**new, "first_seq": old.get("first_seq", seq), "rows": rows}


def _joined(old: Mapping[str, list[Any]] | None, new: Mapping[str, list[Any]] | None) -> Mapping[str, Any]:
    """Two tables of rows one below the other; null where one of them lacks a column."""
    if not old or not new:
        return old or new or {}
    before, after = [None] * len(old["t_s"]), [None] * len(new["t_s"])
    return {key: [*old.get(key, before), *new.get(key, after)] for key in {**old, **new}}
