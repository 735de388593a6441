"""Without any one of torch's private names the training goes on, steps are exact, and one signal is null."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from sources import ROOT

from monitor.probe import torch_compat
from monitor.report import wait
from monitor.schema import PHASES, SIGNALS

#: Steps that each of the scripts takes.
STEPS = 24

PRELUDE = """
torch_compat.hidden.update(hidden)
model = net()
"""

LOOP = """
session = monitor.attach(dashboard=False)
optimizer = sgd(model)
for epoch in range(4):
    for batch in loader():
        learn(model, optimizer, batch)
"""

SCALED = """
session = monitor.attach(dashboard=False)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
for epoch in range(4):
    for batch in loader():
        with torch.autocast("cpu", torch.bfloat16):
            loss = error(model, batch)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
"""

BY_HAND = """
session = monitor.attach(model, dashboard=False)
for epoch in range(4):
    for batch in loader():
        error(model, batch).backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.01 * parameter.grad
                parameter.grad = None
"""

NESTED = """
session = monitor.attach(dashboard=False)
class Base(torch.optim.SGD):
    pass
class Derived(Base):
    def step(self, closure=None):
        return super().step(closure)
Base([torch.nn.Parameter(torch.zeros(1))])
optimizer = Derived(model.parameters(), lr=0.01)
batch = next(iter(loader()))
for step in range(24):
    learn(model, optimizer, batch)
"""

COMPILED = """
session = monitor.attach(dashboard=False)
compiled = torch.compile(model, backend="eager")
optimizer = sgd(model)
for epoch in range(4):
    for batch in loader():
        learn(compiled, optimizer, batch)
"""

WRAPPED = """
import torch.distributed as dist
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
session = monitor.attach(dashboard=False)
wrapped = torch.nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
optimizer = sgd(wrapped)
from torch.distributed import _functional_collectives
for epoch in range(4):
    for batch in loader():
        learn(wrapped, optimizer, batch)
dist.destroy_process_group()
"""

DEVICE = """
import monitor.probe.cuda
from fakecuda import FakeDevice
monitor.probe.cuda.Torch = FakeDevice
session = monitor.attach(dashboard=False)
import time
optimizer = sgd(model)
for epoch in range(4):
    time.sleep(0.3)
    for batch in loader():
        learn(model, optimizer, batch)
"""

END = """
session.detach()
print(session.run)
"""

#: Imports what is slow to import, then forks a process for each training, two at a time.
PARENT = f"""
import json, os, sys, traceback
sys.path.insert(0, {str(ROOT / "tests/support")!r})
import torch, torch.distributed
torch.set_num_threads(1)
import monitor, monitor.probe.probe
from monitor.probe import torch_compat
from loops import error, learn, loader, net, sgd

def train(folder, hidden, script):
    sys.argv = [folder + "/train.py"]
    os.environ.update(MONITOR_STATE_DIR=folder + "/state", MONITOR_RUN_DIR=folder + "/runs")
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder + "/" + name, os.O_CREAT | os.O_WRONLY, 0o600), number)
    code = 1
    try:
        exec(compile(script, sys.argv[0], "exec"), {{**globals(), "hidden": hidden}})
        code = 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

waiting, running, codes = json.load(sys.stdin), {{}}, {{}}
while waiting or running:
    while waiting and len(running) < 2:
        job = waiting.pop()
        child = os.fork()
        if not child:
            train(*job)
        running[child] = job[0]
    child, status = os.wait()
    if child in running:
        codes[running.pop(child)] = os.waitstatus_to_exitcode(status)
