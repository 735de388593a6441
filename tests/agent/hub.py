"""Plays the hub for the uplink's tests: the ingest namespace over a real socket, a file as its store.

    python hub.py PORT STORE MODE

Each stored batch is one line `seq rows` in STORE. MODE: ok, refuse (every third batch), busy (every
second answer is "try again"), forget (stores, but every third answer never comes).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import flask
import flask_socketio

from monitor.batch import from_bytes

PORT, STORE, MODE = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]

app = flask.Flask(__name__)
server = flask_socketio.SocketIO(app, async_mode="threading", max_http_buffer_size=10**7)
calls = 0


def last() -> int:
    lines = STORE.read_text().splitlines() if STORE.exists() else []
    return max((int(line.split()[0]) for line in lines), default=0)


@server.on("connect", namespace="/ingest")
def connect(auth: Any) -> Any:
    if not isinstance(auth, dict) or auth.get("token") != "secret":
        return False
    flask_socketio.emit("welcome", {"seq": last()})
    return True


@server.on("batch", namespace="/ingest")
def batch(data: bytes) -> Any:
    global calls
    calls += 1
    found = from_bytes(data)
    if MODE == "refuse" and found.seq % 3 == 0:
        return {"error": "no good"}
    if MODE == "busy" and calls % 2:
        return {"error": "disk full", "retry": True}
    if found.seq > last():
        with STORE.open("a") as file:
            file.write(f"{found.seq} {sum(map(len, found.blocks))}\n")
    if MODE == "forget" and calls % 3 == 0:
        flask_socketio.disconnect()
    return {"seq": found.seq}


server.run(app, host="127.0.0.1", port=PORT, allow_unsafe_werkzeug=True)
