"""From a training on a device to its report, through real processes: probe, journal, agent, store, findings.

Only the device is stood in for (tests/support/fakecuda.py), inside the training process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from sources import ROOT

from monitor.runs import folders
from monitor.store import FILE_NAME, Store

SCRIPT = f"""
import sys
sys.path.insert(0, {str(ROOT / "tests/support")!r})
import torch
import monitor.probe.cuda
from fakecuda import FakeDevice, counters
monitor.probe.cuda.Torch = FakeDevice
from loops import learn, loader, net, sgd

model = net()
optimizer = sgd(model)
for epoch in range(30):
    for batch in loader():
        learn(model, optimizer, batch)
activations = torch.zeros(3)
raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has")
"""


class Ran:
    """A run that ended, as its report and its store tell it."""

    def __init__(self, folder: Path) -> None:
        script, result = folder / "train.py", folder / "report.json"
        script.write_text(textwrap.dedent(SCRIPT))
        env = {**os.environ, "MONITOR_STATE_DIR": str(folder / "state"), "OMP_NUM_THREADS": "1"}
        ours = [
            "run",
            "--no-dashboard",
            "--run-dir",
            str(folder / "runs"),
            "--json",
            str(result),
            str(script),
        ]
        self.done = subprocess.run(
            [sys.executable, "-m", "monitor", *ours], env=env, capture_output=True, text=True
        )
        self.report: dict[str, Any] = json.loads(result.read_text())
        with Store(folders(folder / "runs")[0] / FILE_NAME) as store:
            self.keys = set(store.keys("cuda/0"))
            self.steps = store.totals("cuda/0", ["cuda_steps"])["cuda_steps"][0]
            self.facts = store.facts()["rank/0"]
            self.events = store.events()


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """One run for all of these."""
    return Ran(tmp_path_factory.mktemp("run"))


def test_the_script_ends_as_without_us(ran: Ran) -> None:
    """With torch's own exception, and its status."""
    assert ran.done.returncode == 1
    assert "OutOfMemoryError: CUDA out of memory" in ran.done.stderr
    assert ran.report["exit"]["code"] == 1


def test_rows_are_a_stream(ran: Ran) -> None:
    """All steps are in it, with the allocator's figures and the device's times."""
    assert ran.steps == ran.report["steps"] == 180
    assert {"cuda_allocated_mb", "cuda_split_mb", "gpu_forward_ms", "gpu_timed"} <= ran.keys


def test_facts_arrive(ran: Ran) -> None:
    """What the device is, and what its batches are."""
    assert ran.facts["cuda"]["name"] == "NVIDIA Test"
    assert ran.facts["batch/1"]["pinned"] is False


def test_who_held_the_memory_is_kept(ran: Ran) -> None:
    """With the run, for report and page."""
    (result,) = [event for event in ran.events if event["kind"] == "oom"]
    assert result["requested_mb"] == pytest.approx(2**31 / 1e6)
    assert (result["caught"], result["rank"]) == (False, 0)


def test_the_report_knows_the_memory(ran: Ran) -> None:
    """The contract's figures, at their highest, null no more."""
    assert ran.report["memory"]["cuda_allocated_mb"] == pytest.approx(20_000)
    assert ran.report["memory"]["cuda_reserved_mb"] == pytest.approx(24_000)
    assert ran.report["memory"]["cuda_fragmentation"] == pytest.approx(6.4 / 24, abs=0.01)
