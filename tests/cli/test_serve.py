"""The serve command as a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
import socketio
from waiting import until
from webhub import make_batch

from monitor import launcher, state
from monitor.agent.uplink import Uplink
from monitor.cli import UsageError, serve
from monitor.store import FILE_NAME, Store

ADDRESS = re.compile(r"http://[^\s?]+\?token=\S+")


class Process:
    """A hub process, its output as it comes."""

    def __init__(self, *words: str, fds: tuple[int, ...] = ()) -> None:
        command = [sys.executable, "-m", "monitor", "serve", *words]
        self.inner = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, pass_fds=fds
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.inner.stdout is not None
        for line in self.inner.stdout:
            self.lines.append(line)

    @property
    def url(self) -> str:
        return until(lambda: ADDRESS.search("".join(self.lines)))[0]

    def end(self, number: int = signal.SIGTERM) -> int:
        self.inner.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        code = self.inner.wait(timeout=30)
        self._reader.join()
        self.inner.stdout.close()
        return code


@pytest.fixture
def hub_process() -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def start(*words: str, **more: Any) -> Process:
        started.append(Process(*words, **more))
        return started[-1]

    yield start
    for process in started:
        if process.inner.poll() is None:
            process.inner.kill()
            process.wait()


def run_serve(*words: str) -> int:
    parser = ArgumentParser()
    serve.configure(parser)
    return serve.run(parser.parse_args(words))


def test_it_prints_an_address_that_opens_and_ends_on_a_signal(hub_process: Callable[..., Process]):
    """The user opens what is printed; SIGTERM ends it with status 0 and no traceback."""
    process = hub_process()
    session = requests.Session()
    session.trust_env = False
    assert session.get(process.url).status_code == 200
    session.close()
    assert process.end() == 0
    assert "Traceback" not in "".join(process.lines)


def test_a_restart_keeps_address_and_tokens(hub_process: Callable[..., Process]):
    """A bookmark and a running agent survive it, Ctrl-C included."""
    first = hub_process()
    url = first.url
    assert first.end(signal.SIGINT) == 0
    assert hub_process().url == url


def test_a_second_hub_says_where_the_first_is(
    hub_process: Callable[..., Process], capsys: pytest.CaptureFixture[str]
):
    """One hub for one folder; status 0, since the user has what was wanted."""
    url = hub_process().url
    assert run_serve() == 0
    assert url in capsys.readouterr().out
    with pytest.raises(UsageError, match="stop it first"):
        run_serve("--port", "1")


def test_state_and_log_are_for_the_user_only(hub_process: Callable[..., Process]):
    """0600 in a folder of 0700, even under a generous umask."""
    assert hub_process().url
    note, lock = state.hub_files(state.run_dir())
    assert [path.stat().st_mode & 0o777 for path in (note, lock, note.parent)] == [0o600, 0o600, 0o700]


def test_it_takes_a_socket_and_a_claim_from_whoever_started_it(
    hub_process: Callable[..., Process], tmp_path: Path
):
    """The launcher's way: port bound before, claim held on, tokens from the file it names."""
    note, lock_file = state.hub_files(state.run_dir())
    listener, lock = launcher.listen(), state.claim(lock_file)
    hub = state.HubState(listener.getsockname()[1], "v" * 32, "i" * 32, str(state.run_dir()))
    state.save_hub(hub)
    words = ["--ephemeral", "--state", str(note), "--fd", str(listener.fileno()), "--lock-fd", str(lock)]
    process = hub_process(*words, fds=(listener.fileno(), lock))
    listener.close()
    os.close(lock)
    assert requests.get(hub.base + "healthz", timeout=30).json()["ok"] is True
    assert state.held(lock_file)
    assert process.end() == 0
    assert not state.held(lock_file)


def test_a_killed_hub_loses_nothing(hub_process: Callable[..., Process], tmp_path: Path):
    """kill -9 between batches, a restart, and every batch is in the store, each row once."""
    runs = state.run_dir()

    def connect() -> tuple[str, str]:
        hub = state.load_hub(runs)
        assert hub is not None
        return hub.base, hub.ingest_token

    first = hub_process()
    assert first.url
    uplink = Uplink(connect, "run-1", "box", tmp_path / "spool")
    for seq in range(1, 41):
        uplink.take(make_batch(seq=seq))
        if seq == 20:
            until(lambda: (runs / "run-1" / FILE_NAME).exists())
            first.end(signal.SIGKILL)
    assert hub_process().url
    assert uplink.drain(60)
    uplink.close()
    with Store(runs / "run-1" / FILE_NAME) as store:
        assert (store.last_seq("box"), store.streams()["rank/0"]) == (40, 160)


