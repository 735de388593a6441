"""Messages: once when raised, once when over, never in the way."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from monitor import alerts
from monitor.alerts import Alerts, send_once, words
from monitor.diagnosis.course import Change, Record
from monitor.diagnosis.finding import Finding

# of Apprise itself, on Python 3.11 and 3.12
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")


STALL = Finding(
    "stall", "critical", "No progress", "stalled in data", advice="Look at the loader.", location="train.py:3"
)
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
            sleep=self.pauses.append,
            clock=lambda: self.now_s,
        )

    def tell(self, *changes: Change, run: str = "r", urls: tuple[str, ...] = ("json://a",)) -> list[str]:
        for one in changes:
            self.alerts.tell(run, "digits", urls, one)
        self.alerts.close()
        return [title for _, title, _ in self.outbox.sent]


def test_once_raised_once_over() -> None:
    """One message when a finding is raised, none while it lasts, one when it is over."""
    calmer = Finding("stall", "warning", "No progress", "stalled in data")
    titles = Post(Outbox()).tell(
        change(), change("updated"), change(), change("cleared", calmer), change("cleared", calmer)
    )
    assert titles == ["digits: No progress", "digits: over: No progress"]


def test_advice_is_no_alarm() -> None:
    """Only stalls, deaths and what is critical; and the end only of what was told."""
    by_hand = Finding("process_died", "info", "Stopped", "SIGINT")
    assert (
        Post(Outbox()).tell(change(finding=ADVICE), change("cleared", ADVICE), change(finding=by_hand)) == []
    )


def test_what_becomes_critical() -> None:
    """A finding that grows critical while it lasts is told then."""
    grown = Finding("memory_leak", "critical", "Memory climbs", "rss")
    assert Post(Outbox()).tell(change("updated", grown)) == ["digits: Memory climbs"]


def test_every_address() -> None:
    """Each address gets its message; without an address nothing happens."""
    post = Post(Outbox())
    post.tell(change(), urls=("json://a", "json://b"))
    assert [url for url, _, _ in post.outbox.sent] == ["json://a", "json://b"]
    assert Post(Outbox()).tell(change(), urls=()) == []


@pytest.mark.parametrize("error", [None, OSError("network down")])
def test_tried_again(error: Exception | None) -> None:
    """A message that fails is tried again after pauses that double."""
    post = Post(Outbox(failures=3, error=error))
    assert post.tell(change()) == ["digits: No progress"]
    assert post.pauses == [2.0, 4.0, 8.0]
    assert post.notices == []


def test_given_up() -> None:
    """After five tries it is given up, and the page says so."""
    post = Post(Outbox(failures=99))
    assert post.tell(change()) == []
    assert post.outbox.tries == alerts.TRIES
    assert post.notices == [("r", "alert_not_sent")]


def test_rate_limit() -> None:
    """A run sends ten messages in ten minutes; others are not held back by it."""
    post = Post(Outbox())
    for i in range(15):
        post.alerts.tell("r", "digits", ["json://a"], change(at_s=float(i)))
    post.alerts.tell("other", "resnet", ["json://a"], change())
    assert post.notices == [("r", "alerts_limited")] * 5
    post.now_s += alerts.PER_S + 1
    post.alerts.tell("r", "digits", ["json://a"], change(at_s=99.0))
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
    told.tell("r", "digits", ["json://a"], change())
    assert begun.wait(10)
    for i in range(10):
        told.tell("r", "digits", ["json://a"], change(at_s=10.0 + i))
    assert notices == [("r", "alert_not_sent")] * 7
    hanging.set()
    told.close()


def test_words() -> None:
    """The message says the run, what happened, what to do, and where."""
    assert words("digits", change()) == (
        "digits: No progress",
        "stalled in data\nLook at the loader.\nat train.py:3",
    )
    assert words("digits", change("cleared")) == (
        "digits: over: No progress",
        "stalled in data\nIt lasted 30 s.",
    )


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
    told.tell("r", "digits", [f"{url}/ok"], change())
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
