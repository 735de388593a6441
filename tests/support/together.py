"""Two ranks for real: two processes that exchange gradients through gloo, each with a probe of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from monitor.tape.reader import JournalReader, TapeReader

_HEAD = """
import hashlib, os, sys, time
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
"""
_TAIL = """
if probe is not None:
    probe.finish(code=0)
with open(f"rank-{rank}.weights", "w") as file:
    file.write(hashlib.md5(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest())
dist.barrier()
os._exit(0)  # gloo's threads may abort a process that ends in the ordinary way
"""


class Told:
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


def together(
    folder: Path, body: str, *, watched: bool = True, size: int = 2, timeout_s: float = 120
) -> list[Told]:
    """Run `body` on so many ranks. It makes `model`, and knows `rank`, `size` and torch's usual names."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.py").write_text(_HEAD + textwrap.dedent(body) + _TAIL)
    ranks = [
        subprocess.Popen(
            [sys.executable, "train.py"],
            cwd=folder,
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(size), "WATCHED": str(int(watched))},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    try:
        said = [rank.communicate(timeout=timeout_s)[1] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()
    assert [rank.returncode for rank in ranks] == [0] * size, said
    return [Told(folder / f"rank-{rank}") for rank in range(size)]
