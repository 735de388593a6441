"""Runs the scripts of benchmarks/gpu, bare and watched, with NVML asked by a bare loop beside them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

from monitor.runs import folders
from monitor.store import FILE_NAME, Store

HERE = Path(__file__).parent
#: Seconds between two questions of the bare loop.
NVML_EVERY_S = 0.2

#: Samples of the agent's whose cost is measured.
SAMPLES = 10

Figures = dict[str, float]


@dataclass
class Outcome:
    """One script that ran.

    Attributes:
        told: the script's own last line.
        report: what `--json` wrote; empty for a bare run.
        means: (stream kind, key) -> mean over the run, as stored.
        lasts, sums: the same, the newest value and the sum.
        nvml: our column's name -> mean of the bare loop over the steps.
        uuids: which devices the agent showed, and on which the process said that it trains.
        seconds: from the first sample of the device to the last one.
        events: the run's events.
    """

    told: dict[str, Any] = field(default_factory=dict)
    report: dict[str, Any] = field(default_factory=dict)
    means: Figures = field(default_factory=dict)
    lasts: Figures = field(default_factory=dict)
    sums: Figures = field(default_factory=dict)
    nvml: Figures = field(default_factory=dict)
    uuids: dict[str, set[str]] = field(default_factory=dict)
    seconds: float = 0.0
    events: list[dict[str, Any]] = field(default_factory=list)


class Bare:
    """NVML asked by nothing but a loop, in a thread of its own."""

    def __init__(self, uuid: str) -> None:
        import pynvml

        pynvml.nvmlInit()
        self._nvml = pynvml
        self._handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        self._seen: list[tuple[float, Figures]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(NVML_EVERY_S):
            self._seen.append((time.time(), self._ask()))

    def _ask(self) -> Figures:
        nvml, handle = self._nvml, self._handle
        questions: dict[str, Callable[[], float]] = {
            "gpu_util": lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu,
            "gpu_memory_used_mb": lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used / 1e6,
            "gpu_power_w": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
            "gpu_power_limit_w": lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1e3,
            "gpu_sm_clock_max_mhz": lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM),
            "gpu_temperature_c": lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
            "gpu_sm_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
        }
        found = {}
        for key, ask in questions.items():
            with suppress(nvml.NVMLError):
                found[key] = float(ask())
        return found

    def stop(self, since: float, until: float) -> Figures:
        """End the loop; means between two moments (unix seconds)."""
        self._over.set()
        self._thread.join()
        inside = [figures for at, figures in self._seen if since <= at <= until]
        keys = {key for figures in inside for key in figures}
        return {key: mean(figures[key] for figures in inside if key in figures) for key in keys}


class Checker:
    """Runs the scripts.

    Args:
        uuid: the device that they use.
        seconds: how long each trains.
    """

    def __init__(self, uuid: str, seconds: float) -> None:
        self.uuid, self.seconds = uuid, seconds
        self._folder = Path(tempfile.mkdtemp(prefix="gpu-check-"))
        self._env = {**os.environ, "MONITOR_STATE_DIR": str(self._folder / "state")}
        self._env.pop("MONITOR", None)

    def bare(self, script: str, *options: str) -> dict[str, Any]:
        """A script without the monitor; its last line."""
        return last_line(self._start([sys.executable, *self._script(script, *options)]))

    def watched(self, script: str, env: Mapping[str, str] | None = None) -> Outcome:
        """A script under the monitor, in this environment, and the bare NVML loop beside it."""
        runs, told = self._folder / "runs", self._folder / f"{script}.json"
        ours = ["run", "--no-dashboard", "--run-dir", str(runs), "--name", script, "--json", str(told)]
        nvml = Bare(self.uuid)
        output = self._start([sys.executable, "-m", "monitor", *ours, *self._script(script)], env or {})
        out = Outcome(last_line(output), json.loads(told.read_text()))
        with Store(folders(runs)[0] / FILE_NAME) as store:
            since, until = read(store, out)
        out.nvml = nvml.stop(since, until)
        return out

    def neighbour(self) -> subprocess.Popen[bytes]:
        """Another process that keeps the device busy; end it."""
        return subprocess.Popen([sys.executable, str(HERE / "gpu" / "tf32_off.py"), "--seconds", "60"])

    def _script(self, script: str, *options: str) -> list[str]:
        return [str(HERE / "gpu" / f"{script}.py"), "--seconds", str(self.seconds), *options]

    def _start(self, command: list[str], env: Mapping[str, str] | None = None) -> str:
        done = subprocess.run(
            command, env={**self._env, **(env or {})}, capture_output=True, text=True, timeout=120
        )
        if done.returncode and "out of memory" not in done.stderr:
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
        return done.stdout


def last_line(output: str) -> dict[str, Any]:
    """The last line of JSON that a script printed; empty where it printed none."""
    lines = [line for line in output.splitlines() if line.startswith("{")]
    return dict(json.loads(lines[-1])) if lines else {}


def read(store: Store, out: Outcome) -> tuple[float, float]:
    """Take a run's figures out of its store; returns when it trained, in unix seconds."""
    for stream in store.streams():
        if stream.partition("/")[0] not in ("cuda", "gpu", "rank"):
            continue
        keys = store.keys(stream)
        for key, (total, count, _, _) in store.totals(stream, keys).items():
            if count:
                out.means[key], out.sums[key] = total / count, total
        span = store.span(stream)
        assert span is not None
        if stream.startswith("gpu/"):
            out.seconds = span["last_t_s"] - span["first_t_s"]
        newest = store.rows(stream, keys, span["last_row"], span["last_row"])
        out.lasts.update({key: float(newest[key][-1]) for key in keys})
    out.events = store.events(limit=10_000)
    rank, hosts = store.facts().get("rank/0", {}), store.meta().get("host_facts") or {}
    shown = [gpu for host in hosts.values() for gpu in host.get("gpus") or ()]
    out.uuids = {
        "agent": {bare_uuid(gpu.get("uuid")) for gpu in shown},
        "probe": {bare_uuid(uuid) for uuid in (rank.get("cuda") or {}).get("uuids") or ()},
    }
    span = store.span("rank/0") or {"first_t_s": 0.0, "last_t_s": 0.0}
    began = float(store.meta()["started_unix_s"])
    return began + span["first_t_s"], began + span["last_t_s"]


def bare_uuid(uuid: object) -> str:
    """A UUID without what is written before it, in small letters."""
    return str(uuid).lower().removeprefix("gpu-").removeprefix("mig-")


def sample_ms() -> float | None:
    """What one sample of all devices takes the agent, in ms; None where it cannot be taken."""
    from monitor.agent.gpu import GpuSampler

    sampler = GpuSampler()
    sampler.start()
    times = []
    for _ in range(SAMPLES):
        began = time.perf_counter()
        if not sampler.sample():
            return None
        times.append((time.perf_counter() - began) * 1e3)
        time.sleep(NVML_EVERY_S)
    return mean(times)


def device() -> dict[str, Any] | None:
    """The first device that torch sees, asked in a process of its own; None where there is none."""
    code = (
        "import json, torch\n"
        "ok = torch.cuda.is_available()\n"
        "p = torch.cuda.get_device_properties(0) if ok else None\n"
        "print(json.dumps({'name': p.name, 'uuid': str(p.uuid), 'torch': torch.__version__,"
        " 'cuda': torch.version.cuda} if ok else None))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    found = json.loads(lines[-1]) if lines and not done.returncode else None
    if found and not found["uuid"].startswith(("GPU-", "MIG-")):
        found["uuid"] = f"GPU-{found['uuid']}"
    return found
