"""One run on one host, followed to its end: the agent and its sink, which is an uplink or the pipeline."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from monitor import launcher, state
from monitor._version import __version__
from monitor.agent.loop import Agent, Run
from monitor.agent.onstall import OnStall
from monitor.batch import Sink

#: How long the last batches may take to reach the hub before they are left on disk.
DRAIN_S = 60.0
#: How long messages that were not accepted are tried again after the run's end: all their tries.
ALERTS_S = 40.0
#: What of the settings is told of the run. The pipeline keeps the alert addresses to itself.
RUN_META_KEYS = ("name", "started_unix_s", "world_size", "config", "argv", "cwd", "python", "hub", "alerts")


def follow(spool: Path, *, lock: int | None = None, signals: bool = False) -> None:
    """Follow the run of `spool` until its ranks have ended and all is delivered.

    Args:
        spool: holds `run.json`, written by the launcher, and the ranks' tapes.
        lock: descriptor of the run's claim, which other ranks find it by.
        signals: whether SIGTERM asks for an end; only in a process of our own.
    """
    settings = json.loads((spool / "run.json").read_text())
    about = {key: settings.get(key) for key in RUN_META_KEYS}
    if not signals:
        about["thread"] = True
    plan = Run(settings["run"], settings["host"], settings["mono_base_ns"], about, __version__)
    sink, finish = _sink(settings, spool)

    def leave() -> None:
        if agent.over:
            _release(settings, lock)

    agent = Agent(
        spool,
        plan,
        sink,
        sample_s=settings["sample_s"],
        stall_after_s=settings["stall_after_s"],
        on_stall=_on_stall(settings),
        gate=lambda: _gate(settings, leave),
    )
    if signals:
        signal.signal(signal.SIGTERM, lambda *_: agent.stop())
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    agent.run()
    if finish():
        shutil.rmtree(spool, ignore_errors=True)


def _on_stall(settings: Mapping[str, Any]) -> OnStall:
    folder = Path(settings["run_dir"]) / str(settings["run"])
    return OnStall(settings["on_stall"], settings["on_stall_grace_s"], folder)


def _sink(settings: Mapping[str, Any], spool: Path) -> tuple[Sink, Any]:
    """The sink, and what ends it: returns True when everything was delivered."""
    runs = Path(settings["run_dir"])
    if settings["hub"] is None and not settings["dashboard"]:
        from monitor.pipeline import Pipeline

        pipeline = Pipeline(runs, addresses=state.alert_addresses)

        def finish() -> bool:
            pipeline.close(ALERTS_S)
            return True

        return pipeline, finish
    from monitor.agent.uplink import Uplink

    def connect() -> tuple[str, str]:
        if settings["hub"] is not None:
            return settings["hub"], os.environ.get("MONITOR_TOKEN", "")
        hub = launcher.ensure_hub(runs)
        return hub.base, hub.ingest_token

    uplink = Uplink(connect, settings["run"], settings["host"], spool / "batches.spool")

    def drain() -> bool:
        delivered = uplink.drain(DRAIN_S)
        uplink.close()
        return delivered

    return uplink, drain


@contextlib.contextmanager
def _gate(settings: Mapping[str, Any], leave: Callable[[], None]) -> Iterator[None]:
    """While this is held no rank can join the run, so the agent may look a last time and leave."""
    gate = state.claim(Path(settings["note"]).with_suffix(".gate"), wait=True)
    try:
        yield
        leave()
    finally:
        if gate is not None:
            os.close(gate)


def _release(settings: Mapping[str, Any], lock: int | None) -> None:
    """Give up the claim, so that a process with the same key begins a run of its own."""
    note = Path(settings["note"])
    for path in (note, note.with_suffix(".lock")):
        path.unlink(missing_ok=True)
    if lock is not None:
        os.close(lock)
