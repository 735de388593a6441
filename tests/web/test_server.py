"""The HTTP server itself."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from waiting import until
from webhub import Hub

from monitor.web import server
from monitor.web.server import Server


def hello(environ: dict[str, object], start: Callable[..., object]) -> list[bytes]:
    start("200 OK", [("Content-Length", "5")])
    return [b"hello"]


@pytest.fixture
def running() -> Iterator[Server]:
    made = Server(hello, socket.create_server(("127.0.0.1", 0)), poll_s=0.02)
    made.start()
    yield made
    made.stop()


def ask(port: int, data: bytes = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n") -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(data)
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
        return b"".join(parts)


def test_it_takes_over_a_socket_that_listens_already(running: Server):
    """The launcher binds, so that the address is known before the hub is up."""
    assert ask(running.port).endswith(b"hello")


def test_who_comes_before_it_serves_is_answered_too():
    """A browser that is early waits for the first answer instead of failing."""
    listener = socket.create_server(("127.0.0.1", 0))
    early = socket.create_connection(listener.getsockname())
    early.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    made = Server(hello, listener, poll_s=0.02)
    made.start()
    assert early.recv(100).startswith(b"HTTP/1.1 200")
    early.close()
    made.stop()


def test_it_serves_ipv6_too():
    """[::1] is a loopback like the other one."""
    made = Server(hello, socket.create_server(("::1", 0), family=socket.AF_INET6), poll_s=0.02)
    made.start()
    with socket.create_connection(("::1", made.port)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
    made.stop()


def test_after_stop_the_port_is_free(running: Server):
    """A hub that is started again gets its old port."""
    made = Server(hello, socket.create_server(("127.0.0.1", 0)), poll_s=0.02)
    made.start()
    port = made.port
    made.stop()
    socket.create_server(("127.0.0.1", port)).close()


@pytest.mark.parametrize(
    "data",
    [b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n"]
    + [
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"\0" * 99 + b"\n",
    ],
)
def test_what_is_no_request_is_refused(running: Server, data: bytes, caplog: pytest.LogCaptureFixture):
    """4xx or 505 in JSON, or silence; no traceback."""
    answer = ask(running.port, data)
    assert not answer or answer.split(b" ")[1] in (b"400", b"414", b"431", b"505") or b'{"error"' in answer
    assert "Traceback" not in caplog.text


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60), st.binary(max_size=60))
def test_no_bytes_break_the_server(hub: Hub, line: bytes, header: bytes):
    """Raw bytes as request line and header: the server answers the next one as before."""
    hub.raw(b"GET " + line + b" HTTP/1.1\r\nHost: localhost\r\n" + header + b"\r\n\r\n")
    assert hub.get("/healthz").status_code == 200


def test_a_slow_client_holds_one_place_for_a_while_only(running: Server, monkeypatch: pytest.MonkeyPatch):
    """Who opens a connection and says nothing is sent away."""
    monkeypatch.setattr(server._Handler, "timeout", 0.1)
    with socket.create_connection(("127.0.0.1", running.port), timeout=5) as connection:
        assert connection.recv(10) == b""


def test_connections_are_bounded(monkeypatch: pytest.MonkeyPatch):
    """One too many is closed at once; when one ends its place is free again."""
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 2)
    made = Server(hello, socket.create_server(("127.0.0.1", 0)), poll_s=0.02)
    made.start()
    held = [socket.create_connection(("127.0.0.1", made.port)) for _ in range(2)]
    until(lambda: made._connection_slots._value == 0)
    with socket.create_connection(("127.0.0.1", made.port), timeout=5) as third:
        assert third.recv(10) == b""
    for connection in held:
        connection.close()
    until(lambda: made._connection_slots._value == 2)
    assert ask(made.port).endswith(b"hello")
    made.stop()


def test_a_body_that_nobody_wants_is_not_read_for_ever(running: Server):
    """The library would read ten gigabytes; we read a quarter of a megabyte."""
    with socket.create_connection(("127.0.0.1", running.port), timeout=5) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n")
        with pytest.raises(ConnectionError):
            connection.sendall(b"x" * 99_999_999)


def test_requests_are_not_printed(running: Server, capfd: pytest.CaptureFixture[str]):
    """Tokens in addresses reach no terminal and no log."""
    with_token = b"GET /?token=secret HTTP/1.1\r\nHost: x\r\n\r\n"
    ask(running.port, with_token)
    assert "secret" not in "".join(capfd.readouterr())


def test_an_error_of_ours_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture):
    """500 without a traceback on the wire."""

    def broken(environ: dict[str, object], start: Callable[..., object]) -> list[bytes]:
        raise RuntimeError("inner secret")

    made = Server(broken, socket.create_server(("127.0.0.1", 0)), poll_s=0.02)
    made.start()
    with caplog.at_level(logging.ERROR):
        answer = ask(made.port)
        until(lambda: "inner secret" in caplog.text)
    assert b" 500 " in answer
    assert b"inner secret" not in answer
    made.stop()


def test_requests_run_side_by_side():
    """One that waits does not hold up the next."""
    gate, inside = threading.Event(), threading.Event()

    def app(environ: dict[str, object], start: Callable[..., object]) -> list[bytes]:
        if environ["PATH_INFO"] == "/slow":
            inside.set()
            gate.wait(5)
        return hello(environ, start)

    made = Server(app, socket.create_server(("127.0.0.1", 0)), poll_s=0.02)
    made.start()
    threading.Thread(
        target=ask, args=(made.port, b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"), daemon=True
    ).start()
    assert inside.wait(5)
    assert ask(made.port).endswith(b"hello")
    gate.set()
    made.stop()
