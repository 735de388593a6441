"""Nothing inside is reached from the wrong place."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import socketio
from webhub import VIEWER, Hub

PATHS = [
    "/",
    "/api/runs",
    "/healthz",
    "/static/app/main.js",
    "/plotly.js",
    "/metrics",
    "/nowhere",
    "/socket.io/",
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:7007", "localhost.evil.example", "localhost:1:2"]
)
def test_a_rebound_name_sees_nothing(hub: Hub, path: str, host: str):
    """DNS rebinding: a name that points at this machine is refused everywhere, token or not."""
    answer = hub.get(path, headers={"Host": host})
    assert answer.status_code == 403
    assert "--allow-host" in answer.json()["error"]


def test_host_is_checked_before_the_token(hub: Hub):
    """A wrong name learns nothing about tokens: no cookie, no redirect."""
    answer = hub.get(f"/?token={VIEWER}", token=None, headers={"Host": "evil.example"})
    assert answer.status_code == 403
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("line", [b"", b"Host:\r\n", b"Host: localhost\r\nHost: evil.example\r\n"])
def test_no_host_or_two_hosts_are_refused(hub: Hub, line: bytes):
    """Where the header is missing or said twice, nobody is ours."""
    assert b" 403 " in hub.raw(b"GET /healthz HTTP/1.1\r\n" + line + b"\r\n").split(b"\r\n")[0]


def test_an_absolute_address_counts_as_the_host(hub: Hub):
    """`GET http://evil.example/` is a request to evil.example whatever its Host header says."""
    assert b" 403 " in hub.raw(b"GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")


@pytest.mark.parametrize("host", ["localhost:9999", "[::1]:8080", "LocalHost"])
def test_a_tunnel_may_change_the_port(hub: Hub, host: str):
    """`ssh -L 9999:localhost:7007` just works."""
    assert hub.get("/healthz", headers={"Host": host}).status_code == 200


def test_a_named_host_is_answered(start_hub: Callable[..., Hub]):
    """--allow-host lets one more name in."""
    hub = start_hub(allowed_hosts=["GPU1.example"])
    assert hub.get("/healthz", headers={"Host": "gpu1.example:7007"}).status_code == 200
    assert hub.get("/healthz", headers={"Host": "gpu2.example"}).status_code == 403


@pytest.mark.parametrize("origin", ["null", "https://evil.example", "http://127.0.0.1:1", "", "x"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"])
def test_a_foreign_page_cannot_act(hub: Hub, origin: str, method: str):
    """Every method but GET and HEAD needs our own Origin."""
    answer = hub.get("/api/runs", method=method, headers={"Origin": origin})
    assert answer.status_code == 403
    assert "Origin" in answer.json()["error"]


@pytest.mark.parametrize("origin", ["null", "https://evil.example", ""])
def test_a_foreign_page_cannot_open_a_socket(hub: Hub, origin: str):
    """The WebSocket handshake is refused before Socket.IO sees it."""
    answer = hub.get("/socket.io/?EIO=4&transport=websocket", headers={"Origin": origin})
    assert answer.status_code == 403
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_a_listed_site_may_connect(start_hub: Callable[..., Hub]):
    """--allow-origin lets one more site in, and no other."""
    hub = start_hub(allowed_origins=["https://team.example"])
    hub.client("/live", {"token": VIEWER}, origin="https://team.example")
    with pytest.raises(socketio.exceptions.ConnectionError):
        hub.client("/live", {"token": VIEWER}, origin="https://team.example.evil")


@pytest.mark.parametrize("path", ["/", "/api/runs", "/nowhere", "/healthz", "/static/nothing.js"])
@pytest.mark.parametrize("token", [VIEWER, None])
def test_every_answer_carries_the_security_headers(hub: Hub, path: str, token: str | None):
    """Refusals and errors included, each header once."""
    headers = hub.get(path, token).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'self'" in policy
    assert "unsafe-eval" not in policy
    assert "script-src" not in policy  # so default-src rules: no inline script
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "," not in headers["Cache-Control"].replace("no-cache, max-age=0", "")


def test_the_server_does_not_name_its_version(hub: Hub):
    """Nobody learns which Python or library answers."""
    assert hub.get("/healthz").headers["Server"] == "torchvitals"


def test_behind_a_proxy_its_host_counts_but_ours_is_checked_too(start_hub: Callable[..., Hub]):
    """X-Forwarded-Host must be allowed, and cannot make a wrong Host right."""
    hub = start_hub(proxy=True, allowed_hosts=["team.example"])
    forwarded = {"X-Forwarded-Host": "team.example", "X-Forwarded-Proto": "https"}
    assert hub.get("/healthz", headers=forwarded).status_code == 200
    assert hub.get("/healthz", headers={"X-Forwarded-Host": "evil.example"}).status_code == 403
    forged = {"Host": "evil.example", "X-Forwarded-Host": "localhost"}
    assert hub.get("/healthz", headers=forged).status_code == 403
    hub.client("/live", {"token": VIEWER}, headers=forwarded, origin="https://team.example")


def test_without_a_proxy_its_headers_mean_nothing(hub: Hub):
    """Anyone can send them."""
    headers = {
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Prefix": "/evil",
        "X-Forwarded-Proto": "https",
    }
    answer = hub.get(f"/?token={VIEWER}", token=None, headers=headers)
    assert answer.headers["Location"] == "./"
    assert "Secure" not in answer.headers["Set-Cookie"]
