"""Real frameworks on real digits, in this process, and what the probe wrote of them. No agent, no hub."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import TensorDataset

from monitor.probe import adapters
from monitor.probe.probe import Probe
from monitor.probe.recorder import Recorder
from monitor.tape.reader import JournalReader, TapeReader
from monitor.tape.writer import JournalWriter, TapeWriter


def digits(count: int) -> TensorDataset:
    """The first `count` of scikit-learn's digits: images in 0 to 1 of shape [count, 64], labels."""
    bunch = load_digits()
    images = torch.tensor(bunch.data[:count], dtype=torch.float32) / 16
    return TensorDataset(images, torch.tensor(bunch.target[:count]))


def network(seed: int = 0) -> nn.Module:
    """A small classifier of digits with dropout, so that a disturbed generator would show."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10))


class Seen:
    """What the probe recorded, readable once the block of `watching` is left.

    Attributes:
        columns: key -> float32 array, a value a step.
        events: the journal.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.columns: dict[str, np.ndarray] = {}
        self.events: list[dict[str, Any]] = []
        self.probe: Probe | None = None

    @property
    def steps(self) -> int:
        """Steps recorded."""
        return len(self.columns["step_ms"])

    def sum(self, key: str) -> float:
        """Over all steps, leaving out what was not measured."""
        return float(np.nansum(self.columns[key]))

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Events of one kind."""
        return [event for event in self.events if event["kind"] == kind]


@contextlib.contextmanager
def watching(folder: Path, *targets: Any, healthy: bool = True) -> Iterator[Seen]:
    """A probe around the block, attached to the targets as `monitor.attach` does it; it stays `healthy`."""
    folder.mkdir(parents=True, exist_ok=True)
    tape = TapeWriter(str(folder / "tape"), rank=0, world_size=1, local_rank=0)
    recorder = Recorder(tape, JournalWriter(str(folder / "journal")))
    probe = Probe(recorder, [target for target in targets if isinstance(target, nn.Module)])
    seen = Seen(folder)
    seen.probe = probe
    try:
        for target in targets:
            if not isinstance(target, nn.Module):
                probe.attach(adapters.find(target), target)
        yield seen
    finally:
        probe.finish(code=0)
        rows = TapeReader(str(folder / "tape")).read(0, 100_000)
        seen.columns = {key: np.array(values) for key, values in rows.columns.items()}
        seen.events = JournalReader(str(folder / "journal")).read()
    assert not (healthy and seen.of("warn")), seen.of("warn")


def weights(model: nn.Module) -> bytes:
    """A model's parameters, to the last bit."""
    return b"".join(parameter.detach().numpy().tobytes() for parameter in model.parameters())


def close(measured: float, expected: float, *, share: float = 0.25, slack: float = 3.0) -> bool:
    """Whether a measured time is the expected one, give or take what a busy machine adds."""
    return math.isfinite(measured) and expected - slack <= measured <= expected * (1 + share) + slack + 20
