"""The way to the hub: one WebSocket, batches in order, each kept until the hub has stored it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from monitor.agent.backlog import Backlog, Entry
from monitor.batch import Batch, to_bytes

NAMESPACE = "/ingest"
CONNECT_S = 10.0
#: A hub that has not answered a batch in this time is taken for lost, and asked anew.
ACK_S = 20.0
#: Seconds between attempts, from the first to the longest.
RETRY_S = (0.25, 5.0)

Log = Callable[[str], None]


class Lost(Exception):  # noqa: N818 - an everyday state of a connection
    """The connection is gone or the hub does not answer; the batches are kept."""


class Uplink:
    """A sink that sends to a hub. `take` never waits for the network.

    Args:
        connect: gives the hub's URL and the ingest token; asked before each attempt, since a hub that
            was started anew may have others. May raise OSError while there is none.
        run, host: whom the batches are of.
        spool_path: where batches lie that do not fit into memory.
        log: takes one line about what goes wrong.
    """

    def __init__(
        self, connect: Callable[[], tuple[str, str]], run: str, host: str, spool_path: Path, log: Log = print
    ) -> None:
        self._connect = connect
        self._about = {"run": run, "host": host}
        self._backlog = Backlog(spool_path)
        self._log = log
        self._last_complaint = ""
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._empty = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="uplink", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Rows lost on the way: no room, or refused by the hub."""
        return self._backlog.dropped

    def take(self, batch: Batch) -> None:
        """Keep a batch and have it sent."""
        self._backlog.push(Entry(batch.seq, sum(map(len, batch.blocks)), to_bytes(batch)))
        self._wake.set()

    def drain(self, timeout_s: float) -> bool:
        """Wait until everything is stored. False when that takes longer than `timeout_s`."""
        with self._empty:
            return self._empty.wait_for(lambda: not len(self._backlog), timeout_s)

    def close(self) -> None:
        """Stop sending. What was not sent stays on disk as far as it is there."""
        self._stop.set()
        self._wake.set()
        self._thread.join(timeout=CONNECT_S)

    def _work(self) -> None:
        pause_s = RETRY_S[0]
        while not self._stop.is_set():
            link = _Link(self._wake)
            try:
                url, token = self._connect()
                self._backlog.acknowledge(link.open(url, {**self._about, "token": token}))
                pause_s = RETRY_S[0]
                self._send(link)
            except Exception as error:  # noqa: BLE001 - whatever breaks here, the batches are kept
                self._complain(error)
            finally:
                link.close()
            self._stop.wait(pause_s)
            pause_s = min(2 * pause_s, RETRY_S[1])

    def _send(self, link: _Link) -> None:
        pauses = 0
        while not self._stop.is_set():
            self._wake.clear()
            entry = self._backlog.first()
            if entry is None:
                self._notify_empty()
                self._wake.wait()
            elif self._settle(entry, link.send(entry.data)):
                pauses = 0
            else:
                self._stop.wait(min(RETRY_S[0] * 2**pauses, RETRY_S[1]))
                pauses += 1
            if link.lost:
                raise Lost("the hub closed the connection")

    def _settle(self, entry: Entry, answer: Any) -> bool:
        """Do as the hub answered. Returns False when the batch must be sent again."""
        if not isinstance(answer, dict) or "error" not in answer:
            self._backlog.acknowledge(entry.seq)
            self._last_complaint = ""
        elif answer.get("retry"):
            self._complain(Lost(f"the hub cannot store: {answer['error']}"))
            return False
        else:
            self._backlog.refuse(entry.seq)
            self._complain(ValueError(f"the hub refused batch {entry.seq}: {answer['error']}"))
        return True

    def _notify_empty(self) -> None:
        with self._empty:
            self._empty.notify_all()

    def _complain(self, error: Exception) -> None:
        text = f"uplink: {type(error).__name__}: {error}"
        if text != self._last_complaint and not self._stop.is_set():
            self._last_complaint = text
            self._log(text)


class _Link:
    """One connection, from opening to loss."""

    def __init__(self, wake: threading.Event) -> None:
        self._wake = wake
        self._client: Any = None
        self._socket: Any = None
        self._welcome = threading.Event()
        self._answered = threading.Event()
        self._answer: Any = None
        self._seq = 0
        self.lost = False

    def open(self, url: str, auth: dict[str, str]) -> int:
        """Connect. Returns the number of the last batch that the hub has stored."""
        import socketio  # 19 MB and a tenth of a second, which an agent without a hub need not pay

        client = self._client = socketio.Client(
            reconnection=False, handle_sigint=False, request_timeout=CONNECT_S
        )
        client.on("welcome", self._on_welcome, namespace=NAMESPACE)
        client.on("disconnect", self._on_lost, namespace=NAMESPACE)
        client.connect(
            url, auth=auth, namespaces=[NAMESPACE], transports=["websocket"], wait_timeout=CONNECT_S
        )
        self._socket = getattr(client.eio, "ws", None)
        if not self._welcome.wait(CONNECT_S) or self.lost:
            raise Lost("the hub did not say welcome")
        return self._seq

    def send(self, data: bytes) -> Any:
        """Send one batch and wait for the hub's answer."""
        self._answered.clear()
        self._client.emit("batch", data, namespace=NAMESPACE, callback=self._on_answer)
        if not self._answered.wait(ACK_S):
            raise Lost("the hub does not answer")
        if self.lost:
            raise Lost("the connection broke")
        return self._answer

    def close(self) -> None:
        """Disconnect, without ever raising."""
        steps: list[Callable[[], Any]] = []
        if self._client is not None:
            steps.append(self._client.disconnect)
        if self._socket is not None:
            # Without the first, the library waits three seconds for the other side's farewell; without
            # the last, it leaves the socket to the garbage collector.
            steps = [self._socket.abort, *steps, self._socket.shutdown]
        for step in steps:
            with contextlib.suppress(Exception):
                step()

    def _on_welcome(self, greeting: Any = None) -> None:
        seq = greeting.get("seq") if isinstance(greeting, dict) else None
        self._seq = seq if isinstance(seq, int) else 0
        self._welcome.set()

    def _on_answer(self, answer: Any = None) -> None:
        self._answer = answer
        self._answered.set()

    def _on_lost(self, *_: Any) -> None:
        self.lost = True
        for waiting in (self._welcome, self._answered, self._wake):
            waiting.set()
