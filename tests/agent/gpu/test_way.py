"""A GPU's whole way: driver, agent, store, diagnosis, report. Only the driver and the steps are played."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import boards, but

TRAINER = Path(__file__).parent.with_name("trainer.py")

#: An agent whose sink is the pipeline itself, as with --no-dashboard.
AGENT = """
import json, subprocess, sys, time
from pathlib import Path
from monitor.agent.loop import Agent, Run
from monitor.pipeline import Pipeline
from monitor.report import build
folder, trainer, plan = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
spool, runs = folder / "spool", folder / "runs"
spool.mkdir()
trained = subprocess.Popen([sys.executable, trainer, str(spool), plan], stdout=subprocess.DEVNULL)
run = Run("20261130-000000-gpu-0000", "here", time.perf_counter_ns(), {"name": "gpu", "world_size": 1})
pipeline = Pipeline(runs)
Agent(spool, run, pipeline, sample_s=0.1).run()
pipeline.close()
trained.wait()
print(json.dumps(build(runs / run.id)))
"""


@pytest.fixture(scope="module")
def report(library: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Of a run on the second of two devices, which is hot and reported an error."""
    folder = tmp_path_factory.mktemp("way")
    state = folder / "state"
    hot = but(boards(2), u0_throttle=64, u1_throttle=64, u1_clock=1100)
    state.write_text(hot + "xid 1:31\n")
    env = {**os.environ, "LD_LIBRARY_PATH": str(library), "NVML_STUB_STATE": str(state)}
    facts = {"cuda": {"uuid": "111-stub", "capability": [9, 0]}, "model/1": {"device": "cuda:0"}}
    plan = {"steps": 120, "step_s": 0.01, "ready_at": 1, "facts": facts}
    made = [sys.executable, "-c", AGENT, str(folder), str(TRAINER), json.dumps(plan)]
    done = subprocess.run(made, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_what_the_driver_says_reaches_the_report(report: dict[str, Any]) -> None:
    """The heat of the device that the rank uses, and not that of the other one."""
    found = {one["code"]: one for one in report["findings"]}
    hot = found["gpu_throttled"]
    assert (hot["severity"], hot["cause"], hot["ranks"]) == ("warning", "heat", [0])
    assert (hot["evidence"]["gpu"], hot["evidence"]["device"]) == ("here/1", "Stub")


def test_the_driver_s_errors_reach_the_report(report: dict[str, Any]) -> None:
    """An Xid by its meaning."""
    found = {one["code"]: one for one in report["findings"]}
    assert found["gpu_error"]["cause"] == "a kernel did something illegal"


def test_what_nobody_told_is_said_to_be_unchecked(report: dict[str, Any]) -> None:
    """Never taken for fine, and never for a number."""
    why = {one["code"]: one["why"] for one in report["not_checked"]}
    assert why["gpu_shared"] == "whose processes are on the GPU cannot be told"
    assert why["memory_fragmentation"] == "nothing told of GPU memory after warm-up yet"
    assert why["launch_bound"] == "no step timed on the GPU yet"
    assert report["memory"]["cuda_allocated_mb"] is None
