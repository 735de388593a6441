"""Alerts: a message through Apprise when a finding is raised, and one when it is over.

Sending happens in a thread of its own, from a queue of bounded length, and never holds up a run.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from monitor.diagnosis.course import Change
from monitor.diagnosis.finding import Finding

#: Findings that are worth a message; besides, all that are critical.
CODES = frozenset({"stall", "process_died"})
#: A message is tried so many times, with pauses that double from the first.
TRIES, FIRST_PAUSE_S = 5, 2.0
#: Messages of one run within PER_S seconds at most; more are left out and counted.
MOST, PER_S = 10, 600.0
#: Messages that wait to be sent at most.
WAITING = 200
#: Findings told of that are remembered, so that none is told twice.
REMEMBERED = 10_000

Send = Callable[[str, str, str], bool]


@dataclass(frozen=True)
class Message:
    """One message to one address."""

    run: str
    url: str
    title: str
    body: str


class Alerts:
    """Tells of changes. Safe from any thread; never blocks and never raises.

    Args:
        notice: told (run, code) once where a message could not be sent at all.
        send: sends (url, title, body), True when it was accepted; Apprise unless given.
        sleep: waits between two tries.
        clock: seconds, rising.
    """

    def __init__(
        self,
        notice: Callable[[str, str], None] = lambda _run, _code: None,
        send: Send | None = None,
        sleep: Callable[[float], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._notice, self._clock = notice, clock
        self._send = send or send_once
        self._closed = threading.Event()
        self._sleep = sleep or self._closed.wait
        self._queue: queue.Queue[Message | None] = queue.Queue(WAITING)
        self._sent: dict[str, deque[float]] = {}
        self._told: set[tuple[str, str, float]] = set()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def tell(self, run: str, name: str, urls: Sequence[str], change: Change) -> None:
        """Send a message for a change that is worth one: once when raised, once when cleared."""
        if not urls or not self._due(run, change):
            return
        if not self._within_limit(run):
            self._notice(run, "alerts_limited")
            return
        title, body = words(name, change)
        for url in urls:
            self._enqueue(Message(run, url, title, body))
        self._start()

    def close(self, within_s: float = 5.0) -> None:
        """Send what waits, for so long at most, and stop."""
        if self._thread is None:
            return
        try:
            self._queue.put_nowait(None)
        except queue.Full:
            self._closed.set()
        self._thread.join(within_s)
        self._closed.set()

    def _enqueue(self, message: Message) -> None:
        try:
            self._queue.put_nowait(message)
        except queue.Full:
            self._notice(message.run, "alert_not_sent")

    def _due(self, run: str, change: Change) -> bool:
        """Whether this is news: not told yet, and the end only of what was told."""
        record = change.record
        key = (run, "/".join(record.finding.identity), record.raised_at_s)
        with self._lock:
            if change.kind == "cleared":
                told = key in self._told
                self._told.discard(key)
                return told
            if key in self._told or not worth_telling(record.finding):
                return False
            if len(self._told) >= REMEMBERED:
                self._told.clear()
            self._told.add(key)
            return True

    def _within_limit(self, run: str) -> bool:
        now = self._clock()
        with self._lock:
            sent = self._sent.setdefault(run, deque())
            while sent and now - sent[0] > PER_S:
                sent.popleft()
            if len(sent) >= MOST:
                return False
            sent.append(now)
            return True

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="alerts", daemon=True)
                self._thread.start()

    def _loop(self) -> None:
        while not self._closed.is_set():
            message = self._queue.get()
            if message is None:
                return
            if not self._deliver(message):
                self._notice(message.run, "alert_not_sent")

    def _deliver(self, message: Message) -> bool:
        for attempt in range(TRIES):
            if attempt:
                self._sleep(FIRST_PAUSE_S * 2 ** (attempt - 1))
            if self._closed.is_set():
                return False
            try:
                if self._send(message.url, message.title, message.body):
                    return True
            except Exception:  # noqa: BLE001, S112 - a broken plug-in counts as a try that failed
                continue
        return False


def worth_telling(finding: Finding) -> bool:
    """Whether a message is due: a stall, a death, or anything critical. What is mere information is not."""
    return finding.severity == "critical" or (finding.code in CODES and finding.severity != "info")


def words(name: str, change: Change) -> tuple[str, str]:
    """Title and body of a message."""
    finding, record = change.record.finding, change.record
    if change.kind == "cleared":
        lasted_s = (record.cleared_at_s or record.raised_at_s) - record.raised_at_s
        return f"{name}: over: {finding.title}", f"{finding.cause}\nIt lasted {lasted_s:.0f} s."
    place = [f"at {finding.location}"] if finding.location else []
    return f"{name}: {finding.title}", "\n".join([finding.cause, finding.advice, *place])


def send_once(url: str, title: str, body: str) -> bool:
    """Send one message now; True when the service accepted it.

    Raises:
        ValueError: the address is none that Apprise knows.
    """
    import apprise

    sender = apprise.Apprise()
    if not sender.add(url):
        raise ValueError("no address that Apprise knows")
    return bool(sender.notify(body=body, title=title))
