"""The page, its files, and how one comes in."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest
from webhub import INGEST, VIEWER, Hub

from monitor.web import assets

FILES = list(assets.static_files())


def test_the_address_with_the_token_becomes_a_cookie_and_an_address_without(hub: Hub):
    """Like Jupyter: the token leaves the address bar, the history and the Referer."""
    answer = hub.get(f"/?a=1&token={VIEWER}&b=%20", token=None)
    assert (answer.status_code, answer.headers["Location"]) == (303, "./?a=1&b=+")
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith(f"torchvitals_{hub.port}=")
    assert {"HttpOnly", "SameSite=Strict"} <= {part.strip() for part in cookie.split(";")}
    assert (
        "Path" not in cookie
    )  # the browser keeps it to the page's own folder, whatever a proxy puts before it
    assert VIEWER not in cookie


def test_the_cookie_opens_the_page(hub: Hub):
    """And everything that the page reads."""
    cookie = hub.get(f"/?token={VIEWER}", token=None).headers["Set-Cookie"].split(";")[0]
    for path in ("/", "/api/runs", "/static/app/main.js"):
        assert hub.get(path, token=None, headers={"Cookie": cookie}).status_code == 200


def test_a_link_on_another_site_opens_the_page_without_a_redirect(hub: Hub):
    """The browser would not send a Strict cookie along with it, and the visitor would be refused."""
    answer = hub.get(f"/?token={VIEWER}", token=None, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 200
    assert "Set-Cookie" in answer.headers


@pytest.mark.parametrize("query", ["", "?token=", f"?token={INGEST}", "?token=" + "x" * 32, "?%74oken=1"])
def test_who_has_no_token_is_told_how_to_get_one(hub: Hub, query: str):
    """A person gets a page with words, and learns nothing else."""
    answer = hub.get("/" + query, token=None)
    assert answer.status_code == 403
    assert answer.headers["Content-Type"].startswith("text/html")
    assert "torchvitals url" in answer.text
    assert "Set-Cookie" not in answer.headers


def test_an_escaped_token_does_not_redirect_for_ever(hub: Hub):
    """The address is taken apart before the token is taken out."""
    answer = hub.get(f"/?%74oken={VIEWER}", token=None)
    assert answer.headers["Location"] == "./"


@pytest.mark.parametrize(
    "path", ["/api/runs", "/api/runs/run-1", "/static/app/main.js", "/plotly.js", "/metrics", "/x"]
)
@pytest.mark.parametrize("token", [None, INGEST, "x"])
def test_nothing_else_is_shown_without_the_viewers_token(hub: Hub, path: str, token: str | None):
    """Scripts get JSON; what exists and what does not looks the same."""
    answer = hub.get(path, token)
    assert answer.status_code == 403
    assert "token" in answer.json()["error"]


def test_health_is_told_to_anyone_at_the_right_host(hub: Hub):
    """The launcher asks whether the hub is up before it has any token in hand."""
    assert hub.get("/healthz", token=None).json()["ok"] is True


def test_behind_a_prefix_cookie_and_redirect_keep_to_it(start_hub: Callable[..., Hub]):
    """Two hubs behind one proxy do not read each other's cookies."""
    hub = start_hub(proxy=True)
    headers = {"X-Forwarded-Prefix": "/tv", "X-Forwarded-Proto": "https"}
    answer = hub.get(f"/?token={VIEWER}", token=None, headers=headers)
    assert answer.headers["Location"] == "/tv/"
    assert "Path=/tv" in answer.headers["Set-Cookie"]
    assert "Secure" in answer.headers["Set-Cookie"]


def test_the_page_uses_relative_addresses_only(hub: Hub):
    """So that it works below any path."""
    text = hub.get("/").text
    assert 'src="/' not in text
    assert 'href="/' not in text
    assert assets.plotly().version in text


