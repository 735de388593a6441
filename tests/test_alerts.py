"""Messages: once when raised, once when over, never in the way."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from waiting import until

from monitor import alerts
from monitor.alerts import Alerts, Subject, send_once, words
from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.lifecycle import Change, Record

# of Apprise itself, on Python 3.11 and 3.12
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")


STALL = Finding(
    "stall", "critical", "No progress", "stalled in data", advice="Look at the loader.", location="train.py:3"
)
DIGITS = Subject("r", "digits")
ADVICE = Finding("data_starvation", "warning", "The loop waits", "num_workers=0")


def change(kind: Any = "raised", finding: Finding = STALL, at_s: float = 5.0) -> Change:
    return Change(kind, Record(finding, at_s, at_s + 30 if kind == "cleared" else None))


class Outbox:
    """Stands for the service: notes what it is sent, and fails as often as it is told to."""

    def __init__(self, failures: int = 0, error: Exception | None = None) -> None:
        self.sent: list[tuple[str, str, str]] = []
        self.tries = 0
        self.failures, self.error = failures, error

    def __call__(self, url: str, title: str, body: str) -> bool:
        self.tries += 1
        if self.tries <= self.failures:
            if self.error:
                raise self.error
            return False
        self.sent.append((url, title, body))
        return True


class Post:
    """Alerts into an outbox, with the pauses and notices noted."""

    def __init__(self, outbox: Outbox) -> None:
        self.pauses: list[float] = []
        self.notices: list[tuple[str, str]] = []
        self.now_s = 0.0
        self.outbox = outbox
        self.alerts = Alerts(
            notice=lambda run, code: self.notices.append((run, code)),
            send=outbox,
            wait=self.pass_time,
            clock=lambda: self.now_s,
        )

    def pass_time(self, seconds: float | None) -> None:
        """The pauses between tries take no time here."""
        if seconds is None:
            self.alerts._news.wait(5)
        else:
            self.pauses.append(seconds)
            self.now_s += seconds

    def send_change(self, *changes: Change, urls: tuple[str, ...] = ("json://a",)) -> list[str]:
        for one in changes:
            self.alerts.send_change(DIGITS, urls, one)
        self.alerts.close()
        return [title for _, title, _ in self.outbox.sent]


def test_once_raised_once_over() -> None:
    """One message when a finding is raised, none while it lasts, one when it is over."""
    calmer = Finding("stall", "warning", "No progress", "stalled in data")
    titles = Post(Outbox()).send_change(
        change(), change("updated"), change(), change("cleared", calmer), change("cleared", calmer)
    )
    assert titles == ["digits: No progress", "digits: over: No progress"]


def test_advice_is_no_alarm() -> None:
    """Only stalls, deaths and what is critical; and the end only of what was told."""
    by_hand = Finding("process_died", "info", "Stopped", "SIGINT")
    assert (
        Post(Outbox()).send_change(change(finding=ADVICE), change("cleared", ADVICE), change(finding=by_hand))
        == []
    )


def test_what_becomes_critical() -> None:
    """A finding that grows critical while it lasts is told then."""
    grown = Finding("memory_leak", "critical", "Memory climbs", "rss")
    assert Post(Outbox()).send_change(change("updated", grown)) == ["digits: Memory climbs"]


def test_every_address() -> None:
    """Each address gets its message; without an address nothing happens."""
    post = Post(Outbox())
    post.send_change(change(), urls=("json://a", "json://b"))
    assert [url for url, _, _ in post.outbox.sent] == ["json://a", "json://b"]
    assert Post(Outbox()).send_change(change(), urls=()) == []


@pytest.mark.parametrize("error", [None, OSError("network down")])
def test_tried_again(error: Exception | None) -> None:
    """A message that fails is tried again after pauses that double."""
    post = Post(Outbox(failures=3, error=error))
    assert post.send_change(change()) == ["digits: No progress"]
    assert post.pauses == [2.0, 4.0, 8.0]
    assert post.notices == [("r", "alert_retried")] * 3


def test_given_up() -> None:
    """After five tries it is given up, and the page says so."""
    post = Post(Outbox(failures=99))
    assert post.send_change(change()) == []
    assert post.outbox.tries == alerts.TRIES
    assert post.notices[-1] == ("r", "alert_not_sent")


def test_rate_limit() -> None:
    """A run sends ten messages in ten minutes; others are not held back by it."""
    post = Post(Outbox())
    for i in range(15):
        post.alerts.send_change(DIGITS, ["json://a"], change(at_s=float(i)))
    post.alerts.send_change(Subject("other", "resnet"), ["json://a"], change())
    assert post.notices == [("r", "alerts_limited")] * 5
    post.now_s += alerts.PER_S + 1
    post.alerts.send_change(DIGITS, ["json://a"], change(at_s=99.0))
    post.alerts.close()
    assert len(post.outbox.sent) == alerts.MOST + 2


def test_never_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the service hangs, telling returns, and beyond the queue messages are left out."""
    monkeypatch.setattr(alerts, "WAITING", 3)
    monkeypatch.setattr(alerts, "MOST", 100)
    begun, hanging, notices = threading.Event(), threading.Event(), []

    def hang(*_: str) -> bool:
        begun.set()
        return hanging.wait(30)

    told = Alerts(notice=lambda *notice: notices.append(notice), send=hang)
    told.send_change(DIGITS, ["json://a"], change())
    assert begun.wait(10)
    for i in range(10):
        told.send_change(DIGITS, ["json://a"], change(at_s=10.0 + i))
    assert notices == [("r", "alert_not_sent")] * 7
    hanging.set()
    told.close()


