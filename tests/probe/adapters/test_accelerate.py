"""Accelerate: loops by hand whose Accelerator says when gradients are only accumulated."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from training import digits, network, watching, weights

accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def fresh_state() -> Iterator[None]:
    """Accelerate keeps its state in the process."""
    yield
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    accelerate.state.GradientState._reset_state()


class Slow(Dataset):  # type: ignore[type-arg]
    """10 ms a sample."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.01)
        return self.data[index]


class Loop:
    """A loop as Accelerate's own examples write it."""

    def __init__(self, accumulate: int = 1, count: int = 96, data: Any = None, **options: Any) -> None:
        self.accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=accumulate, **options)
        self.model = network()
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.1)
        generator = torch.Generator().manual_seed(3)
        self.loader = DataLoader(data or digits(count), 8, shuffle=data is None, generator=generator)
        self.losses: list[float] = []
        self.taken = 0

    def prepare(self) -> None:
        self.model, self.optimizer, self.loader = self.accelerator.prepare(
            self.model, self.optimizer, self.loader
        )

    def run(self, epochs: int = 2, evaluation: Any = None) -> None:
        torch.manual_seed(5)
        for _ in range(epochs):
            self.model.train()
            for x, y in self.loader:
                with self.accelerator.accumulate(self.model):
                    loss = nn.functional.cross_entropy(self.model(x), y)
                    self.accelerator.backward(loss)
                    self.optimizer.step()
                    self.optimizer.zero_grad()
                    self.losses.append(loss.item())
                    self.taken += self.accelerator.sync_gradients
            if evaluation is not None:
                self.model.eval()
                for x, y in evaluation:
                    with torch.no_grad():
                        nn.functional.cross_entropy(self.model(x), y)


@pytest.mark.parametrize("accumulate", [1, 3])
def test_losses_and_weights_are_the_same(tmp_path: Path, accumulate: int) -> None:
    """To the last bit, with and without us."""
    bare = Loop(accumulate)
    bare.prepare()
    bare.run()
    ours = Loop(accumulate)
    with watching(tmp_path, ours.accelerator):
        ours.prepare()
        ours.run()
    assert ours.losses == bare.losses
    assert weights(ours.model) == weights(bare.model)


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize(("accumulate", "count"), [(1, 96), (3, 96), (4, 88), (2, 90)])
def test_a_step_is_an_optimizer_step(tmp_path: Path, accumulate: int, count: int, early: bool) -> None:
    """As often as gradients were synchronised, whether `prepare` came before attach or after it."""
    loop = Loop(accumulate, count)
    if early:
        loop.prepare()
    with watching(tmp_path, loop.accelerator) as seen:
        if not early:
            loop.prepare()
        loop.run()
    assert seen.steps == loop.taken
    assert seen.sum("samples") == 2 * count
    assert np.all(seen.columns["optimizer_steps"] == 1)
    assert list(seen.columns["samples"][:2]) == [8 * accumulate] * 2
    assert sorted(set(seen.columns["epoch"])) == [1, 2]
    assert seen.columns["forward_ms"].min() > 0


def test_the_loss_is_that_of_the_whole_step(tmp_path: Path) -> None:
    """The mean over micro-batches, not the share that `backward` is given."""
    loop = Loop(2)
    loop.prepare()
    with watching(tmp_path, loop.accelerator) as seen:
        loop.run()
    assert seen.columns["loss"] == pytest.approx(np.reshape(loop.losses, (-1, 2)).mean(axis=1), rel=1e-5)


def test_waiting_belongs_to_the_step_that_it_blocks(tmp_path: Path) -> None:
    """Its loader fetches one ahead: two batches before the first step, none during the last."""
    loop = Loop(data=Slow(digits(32)))
    loop.prepare()
    with watching(tmp_path, loop.accelerator) as seen:
        loop.run(1)
    assert seen.steps == 4
    assert list(seen.columns["samples"]) == [8, 8, 8, 8]
    waits = seen.columns["data_ms"]
    assert waits[0] >= 160
    assert np.all((waits[1:3] >= 80) & (waits[1:3] < 160))
    assert waits[3] < 80


def test_evaluation_counts_for_nothing_but_evaluation(tmp_path: Path) -> None:
    """A prepared loader under `model.eval()`: its batches are no samples, its time is `eval`."""
    loop = Loop(count=32)
    loop.prepare()
    held_out = loop.accelerator.prepare(DataLoader(Slow(digits(24)), 8))
    with watching(tmp_path, loop.accelerator) as seen:
        loop.run(2, held_out)
    assert seen.steps == 8
    assert seen.sum("samples") == 64
    assert seen.columns["eval_ms"][4] >= 240
    assert seen.columns["data_ms"].max() < 240


def test_mixed_precision(tmp_path: Path) -> None:
    """bfloat16 through the Accelerator is seen as such, and steps are as many."""
    loop = Loop(mixed_precision="bf16")
    loop.prepare()
    with watching(tmp_path, loop.accelerator) as seen:
        loop.run(1)
    assert seen.steps == 12
    precision = [event["value"] for event in seen.of("fact") if event["name"] == "precision"][-1]
    assert precision["autocast_dtype"] == "bfloat16"


def test_saving_is_a_phase(tmp_path: Path) -> None:
    """`save_state` is one event and checkpoint time, whatever files it writes."""
    loop = Loop(count=32)
    loop.prepare()
    with watching(tmp_path / "tape", loop.accelerator) as seen:
        loop.run(1)
        loop.accelerator.save_state(str(tmp_path / "state"))
        loop.run(1)
    assert len(seen.of("save")) == 1
    assert seen.sum("checkpoint_ms") == pytest.approx(seen.of("save")[0]["ms"], abs=2)


def test_numbers_given_to_its_trackers_are_ours_too(tmp_path: Path) -> None:
    """`accelerator.log`, apart from what is no plain number."""
    loop = Loop()
    with watching(tmp_path, loop.accelerator) as seen:
        loop.accelerator.log({"lr": 0.5, "image": torch.zeros(2), "name": "x"}, step=1)
    assert [event["values"] for event in seen.of("log")] == [{"lr": 0.5}]


def test_detach_puts_its_classes_back(tmp_path: Path) -> None:
    """Loaders, Accelerator: as they were."""
    from accelerate.data_loader import DataLoaderShard

    before = DataLoaderShard.__iter__, accelerate.Accelerator.prepare_model, accelerate.Accelerator.log
    with watching(tmp_path, Loop().accelerator):
        assert DataLoaderShard.__iter__ is not before[0]
    after = DataLoaderShard.__iter__, accelerate.Accelerator.prepare_model, accelerate.Accelerator.log
    assert after == before
