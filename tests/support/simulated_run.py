"""A simulated training on a real hub: nobody trains, the steps are invented, and batches and hub are real."""

from __future__ import annotations

import random
import socket
import time
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect
from werkzeug.exceptions import NotFound
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from monitor.batch import MAX_ROWS, Batch, Block
from monitor.pipeline import Pipeline
from monitor.schema import PHASES
from monitor.web.app import create_app, services_of
from monitor.web.auth import Tokens
from monitor.web.server import Server

VIEWER, INGEST = "v" * 32, "i" * 32
#: A healthy step and one that waits for its batch, in ms.
HEALTHY = {"data": 0.6, "forward": 12.0, "backward": 20.0, "optimizer": 4.0, "other": 1.4}
STARVED = {**HEALTHY, "data": 34.0}
CALL = "DataLoader(train_set, batch_size=64, shuffle=True, num_workers=0)"


class PlayedHub:
    """A hub whose clock for diagnoses is the played runs' own.

    Args:
        run_dir: where runs are kept.
        port: 0 takes a free one.
        prefix: path below which it lies, as behind a reverse proxy.
    """

    def __init__(self, run_dir: Path, port: int = 0, prefix: str = "") -> None:
        run_dir.mkdir(parents=True, exist_ok=True)
        self.played_s = 0.0
        self.run_dir = run_dir
        self.pipeline = Pipeline(run_dir, alert=lambda *_: None, clock=lambda: self.played_s)
        self._app = create_app(self.pipeline, run_dir=run_dir, tokens=Tokens(VIEWER, INGEST))
        self._prefix = prefix
        mounted = DispatcherMiddleware(NotFound(), {prefix: self._app}) if prefix else self._app
        self._server = Server(mounted, socket.create_server(("127.0.0.1", port)))
        self._server.start()
        self.port = self._server.port

    def url(self, hash_: str = "") -> str:
        """The page's address with its token."""
        return f"http://127.0.0.1:{self.port}{self._prefix}/?token={VIEWER}{hash_}"

    def stop(self) -> None:
        """Gone, as after a crash: port closed, connections cut."""
        self._server.stop()
        sockets = services_of(self._app).sockets
        for peer in list(sockets.server.eio.sockets.values()):
            peer.close(wait=False, abort=True)
        services_of(self._app).live.publisher.close()
        self.pipeline.close()


class PlayedRun:
    """One run of one or more ranks on host `box`.

    Args:
        hub: who gets its batches.
        name: as the user called it.
        run: its id.
        phases: ms of each phase of a step.
        gpus: how many there are.
        world_size: ranks.
        loader: facts of the loader, beside the usual ones.
    """

    def __init__(
        self,
        hub: PlayedHub,
        name: str = "digits",
        run: str = "20261130-030000-digits-a1b2",
        *,
        phases: dict[str, float] = STARVED,
        gpus: int = 0,
        world_size: int = 1,
        loader: dict[str, Any] | None = None,
    ) -> None:
        self.hub, self.run, self.phases, self.gpus, self.world_size = hub, run, phases, gpus, world_size
        self.t_s, self.seq, self.steps, self.samples = 0.0, 0, 0, 0
        self._random = random.Random(run)
        started = {"kind": "run", "name": name, "started_unix_s": time.time(), "world_size": world_size}
        facts = {
            "num_workers": 0, "batch_size": 64, "dataset": "Digits", "location": "digits.py:31",
            "call": CALL, "role": "train", "length": 1_000_000, **(loader or {}),
        }  # fmt: skip
        self.send(events=[started, {"kind": "agent", "pid": 1, "version": "0", "host_facts": {}}])
        for rank in range(world_size):
            fact = {"kind": "fact", "rank": rank, "name": "loader/1", "value": facts}
            self.send(events=[{"kind": "attach", "rank": rank, "pid": 1}, fact])

    def send(self, blocks: Sequence[Block] = (), events: Sequence[dict[str, Any]] = ()) -> None:
        """Hand one batch to the hub."""
        self.seq += 1
        self.hub.played_s += 1.0
        timed = tuple({"t_s": self.t_s, **event} for event in events)
        self.hub.pipeline.take(Batch(self.run, "box", self.seq, self.t_s, tuple(blocks), timed))

    def play(self, seconds: int, *, loss: float | None = None) -> None:
        """Train for so long, one batch a second."""
        for _ in range(seconds):
            blocks = [self._steps(rank, loss) for rank in range(self.world_size)]
            self.steps += len(blocks[0])
            self.t_s += 1.0
            blocks += [self._sample(stream, row) for stream, row in self._rows().items()]
            self.samples += 1
            self.send(blocks)

    def skip(self, steps: int) -> None:
        """Have trained so many steps more already: no sample beside them, in batches as large as they get."""
        for first in range(0, steps, MAX_ROWS):
            blocks = [
                self._steps(rank, None, min(MAX_ROWS, steps - first)) for rank in range(self.world_size)
            ]
            self.steps += len(blocks[0])
            self.t_s = blocks[0].t_s[-1]
            self.send(blocks)

    def end(self, **how: Any) -> None:
        """The end of every rank: `code`, `signal`, `reason`, `clean`."""
        last = {"last_step": self.steps - 1, "last_phase": "backward"}
        known = {"code": None, "signal": None, "reason": None, "clean": False, **last, **how}
        self.send(events=[{"kind": "rank_end", "rank": rank, **known} for rank in range(self.world_size)])
        self.send(events=[{"kind": "run_end"}])

    def _steps(self, rank: int, loss: float | None, count: int = 0) -> Block:
        step_ms = sum(self.phases.values())
        count = count or max(1, int(1000 / step_ms))
        ends = array("d", [self.t_s + (i + 1) * step_ms / 1e3 for i in range(count)])
        columns = {
            f"{phase}_ms": array("f", [self._about(self.phases.get(phase, 0.0)) for _ in range(count)])
            for phase in PHASES
        }
        columns["step_ms"] = array("f", [sum(c[i] for c in columns.values()) for i in range(count)])
        columns["samples"] = array("f", [64.0] * count)
        falling = 2.3 / (1 + self.t_s / 60) if loss is None else loss
        columns["loss"] = array("f", [falling] * count)
        columns["epoch"] = array("f", [self.t_s // 60] * count)
        return Block(f"rank/{rank}", self.steps, ends, columns)

    def _rows(self) -> dict[str, dict[str, float]]:
        process = {
            "rss_mb": 800 + self.t_s / 50,
            "tree_pss_mb": 1100.0,
            "main_cpu": self._about(0.97),
            "workers_cpu": 0.0,
        }
        host = {"cpu_used": self._about(1.2), "cpu_usable": 2.0, "memory_limit_mb": 24576.0}
        gpu = {"gpu_util": self._about(60.0), "gpu_memory_used_mb": 14200.0, "gpu_memory_total_mb": 81559.0}
        return {
            **{f"proc/{rank}": process for rank in range(self.world_size)},
            "host/box": host,
            **{f"gpu/box/{i}": gpu for i in range(self.gpus)},
        }

    def _sample(self, stream: str, row: dict[str, float]) -> Block:
        columns = {key: array("f", [value]) for key, value in row.items()}
        return Block(stream, self.samples, array("d", [self.t_s]), columns)

    def _about(self, value: float) -> float:
        return value * self._random.uniform(0.97, 1.03)


def shows_step(page: Page, step: int) -> None:
    """Look at the page, and wait until it has come to this step. Chromium may rest a tab nobody looks at."""
    page.bring_to_front()
    expect(page.locator(".fact .number").first).to_have_text(f"{step:,}".replace(",", "\u202f"))
