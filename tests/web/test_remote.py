"""From elsewhere: through a tunnel, a forwarded port, and a reverse proxy with a prefix."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from proxies import Proxy
from waiting import until
from webhub import VIEWER, Hub, make_batch

PAGE = (Path(__file__).parents[2] / "docs/remote.md").read_text()
#: Headers that docs/remote.md makes nginx send for https://team.example.org/tv/.
FORWARDED = {
    "Host": "team.example.org",
    "X-Forwarded-For": "10.0.0.9",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "team.example.org",
    "X-Forwarded-Prefix": "/tv",
}


@pytest.fixture
def behind() -> Iterator[Callable[..., Proxy]]:
    """Puts proxies before hubs."""
    opened: list[Proxy] = []

    def start(*args: Any, **how: Any) -> Proxy:
        opened.append(Proxy(*args, **how))
        return opened[-1]

    yield start
    for proxy in opened:
        proxy.close()


def watched(hub: Hub, base: str, prefix: str, **kwargs: Any) -> Any:
    """Enter the live channel through `base`, as the page there would."""
    path = f"{prefix}socket.io"
    client = OtherPlace(hub, base).client("/live", {"token": VIEWER}, socketio_path=path, **kwargs)
    return client.call("watch", {"run": "run-1"}, namespace="/live")


class OtherPlace(Hub):
    """The same hub under another address; its clients are ended with the hub's own."""

    def __init__(self, hub: Hub, url: str) -> None:
        super().__init__(hub.app, hub.port, hub.pipeline, hub.clients, hub.sockets)
        self._url = url

    @property
    def url(self) -> str:
        return self._url


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_a_tunnel_to_any_port_works(hub: Hub, behind: Callable[..., Proxy], name: str):
    """`ssh -L` and VS Code forward bytes: the Host header names the local port, and so does the Origin."""
    base = f"http://{name}:{behind(hub.port).port}"
    first = requests.get(f"{base}/?token={VIEWER}", timeout=10)
    assert (first.status_code, first.url) == (200, f"{base}/")
    assert watched(hub, base, "/", origin=base) == {"ok": True}


def test_behind_a_prefix_everything_follows_it(start_hub: Callable[..., Hub], behind: Callable[..., Proxy]):
    """Page, cookie, data and live channel, for the name and scheme that the browser sees."""
    hub = start_hub(proxy=True, allowed_hosts=["team.example.org"])
    hub.pipeline.take(make_batch())
    base = f"http://127.0.0.1:{behind(hub.port, '/tv/', headers=FORWARDED).port}"
    answer = requests.get(f"{base}/tv/?token={VIEWER}", timeout=10, allow_redirects=False)
    assert answer.headers["Location"] == "/tv/"
    assert {"Path=/tv", "Secure"} <= {part.strip() for part in answer.headers["Set-Cookie"].split(";")}
    cookie = {"Cookie": answer.headers["Set-Cookie"].split(";")[0]}
    for path in ("", "api/runs", "static/app/main.js", "api/runs/run-1/export.csv"):
        assert requests.get(f"{base}/tv/{path}", headers=cookie, timeout=10).status_code == 200
    assert watched(hub, base, "/tv/", origin="https://team.example.org") == {"ok": True}


def test_the_page_names_no_place_of_its_own(hub: Hub):
    """Every address in it is relative, so that it holds below any prefix."""
    text = hub.get("/").text
    assert re.findall(r'(?:src|href)="(/[^"]*|https?:[^"]*)"', text) == []


def test_nginx_as_documented(start_hub: Callable[..., Hub], tmp_path: Path):
    """The two blocks of docs/remote.md, as they stand there, in a real nginx."""
    nginx = shutil.which("nginx")
    if nginx is None:
        pytest.skip("nginx is not installed")
    hub = start_hub(proxy=True)
    hub.pipeline.take(make_batch())
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    location, upgrade = re.findall(r"^```nginx\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    location = location.replace("127.0.0.1:7007", f"127.0.0.1:{hub.port}")
    kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    temporary = "".join(f"{kind}_temp_path {tmp_path}/{kind};" for kind in kinds)
    server = f"server {{ listen 127.0.0.1:{port}; {location} }}"
    (tmp_path / "nginx.conf").write_text(
        f"daemon off; pid {tmp_path}/pid; error_log {tmp_path}/error.log; events {{}}\n"
        f"http {{ access_log off; {temporary} {upgrade} {server} }}"
    )
    running = subprocess.Popen([nginx, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")])
    base = f"http://127.0.0.1:{port}"
    try:
        until(lambda: reached(f"{base}/tv/healthz"))
        first = requests.get(f"{base}/tv/?token={VIEWER}", timeout=10)
        assert (first.status_code, first.url) == (200, f"{base}/tv/")
        assert watched(hub, base, "/tv/", origin=base) == {"ok": True}
    finally:
        running.terminate()
        running.wait()


def reached(url: str) -> bool:
    try:
        return requests.get(url, timeout=1).ok
    except requests.ConnectionError:
        return False
