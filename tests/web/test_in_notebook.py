"""The dashboard in a notebook's page, in a real browser behind real proxies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from proxies import Proxy
from webhub import VIEWER, Hub, make_batch

from monitor import notebook
from monitor.state import HubState

PAGE = """<!doctype html><title>notebook</title><link rel="icon" href="data:,">%s<body%s>%s</body>"""


@pytest.fixture
def proxied(start_hub: Callable[..., Hub]) -> Iterator[Callable[..., tuple[Hub, Proxy]]]:
    """A hub with a run, and a notebook server's proxy before it that knows nothing of `--proxy`."""
    opened: list[Proxy] = []

    def start(prefix: str, **how: Any) -> tuple[Hub, Proxy]:
        hub = start_hub()
        hub.pipeline.take(make_batch())
        opened.append(Proxy(hub.port, prefix.format(port=hub.port), **how))
        return hub, opened[-1]

    yield start
    for proxy in opened:
        proxy.close()


def shown_in(chromium: Any, address: str) -> tuple[str, list[str]]:
    """Text of the frame once the dashboard in it is live; and what the console said."""
    context, heard = chromium.new_context(), []
    try:
        page = context.new_page()
        page.on("console", lambda message: heard.append(message.text))
        page.goto(address)
        frame = page.frame_locator("iframe")
        frame.locator('.link[data-state="open"]').first.wait_for(timeout=15_000)
        return page.frames[1].url, heard
    finally:
        context.close()


@pytest.mark.browser
@pytest.mark.parametrize("told", ["config", "data"])
def test_it_is_live_behind_a_notebook_servers_proxy(chromium: Any, proxied: Any, told: str):
    """JupyterLab tells its base address in a script element, the classic page on its body. The frame is
    the page's own origin there; its live channel follows the prefix. Its Host need not be ours.
    """
    hub, proxy = proxied("/user/a/proxy/{port}/", headers={"Host": "hub.example.org"})
    url = HubState(port=hub.port, viewer_token=VIEWER, ingest_token="", run_dir="").url + "#/run/run-1"
    config = '<script id="jupyter-config-data" type="application/json">{"baseUrl": "/user/a/"}</script>'
    box = notebook.html("run-1", url)
    parts = (config, "", box) if told == "config" else ("", ' data-base-url="/user/a/"', box)
    proxy.pages["/lab"] = PAGE % parts
    address, heard = shown_in(chromium, f"http://127.0.0.1:{proxy.port}/lab")
    assert address.startswith(f"http://127.0.0.1:{proxy.port}/user/a/proxy/{hub.port}/in/")
    assert address.endswith("#/run/run-1")
    assert heard == []


@pytest.mark.browser
@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_it_is_live_without_such_a_proxy_on_the_same_machine(chromium: Any, proxied: Any, name: str):
    """Another port is another origin, and the frame still shows, without a cookie."""
    hub, proxy = proxied("/nowhere/")
    proxy.pages["/"] = PAGE % ("", "", notebook.html("run-1", f"{hub.url}/?token={VIEWER}#/run/run-1"))
    address, heard = shown_in(chromium, f"http://{name}:{proxy.port}/")
    assert address.startswith(f"http://{name}:{hub.port}/in/")
    assert heard == []


@pytest.mark.browser
def test_what_cannot_be_reached_is_said_with_what_helps(chromium: Any, proxied: Any):
    """A notebook server without that proxy, on a machine elsewhere."""
    _, proxy = proxied("/nowhere/")
    text = notebook.html("run-1", f"http://127.0.0.1:1/?token={VIEWER}")
    proxy.pages["/"] = PAGE % ("", ' data-base-url="/"', text)
    context = chromium.new_context()
    try:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{proxy.port}/")
        page.get_by_text("jupyter-server-proxy").wait_for(timeout=10_000)
        assert page.locator("iframe").is_hidden()
    finally:
        context.close()


@pytest.mark.browser
def test_a_stranger_cannot_frame_the_dashboard(chromium: Any, proxied: Any):
    """A page of another port that has no ticket shows an empty frame, although the browser has the cookie."""
    hub, proxy = proxied("/nowhere/")
    proxy.pages["/"] = PAGE % ("", "", f'<iframe src="{hub.url}/"></iframe>')
    context = chromium.new_context()
    try:
        page = context.new_page()
        page.goto(f"{hub.url}/?token={VIEWER}")
        with page.expect_console_message(lambda message: "frame-ancestors" in message.text):
            page.goto(f"http://127.0.0.1:{proxy.port}/")
        assert page.frames[1].url.startswith("chrome-error:")
    finally:
        context.close()


@pytest.mark.browser
def test_where_no_websocket_passes_the_page_asks_instead(chromium: Any, proxied: Any):
    """Colab's proxy is such a one. The page says how new it is, and does not call the hub lost."""
    hub, proxy = proxied("/", headers={"Upgrade": None})
    context = chromium.new_context()
    try:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{proxy.port}/?token={VIEWER}#/run/run-1")
        page.locator('.link[data-state="polling"]').wait_for(timeout=15_000)
        assert page.locator(".banner.warning").count() == 0
    finally:
        context.close()
    assert hub.services.live.viewers == 0
