"""Host, Origin, tokens."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.web.auth import (
    Access,
    Refusals,
    Tokens,
    bearer,
    cookie_name,
    host_name,
    origin_name,
    query_token,
    same,
    split_host,
)

TOKENS = Tokens("v" * 32, "i" * 32)
ACCESS = Access(TOKENS, frozenset({"gpu1.example.org"}), frozenset({"https://team.example"}))


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1:7007", "[::1]:9", "LOCALHOST:80", "gpu1.example.org:7007"]
)
def test_the_loopback_and_named_hosts_are_ours_at_any_port(host: str):
    """A tunnel may change the port; the name is what counts."""
    assert ACCESS.host_is_ours(host)


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil.example:7007", "127.0.0.2"]
    + [
        "localhost:99999",
        "localhost:",
        "localhost,evil",
        "localhost@evil",
        "localhost\n",
        "::1",
        "0.0.0.0",
        "[::1",
    ],
)
def test_every_other_host_is_refused(host: str):
    """A name that was re-pointed at this machine is not ours, nor is anything malformed."""
    assert not ACCESS.host_is_ours(host, "10.0.0.5")


def test_a_hub_on_all_interfaces_answers_to_the_address_it_was_reached_at():
    """Only where it was told so, and only to that address."""
    access = Access(TOKENS, own_address=True)
    assert access.host_is_ours("10.0.0.5:7007", "10.0.0.5")
    assert access.host_is_ours("[fe80::1]:7007", "fe80::1")
    assert not access.host_is_ours("10.0.0.6:7007", "10.0.0.5")
    assert not ACCESS.host_is_ours("10.0.0.5:7007", "10.0.0.5")


@given(st.text(max_size=40))
def test_no_host_header_breaks_the_parser(header: str):
    """It is a host or it is not."""
    found = split_host(header)
    assert found is None or found[0] == header.lower()[: len(found[0])]


@pytest.mark.parametrize("given_host", ["", "a b", "https://x", "x/y", "x:y", "x@y"])
def test_a_host_that_is_none_is_not_allowed_silently(given_host: str):
    """Who mistypes --allow-host is told, instead of being refused later."""
    with pytest.raises(ValueError, match="no host name"):
        host_name(given_host)


@pytest.mark.parametrize(
    "given_origin", ["", "team.example", "*", "null", "file://x", "https://", "https://a b"]
)
def test_an_origin_that_is_none_is_not_allowed_silently(given_origin: str):
    """Neither is a wildcard."""
    with pytest.raises(ValueError, match="no origin"):
        origin_name(given_origin)


def test_hosts_and_origins_are_taken_as_people_write_them():
    """Upper case, a port, a slash at the end."""
    assert host_name("GPU1.Example:7007") == "gpu1.example"
    assert origin_name("https://Team.Example/") == "https://team.example"


@pytest.mark.parametrize(
    "origin", [None, "http://localhost:7007", "https://localhost:7007", "https://team.example"]
)
def test_the_own_page_and_named_sites_may_act(origin: str | None):
    """Same host and port as the Host header, or listed; a client that is no browser sends none."""
    assert ACCESS.origin_is_ours(origin, "localhost:7007")


@pytest.mark.parametrize(
    "origin",
    ["null", "", "http://localhost", "http://localhost:7008", "https://evil.example", "http://127.0.0.1:7007"]
    + [
        "https://team.example.evil",
        "file://localhost:7007",
        "http://localhost:7007/",
        "http://x@localhost:7007",
    ],
)
def test_every_other_origin_is_refused(origin: str):
    """Another port is another site, and a sandboxed frame ("null") is nobody."""
    assert not ACCESS.origin_is_ours(origin, "localhost:7007")


@pytest.mark.parametrize(
    "given_token", [None, "", "i" * 32, "v" * 31, "v" * 33, "é", b"v" * 32, 5, ["v" * 32]]
)
def test_only_the_viewers_token_opens_the_view(given_token: object):
    """The agents' token is none of it."""
    assert not TOKENS.opens_view(given_token)
    assert TOKENS.opens_view("v" * 32)


def test_the_two_tokens_differ_and_are_long():
    """A hub does not start with secrets that are none."""
    for viewer, ingest in (("a" * 32, "a" * 32), ("", "b" * 32), ("a" * 21, "b" * 32)):
        with pytest.raises(ValueError, match="tokens"):
            Tokens(viewer, ingest)


def test_secrets_are_not_printed():
    """A log of the object shows no token, and the cookie does not hold one."""
    assert "vvv" not in repr(TOKENS)
    assert TOKENS.viewer not in TOKENS.cookie
    assert Tokens("v" * 31 + "w", "i" * 32).cookie != TOKENS.cookie


def test_a_viewer_shows_its_token_in_one_of_three_ways():
    """Bearer, `?token=`, or the cookie of this port."""
    cookie = f"torchvitals_7007={TOKENS.cookie}"
    assert ACCESS.may_view({"HTTP_AUTHORIZATION": f"bearer {TOKENS.viewer}"})
    assert ACCESS.may_view({"QUERY_STRING": f"a=1&token={TOKENS.viewer}"})
    assert ACCESS.may_view({"HTTP_HOST": "localhost:7007", "HTTP_COOKIE": cookie})
    assert not ACCESS.may_view({"HTTP_HOST": "localhost:7008", "HTTP_COOKIE": cookie})
    assert not ACCESS.may_view(
        {"HTTP_HOST": "localhost:7007", "HTTP_COOKIE": f"torchvitals_7007={TOKENS.viewer}"}
    )


def test_two_hubs_have_two_cookies():
    """The port as the browser sees it is in the cookie's name."""
    assert cookie_name({"HTTP_HOST": "localhost:7007"}) == "torchvitals_7007"
    assert cookie_name({"HTTP_HOST": "team.example"}) == "torchvitals_web"


@given(st.text(max_size=60))
def test_no_header_or_query_breaks_the_reading_of_tokens(text: str):
    """Whatever a client sends, there is a token or there is none."""
    assert bearer({"HTTP_AUTHORIZATION": text}) is None or text.lower().startswith("bearer")
    assert isinstance(query_token({"QUERY_STRING": text}), str | None)
    assert same(text, "secret") == (text == "secret")


def test_refused_tries_are_logged_once_a_minute(caplog: pytest.LogCaptureFixture):
    """A flood of tries is two lines of log, with their number and none of their contents."""
    now = [0.0]
    refusals = Refusals(lambda: now[0])
    with caplog.at_level(logging.WARNING):
        for _ in range(1000):
            refusals.note("token")
        now[0] = 61.0
        refusals.note("host")
    assert [record.getMessage().split(": ")[1] for record in caplog.records] == [
        "token 1",
        "host 1, token 999",
    ]
