"""`torchvitals alert-test`."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.cli import main

# of Apprise itself, on Python 3.11 and 3.12
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")


@pytest.fixture
def service() -> Iterator[str]:
    """A service that accepts what is sent to /ok, and refuses the rest."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200 if self.path.startswith("/ok") else 500)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"json://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_accepted(service: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One real message, status 0."""
    assert main(["alert-test", f"{service}/ok"]) == 0
    assert "accepted" in capsys.readouterr().out


def test_refused(service: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A service that does not take it: status 1, and what to look at."""
    assert main(["alert-test", f"{service}/broken"]) == 1
    assert "check the address" in capsys.readouterr().err


def test_all_that_are_set(
    service: str, own_state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a URL: those of MONITOR_ALERTS and of the settings file; one that refuses is a failure."""
    monkeypatch.setenv("MONITOR_ALERTS", f"{service}/ok")
    assert main(["alert-test"]) == 0
    own_state.mkdir(exist_ok=True)
    (own_state / "settings.json").write_text(json.dumps({"alerts": [f"{service}/broken"]}))
    assert main(["alert-test"]) == 1
    (own_state / "settings.json").write_text("[")
    capsys.readouterr()
    assert main(["alert-test"]) == 2
    assert "settings.json cannot be read" in capsys.readouterr().err


def test_nothing_set(capsys: pytest.CaptureFixture[str]) -> None:
    """No URL and none set anywhere: one line that says where to put it."""
    assert main(["alert-test"]) == 2
    assert "set MONITOR_ALERTS" in capsys.readouterr().err


def test_no_address(capsys: pytest.CaptureFixture[str]) -> None:
    """An address that is none is the user's mistake: one line, status 2."""
    assert main(["alert-test", "nonsense"]) == 2
    assert "looks like ntfy://topic" in capsys.readouterr().err