@pytest.mark.parametrize("name", FILES)
def test_every_file_of_the_page_is_served_and_revalidated(hub: Hub, name: str):
    """With its type; and not sent again while it is unchanged."""
    answer = hub.get(f"/static/{name}")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].partition(";")[0] == assets.TYPES[name[name.rindex(".") :]]
    assert "no-cache" in answer.headers["Cache-Control"]
    again = hub.get(f"/static/{name}", headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        "../web/auth.py",
        "..%2fweb%2fauth.py",
        "%2e%2e/web/auth.py",
        "....//auth.py",
        "/etc/passwd",
        "%2fetc%2fpasswd",
    ]
    + [
        "app/main.js/..",
        "app/../../web/auth.py",
        "app",
        "app/",
        "main.js",
        "//app/main.js",
        "app//main.js",
        "app/main.js%00",
        "app/main.js\\",
        "__init__.py",
        "",
        ".",
        "..",
        "app/main.js%0a",
        "~root",
        "C:\\boot.ini",
    ],
)
def test_no_path_leads_out_of_the_folder(hub: Hub, path: str):
    """A name is looked for in the listing, never made into a path."""
    head = f"GET /static/{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {VIEWER}\r\n\r\n"
    answer = hub.raw(head.encode())
    assert b" 404 " in answer.split(b"\r\n")[0]
    assert b"hmac" not in answer
    assert b"root:" not in answer


def test_plotly_comes_compressed_and_is_kept(hub: Hub):
    """1.4 MB instead of 4.8, for ever when the address names the version."""
    version = assets.plotly().version
    answer = hub.get(f"/plotly.js?v={version}", headers={"Accept-Encoding": "gzip"}, stream=True)
    raw = answer.raw.read()
    assert gzip.decompress(raw) == assets.plotly().path.read_bytes()
    assert len(raw) < 2_000_000
    assert "immutable" in answer.headers["Cache-Control"]
    assert answer.headers["Vary"] == "Accept-Encoding"
    again = hub.get(
        "/plotly.js", headers={"Accept-Encoding": "gzip", "If-None-Match": answer.headers["ETag"]}
    )
    assert (again.status_code, "immutable" in again.headers["Cache-Control"]) == (304, False)


def test_plotly_comes_as_it_is_to_who_does_not_unpack(hub: Hub):
    """With another ETag, so that no cache mixes them up."""
    answer = hub.get("/plotly.js", headers={"Accept-Encoding": "identity"})
    assert answer.content == assets.plotly().path.read_bytes()
    assert answer.headers["ETag"].endswith('js"')


def test_a_full_disk_does_not_take_the_charts_away(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    """Where the compressed file cannot be kept, the plain one is sent."""
    monkeypatch.setenv("MONITOR_STATE_DIR", "/proc/nowhere")
    answer = hub.get("/plotly.js", headers={"Accept-Encoding": "gzip"})
    assert (answer.status_code, "Content-Encoding" in answer.headers) == (200, False)


def test_without_plotly_the_page_is_told_why(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    """Tiles and findings need no charts; the reason is one line."""
    monkeypatch.setattr(assets, "plotly", lambda: None)
    assert "pip install plotly" in hub.get("/plotly.js").json()["error"]
    assert hub.get("/").status_code == 200


def test_cookies_of_others_that_are_no_text(hub: Hub):
    """Whatever else listens on this machine may set such: it neither opens the door nor keeps it shut."""
    cookie = hub.get(f"/?token={VIEWER}", token=None).headers["Set-Cookie"].split(";")[0]
    for strange in ("a=\xe9", "\xff\xfe", f"torchvitals_{hub.port}=\xe9", '="\\3', ";;=;"):
        for given, status in ((strange, 403), (f"{strange}; {cookie}", 200)):
            told = b"GET /api/runs HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nCookie: %s\r\n\r\n"
            answer = hub.raw(told % (hub.port, given.encode("latin-1")))
            if status == 403 or not strange.startswith("torchvitals"):
                assert answer.startswith(b"HTTP/1.1 %d" % status), (given, answer[:60])
