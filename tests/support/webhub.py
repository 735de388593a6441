"""A real hub on a real port, and clients for its doors. The pipeline behind it is real, too."""

from __future__ import annotations

import socket
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import flask
import requests
import socketio

from monitor.batch import Batch, Block
from monitor.pipeline import Pipeline
from monitor.web.app import HubServices, services_of

VIEWER, INGEST = "v" * 32, "i" * 32
#: Longest that a test waits for something that happens at once on an idle machine.
PATIENCE_S = 10.0


class WatchedPipeline(Pipeline):
    """The real one. It remembers what it took, can be made to fail, and says what is put into `states`."""

    def __init__(self, run_dir: Path) -> None:
        super().__init__(run_dir)
        self.run_dir = run_dir
        self.taken: list[Batch] = []
        self.states: dict[str, dict[str, Any]] = {}
        self.error: Exception | None = None

    def take(self, batch: Batch) -> None:
        if self.error is not None:
            raise self.error
        super().take(batch)
        self.taken.append(batch)

    def snapshot(self, run: str) -> dict[str, Any] | None:
        return self.states.get(run) or super().snapshot(run)


def make_batch(run: str = "run-1", host: str = "box", seq: int = 1, rows: int = 4) -> Batch:
    """A batch of one block of `rows` steps."""
    first = (seq - 1) * rows
    columns = {"step_ms": array("f", [10.0] * rows), "loss": array("f", [float("nan")] * rows)}
    block = Block("rank/0", first, array("d", [0.1 * (first + i) for i in range(rows)]), columns)
    return Batch(run, host, seq, 1.0, (block,), ({"kind": "log", "t_s": 0.5, "values": {"a": 1}},))


@dataclass
class Hub:
    """A running hub and the means to reach it."""

    app: flask.Flask
    port: int
    pipeline: WatchedPipeline
    clients: list[Any] = field(default_factory=list)
    sockets: list[Any] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def services(self) -> HubServices:
        return services_of(self.app)

    def get(self, path: str, token: str | None = VIEWER, **kwargs: Any) -> requests.Response:
        headers = kwargs.pop("headers", {})
        if token:
            headers = {"Authorization": f"Bearer {token}", **headers}
        kwargs.setdefault("allow_redirects", False)
        return requests.request(
            kwargs.pop("method", "GET"), self.url + path, headers=headers, timeout=10, **kwargs
        )

    def raw(self, data: bytes) -> bytes:
        """Send bytes as they are; what comes back until the hub closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as connection:
            connection.sendall(data)
            parts = []
            try:
                while part := connection.recv(65536):
                    parts.append(part)
            except ConnectionResetError:
                pass
            return b"".join(parts)

    def client(self, namespace: str, auth: dict[str, Any] | None = None, **kwargs: Any) -> socketio.Client:
        """A Socket.IO client that has entered `namespace`."""
        # the library's own Origin is the hub's address, as a browser's on the hub's page would be
        extra = {"origin": kwargs.pop("origin")} if "origin" in kwargs else {}
        client = socketio.Client(reconnection=False, handle_sigint=False, websocket_extra_options=extra)
        self.clients.append(client)
        handlers = kwargs.pop("on", {})
        for event, handler in handlers.items():
            client.on(event, handler, namespace=namespace)
        try:
            client.connect(self.url, namespaces=[namespace], auth=auth, transports=["websocket"], **kwargs)
        finally:
            self.sockets.append(client.eio.ws)
        return client

    def close(self) -> None:
        """End all clients. The library leaves sockets open that the hub has closed."""
        for client in self.clients:
            client.disconnect()
        for ws in self.sockets:
            if ws is not None:
                ws.shutdown()

    def refusal(self, namespace: str, auth: Any, **kwargs: Any) -> str:
        """Try to enter; what the hub says when it does not let us in."""
        said: list[Any] = []
        try:
            self.client(namespace, auth, on={"connect_error": said.append}, **kwargs)
        except socketio.exceptions.ConnectionError:
            return str(said[0]["message"] if isinstance(said[0], dict) else said[0])
        raise AssertionError("let in")

    def agent(self, run: str = "run-1", host: str = "box", **kwargs: Any) -> socketio.Client:
        return self.client("/ingest", {"token": INGEST, "run": run, "host": host}, **kwargs)

    def viewer(self, **kwargs: Any) -> socketio.Client:
        return self.client("/live", {"token": VIEWER}, **kwargs)
