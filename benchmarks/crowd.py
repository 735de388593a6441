"""Whether one hub on one core carries a run of many ranks.

    python benchmarks/crowd.py [--hosts 128] [--ranks-per-host 8] [--seconds 60] [--json FILE]

A real hub, alone on one core. Beside it, on the other cores, one process plays all hosts: real tapes that are
written ten times a second, followed, reduced and sent by a real uplink each; only the steps are invented, and
one rank is late. A viewer takes every update, and asks for ranks and bands once a second.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import requests
import socketio

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from crowd import Crowd, uplinks

from monitor.store import FILE_NAME, Store

TOKEN = "a-token-of-agents-for-this-benchmark"
#: Seconds after the beginning that are not measured: connections, and a thousand ranks' first words.
WARM_UP_S = 5.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Hub:
    """A hub in a process of its own, on the first CPU where there are several."""

    def __init__(self, folder: Path) -> None:
        cpus = sorted(os.sched_getaffinity(0))
        pinned = ["taskset", "-c", str(cpus[0])] if shutil.which("taskset") and len(cpus) > 1 else []
        if pinned:
            os.sched_setaffinity(0, cpus[1:])
        env = {**os.environ, "MONITOR_STATE_DIR": str(folder / "state"), "MONITOR_TOKEN": TOKEN}
        command = [
            sys.executable,
            "-u",
            "-m",
            "monitor",
            "serve",
            "--run-dir",
            str(folder / "runs"),
            "--port",
            "0",
        ]
        self.process = subprocess.Popen([*pinned, *command], env=env, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        said = self.process.stdout.readline() + self.process.stdout.readline()
        found = re.search(r"(http://127\.0\.0\.1:\d+)/\?token=(\S+)", said)
        assert found is not None, said
        self.url, self.viewer = found[1], found[2]

    @property
    def cpu_s(self) -> float:
        """CPU time that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    @property
    def memory_mb(self) -> float:
        """Its resident memory."""
        return (
            int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
            * os.sysconf("SC_PAGE_SIZE")
            / 1e6
        )

    def get(self, path: str) -> tuple[float, Any]:
        """Seconds that it takes, and the answer."""
        began = time.perf_counter()
        answer = requests.get(self.url + path, headers={"Authorization": f"Bearer {self.viewer}"}, timeout=30)
        took = time.perf_counter() - began
        answer.raise_for_status()
        return took, answer.json()

    def close(self) -> None:
        """End it."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)


class Viewer:
    """Watches one run as the page does."""

    def __init__(self, hub: Hub, run: str) -> None:
        self.hub, self.run = hub, run
        self.ages: list[float] = []
        self.took: dict[str, list[float]] = {"ranks": [], "all ranks": [], "band": [], "snapshot": []}
        self.findings: list[dict[str, Any]] = []
        self._stop = threading.Event()
        self._client = socketio.Client(handle_sigint=False)
        self._client.on("update", self._update, namespace="/live")
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def start(self) -> None:
        """Connect and begin."""
        self._client.connect(
            self.hub.url, namespaces=["/live"], auth={"token": self.hub.viewer}, transports=["websocket"]
        )
        self._client.call("watch", {"run": self.run}, namespace="/live")
        self._thread.start()

    def stop(self) -> None:
        """Go."""
        self._stop.set()
        self._thread.join(30)
        self._client.disconnect()

    def _update(self, state: dict[str, Any]) -> None:
        self.ages.append(time.time() - state["data_unix_s"])
        self.findings = state["findings"]

    def _ask(self) -> None:
        paths = {"ranks": "/ranks", "all ranks": "/ranks?limit=1024", "band": "/band", "snapshot": ""}
        while not self._stop.wait(1.0):
            for name, path in paths.items():
                self.took[name].append(self.hub.get(f"/api/runs/{self.run}{path}")[0])


def measured(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Play the crowd and measure the hub."""
    hub = Hub(folder)
    try:
        links = uplinks(hub.url, TOKEN, "crowd-1", folder)
        late = args.hosts * args.ranks_per_host // 3
        crowd = Crowd(
            folder / "tapes", args.hosts, args.ranks_per_host, links, late=late, step_s=1 / args.steps_per_s
        )
        crowd.run_for(WARM_UP_S)
        viewer = Viewer(hub, crowd.run)
        viewer.start()
        cpu_s, began = hub.cpu_s, time.monotonic()
        behind_s = crowd.run_for(args.seconds)
        cpu = (hub.cpu_s - cpu_s) / (time.monotonic() - began)
        told = hub.get(f"/api/runs/{crowd.run}/ranks?cells=none&limit=1")[1]
        lag_s = crowd.steps / args.steps_per_s - told["now_s"]
        waiting = sum(len(host.uplink._backlog) for host in crowd.hosts)
        crowd.end()
        drained = all(host.uplink.drain(60) for host in crowd.hosts)
        viewer.stop()
        memory_mb = hub.memory_mb
        dropped = sum(host.uplink.dropped for host in crowd.hosts)
        crowd.close()
    finally:
        hub.close()
    first = told["ranks"][0]
    return {
        "ranks": args.hosts * args.ranks_per_host,
        "hosts": args.hosts,
        "hub_cpu_share": cpu,
        "hub_memory_mb": memory_mb,
        "lag_s": lag_s,
        "batches_waiting": waiting,
        "player_behind_s": behind_s,
        "update_age_p50_s": statistics.median(viewer.ages) if viewer.ages else None,
        "updates": len(viewer.ages),
        **asked(viewer.took),
        "late_rank_first": first["rank"] == late,
        "late_rank_named": first["worst"] == "late",
        "findings": [finding["code"] for finding in viewer.findings],
        "drained": drained,
        "lost": dropped + lost(folder, crowd),
    }  # fmt: skip


def asked(took: dict[str, list[float]]) -> dict[str, float]:
    """Median and longest of each question, milliseconds."""
    kinds = {"p50": statistics.median, "max": max}
    return {
        f"{name.replace(' ', '_')}_ms_{kind}": 1e3 * of(seconds)
        for kind, of in kinds.items()
        for name, seconds in took.items()
        if seconds
    }


def lost(folder: Path, crowd: Crowd) -> int:
    """Steps that are not in the store, of all ranks."""
    with Store(folder / "runs" / crowd.run / FILE_NAME) as store:
        streams = store.streams()
        full = sum(crowd.steps - streams.get(f"rank/{host.ranks[0]}", 0) for host in crowd.hosts)
        briefed = sum(store.totals(f"brief/{host.name}", ["steps"])["steps"][0] for host in crowd.hosts)
    return full + crowd.steps * sum(len(host.ranks) for host in crowd.hosts) - int(briefed)


def main() -> None:
    """Measure and print."""
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--hosts", type=int, default=128)
    ask.add_argument("--ranks-per-host", type=int, default=8)
    ask.add_argument("--steps-per-s", type=float, default=10.0)
    ask.add_argument("--seconds", type=float, default=60.0)
    ask.add_argument("--json", type=Path)
    args = ask.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = measured(args, Path(folder))
    for name, value in result.items():
        print(f"{name:24} {value:.3f}" if isinstance(value, float) else f"{name:24} {value}")
    if args.json:
        args.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
