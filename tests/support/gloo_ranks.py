"""Runs a training script on several real ranks: processes that exchange through gloo, each with a probe.

A rank ends by `os._exit`, a failed one too: torch 2.13 may hang or abort on the ordinary way out. A process
group that is let go waits for gloo's threads with the interpreter locked, and these may wait for the
interpreter: a backward pass gave their work an object of Python's to drop (gdb showed both). The other rank
would then wait until the time is up, with nothing said of what failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

from monitor.tape.reader import JournalReader, TapeReader

_HEAD = """
import faulthandler, hashlib, os, sys, time, traceback
def failed(*error):
    traceback.print_exception(*error, file=sys.__stderr__)  # torch 2.4 holds sys.stderr back in its hook
    os._exit(1)
sys.excepthook = failed
faulthandler.dump_traceback_later(float(os.environ["PATIENCE_S"]))  # where it hangs
from pathlib import Path
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from monitor.probe.probe import Probe
from monitor.probe.recorder import Recorder
from monitor.tape.writer import JournalWriter, TapeWriter

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.set_num_threads(1)
torch.manual_seed(0)
dist.init_process_group("gloo", init_method="file://" + os.path.abspath("group"), rank=rank, world_size=size)
probe = None
if os.environ["WATCHED"] == "1":
    tape = TapeWriter(f"rank-{rank}.tape", rank=rank, world_size=size, local_rank=rank, slots=1024)
    probe = Probe(Recorder(tape, JournalWriter(f"rank-{rank}.journal")))

# Come 30 ms after the other rank has said that it waits: so it has waited, however busy the machine is.
def be_late(said):
    while not Path(said).exists():
        time.sleep(0.001)
    time.sleep(0.03)

# Say so at the end of the backward pass's arithmetic: what comes after it is waiting for others.
def say_when_computed(loss, path):
    queue = torch.autograd.Variable._execution_engine.queue_callback
    loss.register_hook(lambda _: queue(Path(path).touch))

# Come 30 ms after the other rank's tape says that it waits in a collective of this step.
def be_late_in_collective(step):
    from monitor.schema import PHASES
    from monitor.tape.reader import TapeReader
    other = TapeReader(f"rank-{1 - rank}.tape")
    while (live := other.live()).steps < step or live.phase != "comm":
        time.sleep(0.001)
    time.sleep(0.03)
"""
#: Nobody leaves before all have what they exchange: a closed connection may lose what it still holds.
_TAIL = """
if probe is not None:
    probe.finish(code=0)
with open(f"rank-{rank}.weights", "w") as file:
    file.write(hashlib.md5(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest())
dist.barrier()
Path(f"rank-{rank}.done").touch()
while not all(Path(f"rank-{one}.done").exists() for one in range(size)):
    time.sleep(0.001)
os._exit(0)
"""


class RankOutcome:
    """What one rank wrote: `columns` (key -> a value a step), `facts`, `warnings`, `weights` (a digest)."""

    def __init__(self, stem: Path) -> None:
        self.weights = stem.with_suffix(".weights").read_text()
        self.columns: dict[str, list[float]] = {}
        self.facts: dict[str, Any] = {}
        self.warnings: list[str] = []
        if stem.with_suffix(".tape").exists():
            rows = TapeReader(str(stem.with_suffix(".tape"))).read(0, 4096)
            self.columns = {key: list(values) for key, values in rows.columns.items()}
            events = JournalReader(str(stem.with_suffix(".journal"))).read()
            self.facts = {e["name"]: e["value"] for e in events if e["kind"] == "fact"}
            self.warnings = [e["text"] for e in events if e["kind"] == "warn"]


def run_ranks(
    folder: Path, body: str, *, watched: bool = True, size: int = 2, timeout_s: float = 300
) -> list[RankOutcome]:
    """Run `body` on so many ranks. It makes `model`, and knows `rank`, `size` and torch's usual names.

    Args:
        timeout_s: most of it is for torch's imports (DDP and FSDP import its compiler) where others have the
            CPUs; two minutes were too short for that.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.py").write_text(_HEAD + textwrap.dedent(body) + _TAIL)
    ranks = [_start(folder, rank, size, watched, timeout_s - 10) for rank in range(size)]
    limit = time.monotonic() + timeout_s
    codes: list[int | None] = [None]
    try:
        while None in codes and not any(codes) and time.monotonic() < limit:
            time.sleep(0.01)
            codes = [rank.poll() for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    assert codes == [0] * size, [(folder / f"rank-{rank}.stderr").read_text() for rank in range(size)]
    return [RankOutcome(folder / f"rank-{rank}") for rank in range(size)]


def _start(folder: Path, rank: int, size: int, watched: bool, patience_s: float) -> subprocess.Popen[bytes]:
    told = {"RANK": rank, "WORLD_SIZE": size, "WATCHED": int(watched), "PATIENCE_S": patience_s}
    with (folder / f"rank-{rank}.stderr").open("wb") as said:
        return subprocess.Popen(
            [sys.executable, "train.py"],
            cwd=folder,
            env={**os.environ, **{name: str(value) for name, value in told.items()}},
            stderr=said,
        )
