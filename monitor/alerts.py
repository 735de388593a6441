"""Alerts: a message through Apprise when a finding is raised, and one when it is over.

Sending happens in a thread of its own and never holds up a run; a message that fails waits for its next try
without holding up the others.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.lifecycle import Change, Record

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
#: What pages are told: a message waits for its next try; was given up; was left out by the rate limit.
RETRIED, NOT_SENT, LIMITED = "alert_retried", "alert_not_sent", "alerts_limited"

Send = Callable[[str, str, str], bool]


@dataclass(frozen=True)
class Subject:
    """The run that a message is about.

    Attributes:
        run, name: its id, and what it is called.
        host: where it runs; None when unknown.
        started_unix_s: when it began; None when unknown.
        link: address of its page, without a token: a message may be read by anybody. None without a hub.
    """

    run: str
    name: str
    host: str | None = None
    started_unix_s: float | None = None
    link: str | None = None


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
        notice: told (run, code) where a message is tried again, could not be sent, or was left out.
        send: sends (url, title, body), True when it was accepted; Apprise unless given.
        wait: waits so many seconds, or for ever, or until `told` is set, for the next message that is due.
        clock: seconds, rising.
    """

    def __init__(
        self,
        notice: Callable[[str, str], None] = lambda _run, _code: None,
        send: Send | None = None,
        wait: Callable[[float | None], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._notice, self._clock = notice, clock
        self._send = send or send_once
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._wait = wait or self._news.wait
        self._due_at: list[tuple[float, int, int, Message]] = []
        self._count = 0
        self._sent: dict[str, deque[float]] = {}
        self._notified: set[tuple[str, str, float]] = set()
        self._renamed: set[tuple[str, str]] = set()
        self._thread: threading.Thread | None = None
        self._closing = self._closed = False

    def send_change(self, subject: Subject, urls: Sequence[str], change: Change) -> None:
        """Send a message for a change that is worth one: once when raised, once when cleared."""
        if not urls or not self._is_news(subject.run, change):
            return
        if not self._within_limit(subject.run):
            self._notice(subject.run, LIMITED)
            return
        title, body = words(subject, change, time.time())
        for url in dict.fromkeys(urls):
            self._enqueue(Message(subject.run, url, title, body), 0, 0.0)
        self._start()

    def know(self, run: str, record: Record) -> None:
        """A finding that stands was told of in an earlier life: only its end is news."""
        if deserves_alert(record.finding):
            with self._lock:
                self._notified.add(_key(run, record))

    def close(self, within_s: float = 5.0) -> None:
        """Send what waits, for so long at most, and stop."""
        self._closing = True
        self._news.set()
        if self._thread is not None:
            self._thread.join(within_s)
        self._closed = True
        self._news.set()

    def _enqueue(self, message: Message, tries: int, pause_s: float) -> None:
        with self._lock:
            full = len(self._due_at) >= WAITING
            if not full:
                self._count += 1
                heapq.heappush(self._due_at, (self._clock() + pause_s, self._count, tries, message))
        if full:
            self._notice(message.run, NOT_SENT)
        self._news.set()

    def _is_news(self, run: str, change: Change) -> bool:
        """Whether this is told now: not told yet, and the end only of what was told."""
        key, code = _key(run, change.record), (run, change.record.finding.code)
        with self._lock:
            if change.kind == "cleared":
                was_sent = key in self._notified
                self._notified.discard(key)
                if was_sent and change.renamed:
                    self._renamed.add(code)
                return was_sent and not change.renamed
            goes_on = change.renamed and code in self._renamed
            self._renamed.discard(code)
            if key in self._notified or not (goes_on or deserves_alert(change.record.finding)):
                return False
            if len(self._notified) >= REMEMBERED:
                self._notified.clear()
            self._notified.add(key)
            return not goes_on

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
        while not self._closed:
            self._news.clear()
            with self._lock:
                due_s = self._due_at[0][0] - self._clock() if self._due_at else None
                ready = heapq.heappop(self._due_at) if due_s is not None and due_s <= 0 else None
            if ready is not None:
                self._try(ready[2], ready[3])
            elif due_s is None and self._closing:
                return
            else:
                self._wait(due_s)

    def _try(self, tries: int, message: Message) -> None:
        try:
            accepted = self._send(message.url, message.title, message.body)
        except Exception:  # noqa: BLE001 - a broken plug-in counts as a try that failed
            accepted = False
        if accepted:
            return
        if tries + 1 >= TRIES:
            self._notice(message.run, NOT_SENT)
            return
        self._notice(message.run, RETRIED)
        self._enqueue(message, tries + 1, FIRST_PAUSE_S * 2**tries)


def deserves_alert(finding: Finding) -> bool:
    """Whether a message is due: a stall, a death, or anything critical. What is mere information is not."""
    return finding.severity == "critical" or (finding.code in CODES and finding.severity != "info")


def words(subject: Subject, change: Change, now_unix_s: float) -> tuple[str, str]:
    """Title and body of a message: what happened, to whom, where, since when, what to do, and the link."""
    finding, record = change.record.finding, change.record
    link = subject.link or f"torchvitals report {subject.run}"
    if change.kind == "cleared":
        lasted_s = finding.evidence.get("stalled_s")
        if lasted_s is None:
            lasted_s = (record.cleared_at_s or record.raised_at_s) - record.raised_at_s
        lines = [finding.cause, _where(subject, finding), f"It lasted {lasted_s:.0f} s."]
        return f"{subject.name}: over: {finding.title}", "\n".join([*filter(None, lines), link])
    lines = [finding.cause, _where(subject, finding), _since(subject, record, now_unix_s), finding.advice]
    return f"{subject.name}: {finding.title}", "\n".join([*filter(None, lines), link])


def _where(subject: Subject, finding: Finding) -> str:
    """ "rank 1 on gpu3, in data, at train.py:31 (fetch): a loader worker does not come back"."""
    evidence = finding.evidence
    rank = evidence.get("rank", finding.ranks[0] if finding.ranks else 0)
    phase = evidence.get("phase") or evidence.get("last_phase")
    function = f" ({evidence['function']})" if finding.location and evidence.get("function") else ""
    parts = [
        f"rank {rank}" + (f" on {subject.host}" if subject.host else ""),
        *([f"in {phase}"] if phase else []),
        *([f"at {finding.location}{function}"] if finding.location else []),
        *([f"after step {finding.last_step}"] if finding.last_step is not None else []),
    ]
    what = evidence.get("what") or evidence.get("reason")
    return ", ".join(parts) + (f": {what}" if what else "")


def _since(subject: Subject, record: Record, now_unix_s: float) -> str:
    """ "since 14:03:22 UTC (7 s ago)"; "" where the run's start is not known."""
    if subject.started_unix_s is None:
        return ""
    ago_s = float(record.finding.evidence.get("stalled_s") or 0.0)
    since_s = subject.started_unix_s + record.raised_at_s - ago_s
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(since_s))
    return f"since {since} ({max(now_unix_s - since_s, 0.0):.0f} s ago)"


def _key(run: str, record: Record) -> tuple[str, str, float]:
    return run, "/".join(record.finding.identity), record.raised_at_s


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
