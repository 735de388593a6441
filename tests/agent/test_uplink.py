"""A real Socket.IO server in its own process, which is killed and started again."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import finishes, until

from monitor.agent import uplink as module
from monitor.agent.uplink import Uplink
from monitor.batch import Batch, Block

HUB = Path(__file__).with_name("hub.py")

Until = Callable[..., None]


class Hub:
    """The hub's process, its port and its store."""

    def __init__(self, folder: Path) -> None:
        self.store = folder / "store"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, mode: str = "ok") -> None:
        command = [sys.executable, str(HUB), str(self.port), str(self.store), mode]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stored(self) -> list[int]:
        return (
            [int(line.split()[0]) for line in self.store.read_text().splitlines()]
            if self.store.exists()
            else []
        )


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    made = Hub(tmp_path)
    yield made
    made.kill()


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def uplink(hub: Hub, tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Uplink]:
    monkeypatch.setattr(module, "RETRY_S", (0.05, 0.2))

    def connect() -> tuple[str, str]:
        return f"http://127.0.0.1:{hub.port}", "secret"

    made = Uplink(connect, "run-1", "here", tmp_path / "batches.spool", said.append)
    yield made
    made.close()


def batch(seq: int, rows: int = 3) -> Batch:
    return Batch("run-1", "here", seq, 1.0, (Block("rank/0", seq * rows, array("d", [0.0] * rows), {}),))


def test_batches_arrive_in_order(hub: Hub, uplink: Uplink) -> None:
    """What was taken is stored, and `drain` says when all of it is."""
    hub.start()
    for seq in range(1, 21):
        uplink.take(batch(seq))
    assert uplink.drain(20)
    assert hub.stored() == list(range(1, 21))


def test_taking_never_waits(tmp_path: Path, said: list[str]) -> None:
    """While a connection hangs, `take` returns all the same, and `drain` gives up."""
    hangs = threading.Event()

    def connect() -> tuple[str, str]:
        hangs.wait()
        raise OSError("no port")

    made = Uplink(connect, "run-1", "here", tmp_path / "b", said.append)
    finishes(lambda: [made.take(batch(seq)) for seq in range(1, 101)])
    assert finishes(lambda: made.drain(0.1)) is False
    hangs.set()
    made.close()


def test_a_hub_that_comes_late_gets_everything(hub: Hub, uplink: Uplink) -> None:
    """Batches wait for the first connection."""
    for seq in range(1, 6):
        uplink.take(batch(seq))
    hub.start()
    assert uplink.drain(20)
    assert hub.stored() == [1, 2, 3, 4, 5]


def test_a_hub_killed_and_started_again_misses_nothing(hub: Hub, uplink: Uplink) -> None:
    """SIGKILL in the middle of the stream, twice: every batch once, in order."""
    hub.start()
    for seq in range(1, 301):
        uplink.take(batch(seq))
        if seq in (100, 200):
            until(lambda at=seq: len(hub.stored()) > at - 60)
            hub.kill()
            hub.start()
    assert uplink.drain(30)
    assert hub.stored() == list(range(1, 301))


def test_what_overflows_to_disk_arrives_too(
    hub: Hub, uplink: Uplink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long absence of the hub goes through the disk."""
    monkeypatch.setattr(uplink._backlog, "_limits", (2000, 10**8, 1000))
    for seq in range(1, 101):
        uplink.take(batch(seq))
    hub.start()
    assert uplink.drain(20)
    assert (hub.stored(), uplink.dropped) == (list(range(1, 101)), 0)


def test_a_batch_the_hub_has_already_is_not_stored_twice(hub: Hub, uplink: Uplink) -> None:
    """An answer lost with its connection: the welcome says that the batch is there."""
    hub.start("forget")
    for seq in range(1, 11):
        uplink.take(batch(seq))
    assert uplink.drain(30)
    assert hub.stored() == list(range(1, 11))


def test_a_hub_that_cannot_store_is_asked_again(hub: Hub, uplink: Uplink, said: list[str]) -> None:
    """A full disk at the hub costs time, not batches."""
    hub.start("busy")
    for seq in range(1, 6):
        uplink.take(batch(seq))
    assert uplink.drain(30)
    assert (hub.stored(), uplink.dropped) == ([1, 2, 3, 4, 5], 0)
    assert any("disk full" in line for line in said)


def test_a_refused_batch_does_not_stop_the_others(hub: Hub, uplink: Uplink, said: list[str]) -> None:
    """What the hub calls no good is dropped, counted and said."""
    hub.start("refuse")
    for seq in range(1, 7):
        uplink.take(batch(seq))
    assert uplink.drain(20)
    assert (hub.stored(), uplink.dropped) == ([1, 2, 4, 5], 6)
    assert any("refused batch 3: no good" in line for line in said)


def test_a_wrong_token_is_asked_for_again(
    hub: Hub, tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hub started anew may have a new token: each attempt asks for it, and says once what fails."""
    monkeypatch.setattr(module, "RETRY_S", (0.05, 0.2))
    tokens = iter(["old", "old", "old"])
    hub.start()

    def connect() -> tuple[str, str]:
        return f"http://127.0.0.1:{hub.port}", next(tokens, "secret")

    made = Uplink(connect, "run-1", "here", tmp_path / "b", said.append)
    made.take(batch(1))
    assert made.drain(20)
    made.close()
    assert hub.stored() == [1]


def test_a_connect_that_raises_is_survived(tmp_path: Path, said: list[str]) -> None:
    """No hub to be had, in whatever way: said once, tried again."""

    def connect() -> tuple[str, str]:
        raise OSError("no port")

    made = Uplink(connect, "run-1", "here", tmp_path / "b", said.append)
    until(lambda: bool(said))
    made.close()
    assert said == ["uplink: OSError: no port"]


def test_an_uplink_without_a_hub_can_be_closed(uplink: Uplink) -> None:
    """Nothing keeps the agent from ending."""
    finishes(uplink.close)


def test_the_socket_library_is_loaded_only_when_used() -> None:
    """An agent without a hub need not pay for it."""
    foreign = ("socketio", "numpy", "torch", "flask", "pynvml")
    modules = "sys, monitor.agent.uplink, monitor.agent.loop"
    script = f"import {modules}; print([m for m in {foreign} if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "[]\n"