print(json.dumps(codes))
"""

SCRIPTS = {
    "compile": COMPILED, "comm": WRAPPED, "ddp": WRAPPED, "loss_scale": SCALED, "amp_skipped": SCALED,
    "precision": SCALED, "optimizer": NESTED, "cuda_syncs": DEVICE, "empty_cache": DEVICE,
    "cuda_memory": DEVICE, "steps": BY_HAND,
}  # fmt: skip


def here(entry: torch_compat.TorchName) -> bool:
    """Whether this torch has the name at all; those of other versions are for their own rows."""
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    known = [tuple(map(int, (text or fallback).split("."))) for text, fallback in
             ((entry.since, "0.0"), (entry.until, "99.0"))]  # fmt: skip
    return known[0] <= version <= known[1]


ENTRIES = [entry for entry in torch_compat.TABLE.values() if here(entry)]


class Outcome:
    """A training that ended, and its report."""

    def __init__(self, folder: Path, code: int) -> None:
        self.code, self.stderr = code, (folder / "err").read_text()
        run = (folder / "out").read_text().split()
        self.report: dict[str, Any] = wait(folder / "runs" / run[-1], 60.0) if run else {}

    @property
    def lost(self) -> dict[str, str]:
        """Signals under `not_checked`, and why."""
        entries = self.report["not_checked"]
        return {entry["code"]: entry["why"] for entry in entries if entry["code"] in SIGNALS}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """One training without each of the names; "" is one that lacks none."""
    folders = {key: tmp_path_factory.mktemp("lost") for key in ("", *(entry.key for entry in ENTRIES))}
    jobs = [
        (str(folders[entry.key]), [entry.key], PRELUDE + SCRIPTS.get(entry.signal, LOOP) + END)
        for entry in ENTRIES
    ]
    jobs.append((str(folders[""]), [], PRELUDE + LOOP + END))
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PARENT], input=json.dumps(jobs), env=env, capture_output=True, text=True
    )
    codes = json.loads(done.stdout)
    return {key: Outcome(folder, codes[str(folder)]) for key, folder in folders.items()}


def test_with_every_name_nothing_is_lost(outcomes: dict[str, Outcome]) -> None:
    """All phases have a share."""
    outcome = outcomes[""]
    assert (outcome.code, outcome.report["steps"], outcome.lost, outcome.stderr) == (0, STEPS, {}, "")
    assert None not in outcome.report["time_share"].values()


@pytest.mark.parametrize("key", [entry.key for entry in ENTRIES])
def test_one_name_less_is_one_signal_less(key: str, outcomes: dict[str, Outcome]) -> None:
    """The run ends well, its steps are exact, and what is lost is null and named, with the reason."""
    entry, outcome = torch_compat.TABLE[key], outcomes[key]
    assert outcome.code == 0, outcome.stderr
    report = outcome.report
    steps = None if entry.signal == "steps" else STEPS
    assert (report["steps"], report["status"]) == (steps, "finished"), outcome.stderr
    assert not report["notices"]
    expected = set() if entry.stand_in else {entry.signal}
    # A scaled loss says nothing where the scale is not known.
    expected |= {"loss"} & {"loss" for signal in expected if signal == "loss_scale"}
    assert set(outcome.lost) == expected, json.dumps(outcome.lost) + outcome.stderr
    assert all(key in why for why in outcome.lost.values())
    if steps is None:
        return
    shares = report["time_share"]
    unknown = {f"{phase}_ms" for phase in PHASES if shares[phase] is None} - {"h2d_ms"}
    assert unknown == {column for signal in expected for column in SIGNALS[signal] if column[:-3] in PHASES}
    assert sum(share or 0.0 for share in shares.values()) == pytest.approx(1.0, abs=0.02)


def test_every_entry_carries_a_signal() -> None:
    """A signal that the report knows how to name."""
    assert {entry.signal for entry in torch_compat.TABLE.values()} <= set(SIGNALS)


def test_this_torch_has_every_name() -> None:
    """What is absent here stands in the table with the version it went with, or has a device's build."""
    absent = [
        entry.key for entry in ENTRIES
        if not entry.of_object and not entry.optional and not torch_compat.has(entry)
        and not entry.path.startswith("_cuda_")
    ]  # fmt: skip
    assert absent == []
