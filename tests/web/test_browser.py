"""The doors as a real browser meets them: cookie, policy, prefix."""

from __future__ import annotations

import http.client
import http.server
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from webhub import VIEWER, Hub

pytestmark = pytest.mark.browser


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """A page of its own, with its own cookies, that notes every complaint of the browser."""
    page = chromium.new_context().new_page()
    page.complaints = []
    page.on("console", lambda said: said.type == "error" and page.complaints.append(said.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    yield page
    page.context.close()


def test_the_page_lives_within_its_policy(hub: Hub, page: Any):
    """Token out of the address, cookie in, socket open, charts drawn: and the browser blocks nothing."""
    page.goto(f"{hub.url}/?token={VIEWER}#/run/run-1")
    assert page.url == f"{hub.url}/#/run/run-1"
    page.wait_for_selector(".js-plotly-plot", state="attached")
    assert page.complaints == []
    assert page.evaluate("document.cookie") == ""
    assert hub.services.live.viewers == 1


TRIES = """([socket, read]) => Promise.all([
    new Promise((done) => {
        const tried = new WebSocket(socket);
        tried.onopen = () => done("open");
        tried.onerror = () => done("refused");
    }),
    fetch(read, {credentials: "include"}).then(() => "read", () => "refused"),
])"""


def test_another_sites_page_gets_nothing(hub: Hub, page: Any):
    """With the cookie in the browser: no socket, and no reading."""
    page.goto(f"{hub.url}/?token={VIEWER}")
    page.route("http://evil.example/", lambda route: route.fulfill(body="evil", content_type="text/html"))
    page.goto("http://evil.example/")
    socket = f"ws://127.0.0.1:{hub.port}/socket.io/?EIO=4&transport=websocket"
    assert page.evaluate(TRIES, [socket, f"{hub.url}/api/runs"]) == ["refused", "refused"]


class Prefix(http.server.BaseHTTPRequestHandler):
    """The smallest reverse proxy: takes /tv/… and hands on /…; no WebSockets."""

    hub_port = 0

    def do_GET(self) -> None:
        hub = http.client.HTTPConnection("127.0.0.1", self.hub_port)
        kept = {name: value for name, value in self.headers.items() if name != "Connection"}
        hub.request("GET", self.path.removeprefix("/tv"), headers={**kept, "X-Forwarded-Prefix": "/tv"})
        answer = hub.getresponse()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.read())
        hub.close()

    def log_message(self, *_: Any) -> None:
        pass


def test_the_page_works_below_a_prefix(start_hub: Callable[..., Hub], page: Any):
    """Every file and read goes through the proxy; the cookie keeps to the prefix."""
    hub = start_hub(proxy=True)
    handler = type("Handler", (Prefix,), {"hub_port": hub.port})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as proxy:
        threading.Thread(target=proxy.serve_forever, args=(0.02,), daemon=True).start()
        page.goto(f"http://127.0.0.1:{proxy.server_port}/tv/?token={VIEWER}#/runs")
        page.get_by_text("No runs yet").wait_for()
        assert page.url.endswith("/tv/#/runs")
        assert [cookie["path"] for cookie in page.context.cookies()] == ["/tv"]
        assert page.complaints == []
        proxy.shutdown()
