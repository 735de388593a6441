"""Many ranks, one run: whoever launches them, and whatever becomes of them. Real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from monitor import report, runs

TRAIN = """
import os, sys, time
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
torch.set_num_threads(1)

def train(rank, steps=30, at=None):
    model = DistributedDataParallel(nn.Linear(4, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        if step == 12 and at is not None:
            at()
        optimizer.zero_grad()
        model(torch.ones(2, 4)).mean().backward()
        optimizer.step()
"""

SPAWNED = """
import torch.multiprocessing as mp

def rank(number, folder):
    import monitor
    dist.init_process_group("gloo", init_method=f"file://{folder}/group", rank=number, world_size=2)
    session = monitor.attach(dashboard=False, name="spawned")
    train(number)
    print(session.run, flush=True)
    session.detach()
    dist.barrier()
    os._exit(0)  # gloo's threads may abort a process that ends in the ordinary way

if __name__ == "__main__":
    mp.spawn(rank, args=(os.getcwd(),), nprocs=2)
"""

LAUNCHED = """
rank, attempt = int(os.environ["RANK"]), os.environ["TORCHELASTIC_RESTART_COUNT"]
# Through torchrun's own store a second attempt may be given the addresses of the first.
dist.init_process_group("gloo", init_method=f"file://{os.getcwd()}/group{attempt}", rank=rank, world_size=2)
again = attempt != "0"

def fail():
    if rank == 1 and not again:
        raise KeyError("planted")

train(rank, at=fail)
dist.barrier()
os._exit(0)
"""


def environment(folder: Path) -> dict[str, str]:
    """Everything of ours below `folder`."""
    unset = {
        k: v for k, v in os.environ.items() if not k.startswith(("MONITOR", "MASTER_", "RANK", "WORLD_"))
    }
    return {**unset, "MONITOR_RUN_DIR": str(folder / "runs"), "MONITOR_STATE_DIR": str(folder / "state")}


def script(folder: Path, body: str) -> Path:
    path = folder / "train.py"
    path.write_text(TRAIN + textwrap.dedent(body))
    return path


def torchrun(folder: Path, *options: str) -> int:
    """`torchrun OPTIONS -m monitor run train.py` on two ranks; its exit status."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", *options]
    command += ["-m", "monitor", "run", "--no-dashboard", str(script(folder, LAUNCHED))]
    return subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, check=False, timeout=150
    ).returncode


def only_run(folder: Path) -> dict[str, Any]:
    """The report of the one run there is, once it is over."""

    def over() -> dict[str, Any] | None:
        folders = runs.folders(folder / "runs")
        assert len(folders) <= 1, folders
        found = report.build(folders[0]) if folders else {"status": "running"}
        return None if found["status"] == "running" else found

    return until(over, "the end of the run")


def test_spawned_ranks_are_one_run(tmp_path: Path) -> None:
    """They share their parent and a process group, and no variable says so."""
    path = script(tmp_path, SPAWNED)
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True,
        check=False, timeout=150,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(set(done.stdout.split())) == 1
    found = only_run(tmp_path)
    assert (found["status"], found["world_size"], found["steps"]) == ("finished", 2, 30)


@pytest.mark.parametrize("restarts", [0, 1])
def test_a_rank_that_fails(restarts: int, tmp_path: Path) -> None:
    """Its exception is the cause, not the connection the other one lost. Started anew, the run goes on."""
    status = torchrun(tmp_path, f"--max-restarts={restarts}")
    found = only_run(tmp_path)
    assert found["world_size"] == 2
    if restarts:
        assert (status, found["status"]) == (0, "finished")
        assert found["steps"] == pytest.approx(12 + 30, abs=1)
    else:
        assert (status != 0, found["status"], found["exit"]["rank"]) == (True, "crashed", 1)
        assert "KeyError: 'planted'" in json.dumps(found["exit"])