def test_an_ephemeral_hub_goes_when_nobody_needs_it(hub_process: Callable[..., Process]):
    """Not while a viewer is there, but some time after the last one left."""
    process = hub_process("--ephemeral", "--idle-s", "1")
    url = process.url
    client = socketio.Client(reconnection=False, handle_sigint=False)
    token = url.partition("token=")[2]
    client.connect(
        url.partition("?")[0], namespaces=["/live"], auth={"token": token}, transports=["websocket"]
    )
    threading.Event().wait(1.8)
    assert process.inner.poll() is None
    client.disconnect()
    assert process.wait() == 0


def test_serve_stays(hub_process: Callable[..., Process]):
    """Without --ephemeral nobody's absence ends it."""
    process = hub_process("--idle-s", "0.2")
    assert process.url
    threading.Event().wait(0.8)
    assert process.inner.poll() is None


def test_another_machine_needs_a_flag(capsys: pytest.CaptureFixture[str]):
    """Binding beyond the loopback is never an accident."""
    for host in ("0.0.0.0", "::", "10.1.2.3", "gpu1", ""):
        with pytest.raises(UsageError, match="--allow-remote"):
            run_serve("--host", host)


def test_a_remote_hub_answers_to_its_own_names_only(hub_process: Callable[..., Process]):
    """On all interfaces: the address it was reached at, its host name, and what was allowed."""
    process = hub_process("--host", "0.0.0.0", "--allow-remote", "--allow-host", "gpu1.example")
    base = process.url.partition("?")[0]
    codes = {
        host: requests.get(base + "healthz", headers={"Host": host}, timeout=30).status_code
        for host in ("gpu1.example", socket.gethostname(), "127.0.0.1", "evil.example", "10.9.9.9")
    }
    assert [host for host, code in codes.items() if code == 403] == ["evil.example", "10.9.9.9"]


@pytest.mark.parametrize("words", [["--allow-host", "a b"], ["--allow-origin", "*"], ["--allow-origin", "x"]])
def test_a_mistyped_name_is_said(words: list[str]):
    """A wildcard is no origin."""
    with pytest.raises(UsageError, match="give one like"):
        run_serve(*words)


def test_a_taken_port_is_said():
    """One line that says what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(UsageError, match="is taken"):
        run_serve("--port", str(taken.getsockname()[1]))


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"port": 1}', None])
def test_a_state_file_without_tokens_is_refused(tmp_path: Path, content: str | None):
    """A hub never makes up tokens that nobody else knows."""
    note = tmp_path / "hub.json"
    if content is not None:
        note.write_text(content)
    with pytest.raises(UsageError, match="no tokens"):
        serve._given(note)


def test_the_given_state_is_used(tmp_path: Path):
    """As the launcher wrote it."""
    hub = state.HubState(7007, "v" * 32, "i" * 32, str(tmp_path))
    note = tmp_path / "hub.json"
    note.write_text(json.dumps(vars(hub)))
    assert serve._given(note) == hub


def test_a_failing_tick_does_not_end_the_hub(caplog: pytest.LogCaptureFixture):
    """It is logged, and the wait goes on."""
    ticks: list[int] = []

    def tick() -> None:
        ticks.append(1)
        raise OSError("full")

    serve._wait(threading.Event(), SimpleNamespace(busy=False), tick, 0.05)
    assert ticks
    assert "tick failed" in caplog.text


def test_a_link_for_messages_holds_no_token() -> None:
    """It may be read by anybody; and where the hub is open to other machines it names this one."""
    here = state.HubState(7007, "viewer", "ingest", "/runs")
    assert serve._linked(here)("r-1") == "http://127.0.0.1:7007/#/run/r-1"
    there = state.HubState(7007, "viewer", "ingest", "/runs", "0.0.0.0")
    assert serve._linked(there)("r-1") == f"http://{socket.gethostname()}:7007/#/run/r-1"
