"""Real trainers, real agents, and a sink that remembers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from monitor.agent import proc
from monitor.agent.loop import Agent, Run
from monitor.batch import Batch

TRAINER = Path(__file__).with_name("trainer.py")

Trainer = subprocess.Popen[str]


class Sink:
    """Keeps every batch."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []

    def take(self, batch: Batch) -> None:
        self.batches.append(batch)

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [event for batch in self.batches for event in batch.events if event["kind"] == kind]

    def rows(self, stream: str) -> dict[str, list[float]]:
        """Columns of one stream, with `row` numbers, over all batches."""
        found: dict[str, list[float]] = {"row": [], "t_s": []}
        for batch in self.batches:
            for block in batch.blocks:
                if block.stream == stream:
                    found["row"] += range(block.first, block.first + len(block))
                    found["t_s"] += block.t_s
                    for key, column in block.columns.items():
                        found.setdefault(key, []).extend(column)
        return found

    def first(self, kind: str) -> dict[str, Any]:
        """The first event of a kind, once it comes."""
        return until(lambda: self.events(kind), f"a {kind} event")[0]

    def filled(self, stream: str, count: int) -> None:
        """Wait until a stream has so many rows."""
        until(lambda: len(self.rows(stream)["row"]) >= count, f"{count} rows of {stream}")


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    folder = tmp_path / "spool"
    folder.mkdir()
    return folder


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def train(spool: Path) -> Iterator[Callable[..., Trainer]]:
    """`train(steps=…, end=…)` starts a trainer and waits until its steps are written."""
    started: list[Trainer] = []

    def start(**plan: Any) -> Trainer:
        trainer = subprocess.Popen(
            [sys.executable, str(TRAINER), str(spool), json.dumps(plan)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(trainer)
        assert trainer.stdout is not None
        trainer.ready = trainer.stdout.readline().split()[1:]  # type: ignore[attr-defined]
        return trainer

    yield start
    for trainer in started:
        # A hung loader worker outlives its trainer and holds the pipe that is read below.
        for pid in proc.descendants(trainer.pid):
            os.kill(pid, signal.SIGKILL)
        trainer.kill()
        trainer.communicate()


@pytest.fixture
def make_agent(spool: Path, sink: Sink) -> Callable[..., Agent]:
    def make(**options: Any) -> Agent:
        run = Run("run-1", "here", base_ns=time.perf_counter_ns(), about={"name": "test", "world_size": 1})
        return Agent(spool, run, sink, **{"sample_s": 0.2, **options})

    return make


@pytest.fixture
def agent(make_agent: Callable[..., Agent]) -> Iterator[threading.Thread]:
    """An agent that runs in a thread until it ends by itself, or the test does."""
    made = make_agent()
    thread = threading.Thread(target=made.run)
    thread.start()
    yield thread
    made.stop()
    thread.join(10)
    assert not thread.is_alive()