HUNG = Finding(
    "stall", "critical", "No progress", "stalled in data (step 70)", advice="Look at the loader.",
    evidence={"rank": 1, "phase": "data", "stalled_s": 6.0, "function": "fetch", "what": "a worker hangs"},
    ranks=(1,), last_step=70, location="train.py:3",
)  # fmt: skip
GPU3 = Subject("r", "digits", "gpu3", 1_796_000_000.0, "http://127.0.0.1:7007/#/run/r")


def test_words() -> None:
    """Run, rank, host, phase, line, since when, what to do, and where to look."""
    title, body = words(GPU3, change(finding=HUNG, at_s=20.0), 1_796_000_030.0)
    assert title == "digits: No progress"
    assert body.splitlines() == [
        "stalled in data (step 70)",
        "rank 1 on gpu3, in data, at train.py:3 (fetch), after step 70: a worker hangs",
        "since 2026-11-30 00:53:34 UTC (16 s ago)",
        "Look at the loader.",
        "http://127.0.0.1:7007/#/run/r",
    ]


def test_words_at_the_end() -> None:
    """The same place, and how long it lasted in all."""
    title, body = words(GPU3, change("cleared", HUNG), 1_796_000_060.0)
    assert title == "digits: over: No progress"
    assert "It lasted 6 s." in body
    assert "rank 1 on gpu3, in data" in body


def test_words_with_nothing_known() -> None:
    """No start, no host, no hub: nothing is invented, and the report is named instead of a page."""
    _, body = words(DIGITS, change(finding=Finding("nan_loss", "critical", "NaN", "loss")), 0.0)
    assert body.splitlines() == ["loss", "rank 0", "torchvitals report r"]


def test_a_better_cause_is_no_news() -> None:
    """The stall goes on under another cause: one message when it began, one when it is over."""
    better = Finding("stall", "critical", "No progress", "rank 1 ended")
    renamed = [Change("cleared", change().record, True), Change("raised", Record(better, 9.0), True)]
    over = Change("cleared", Record(better, 9.0, 20.0))
    assert Post(Outbox()).send_change(change(), *renamed, over) == [
        "digits: No progress",
        "digits: over: No progress",
    ]


def test_a_hub_that_starts_anew_tells_the_end(receiver: tuple[str, list[dict]]) -> None:
    """What stood when it died was told: it is not told again, and its end is."""
    post = Post(Outbox())
    post.alerts.know("r", change().record)
    assert post.send_change(change(), change("cleared")) == ["digits: over: No progress"]


def test_one_address_does_not_hold_up_another() -> None:
    """While a dead address waits for its next try, the others are served."""
    sent: list[str] = []

    def send(url: str, *_: str) -> bool:
        sent.append(url)
        return url != "json://dead"

    told = Alerts(send=send)
    told.send_change(DIGITS, ["json://dead", "json://dead", "json://alive"], change())
    until(lambda: len(sent) >= 2, "both messages")
    told.close(0.0)
    assert sent == ["json://dead", "json://alive"]


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[dict]]]:
    """A service that takes messages over HTTP: its address, and what it was sent."""
    received: list[dict] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200 if "/ok" in self.path else 500)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"json://127.0.0.1:{server.server_address[1]}", received
    server.shutdown()
    server.server_close()


def test_a_real_message(receiver: tuple[str, list[dict]]) -> None:
    """Through Apprise, over the wire."""
    url, received = receiver
    told = Alerts()
    told.send_change(DIGITS, [f"{url}/ok"], change())
    told.close(30)
    assert [(message["title"], message["message"].splitlines()[0]) for message in received] == [
        ("digits: No progress", "stalled in data")
    ]


def test_send_once(receiver: tuple[str, list[dict]]) -> None:
    """A service that refuses is told from one that accepts, and from an address that is none."""
    url, _ = receiver
    assert send_once(f"{url}/ok", "title", "body")
    assert not send_once(f"{url}/broken", "title", "body")
    with pytest.raises(ValueError):
        send_once("nonsense", "title", "body")
