"""Where the time goes: a sleep planted in one place is found in that phase, and in no other."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from loops import BATCHES, data, error, learn, loader, net, sgd
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, default_collate
from watching import Watch, watching

from monitor.schema import PHASES

#: Long beside everything else in these small steps, on a busy machine too.
NAP_S = 0.03


def nap(*_: Any) -> None:
    time.sleep(NAP_S)


def napping_collate(samples: Any) -> Any:
    nap()
    return default_collate(samples)


class NappingNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = net()

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        nap()
        return self.inner(features)


class NappingOptimizer(torch.optim.SGD):
    def step(self, closure: Any = None) -> Any:
        nap()
        return super().step(closure)


class NappingFile(io.BytesIO):
    def write(self, data: Any) -> int:
        if not self.tell():
            nap()
        return super().write(data)


def in_collate(watch: Watch) -> None:
    model = net()
    watch.see(model)
    optimizer = sgd(model)
    for batch in loader(collate_fn=napping_collate):
        learn(model, optimizer, batch)


def in_a_worker(watch: Watch) -> None:
    model = net()
    watch.see(model)
    optimizer = sgd(model)
    for batch in loader(collate_fn=napping_collate, num_workers=1, multiprocessing_context="fork"):
        learn(model, optimizer, batch)


class Inner(IterableDataset[Any]):
    """A dataset that reads its rows with a loader of its own."""

    def __iter__(self) -> Iterator[Any]:
        for features, target in DataLoader(data(), collate_fn=napping_collate, batch_size=8):
            yield from zip(features, target, strict=True)


def in_a_datasets_own_loader(watch: Watch) -> None:
    model = net()
    watch.see(model)
    optimizer = sgd(model)
    for batch in DataLoader(Inner(), batch_size=8):
        learn(model, optimizer, batch)


def in_forward(watch: Watch) -> None:
    model = NappingNet()
    watch.see(model)
    optimizer = sgd(model)
    for batch in loader():
        learn(model, optimizer, batch)


def in_forward_of_a_found_model(watch: Watch) -> None:
    model = NappingNet()
    optimizer = sgd(model)
    for _ in range(2):
        for batch in loader():
            learn(model, optimizer, batch)


def in_backward(watch: Watch) -> None:
    model = net()
    watch.see(model)
    optimizer = sgd(model)
    for batch in loader():
        loss = error(model, batch)
        loss.register_hook(nap)
        loss.backward()
        optimizer.step()


def in_optimizer(watch: Watch) -> None:
    model = net()
    watch.see(model)
    optimizer = NappingOptimizer(model.parameters(), lr=0.1)
    for batch in loader():
        learn(model, optimizer, batch)


def in_the_base_of_an_optimizer(watch: Watch) -> None:
    """After an optimizer inside another one, the outer one's phase is closed as well."""
    model = net()
    watch.see(model)
    base = sgd(model)

    class Outer(torch.optim.Optimizer):
        def step(self, closure: Any = None) -> None:
            base.step()

    optimizer = Outer(model.parameters(), {})
    for batch in loader():
        learn(model, optimizer, batch)
        nap()


def between_hooks(watch: Watch) -> None:
    model = net()
    watch.see(model)
    optimizer = sgd(model)
    for batch in loader():
        learn(model, optimizer, batch)
        nap()


def in_saving(watch: Watch) -> None:
    model = net()
    watch.see(model)
    optimizer = sgd(model)
    for batch in loader():
        learn(model, optimizer, batch)
        torch.save({"step": 1}, NappingFile())


def evaluating(how: str) -> Callable[[Watch], None]:
    """An epoch of training, then one of validation whose batches take long, in one of the usual ways."""

    def loop(watch: Watch) -> None:
        model, training = net(), loader()
        watch.see(model)
        optimizer, validation = sgd(model), loader(shuffle=False)
        for _ in range(3):
            model.train()
            for batch in training:
                learn(model, optimizer, batch)
            if "eval" in how:
                model.eval()
            with torch.no_grad() if "outside" in how else nullcontext():
                for number, batch in enumerate(validation):
                    if "left early" in how and number == BATCHES // 2:
                        break
                    with torch.no_grad() if "inside" in how else nullcontext():
                        error(model, batch)
                    nap()
        for batch in training:
            learn(model, optimizer, batch)

    loop.__name__ = how
    return loop


WHERE: dict[Callable[[Watch], None], str] = {
    in_collate: "data",
    in_a_worker: "data",
    in_a_datasets_own_loader: "data",
    in_forward: "forward",
    in_forward_of_a_found_model: "forward",
    in_backward: "backward",
    in_optimizer: "optimizer",
    in_the_base_of_an_optimizer: "other",
    between_hooks: "other",
    in_saving: "checkpoint",
}


@pytest.mark.parametrize("loop", WHERE, ids=lambda loop: loop.__name__)
def test_a_nap_is_found_where_it_was_taken(loop: Callable[[Watch], None], tmp_path: Path) -> None:
    """Nearly all of the time of such a loop is in the phase in which it sleeps."""
    with watching(tmp_path) as watch:
        loop(watch)
    total = sum(watch.column("step_ms"))
    assert watch.longest() == WHERE[loop]
    assert watch.total(WHERE[loop]) >= (watch.steps - 1) * NAP_S * 1e3 * 0.8
    assert watch.total(WHERE[loop]) > 0.7 * total


@pytest.mark.parametrize(
    "how",
    [
        "eval, no_grad outside",
        "eval, no_grad inside",
        "eval, with gradients",
        "train mode, no_grad outside",
        "train mode, no_grad inside",
        "eval, no_grad outside, left early",
        "eval, no_grad inside, left early",
        "train mode, no_grad inside, left early",
    ],
)
def test_evaluation_is_told_from_training(how: str, tmp_path: Path) -> None:
    """However it is written, validation is `eval`, is no step of its own, and stops when it ends."""
    with watching(tmp_path) as watch:
        evaluating(how)(watch)
    assert watch.steps == 4 * BATCHES
    # before it is known for a validation loader, its first batch counts as training's
    unsure = 2 * NAP_S * 1e3 if "train mode, no_grad inside" in how else 0
    naps = 3 * (BATCHES // 2 if "early" in how else BATCHES)
    assert watch.total("eval") >= naps * NAP_S * 1e3 - unsure
    evaluated = [row["eval_ms"] > 0.5 * NAP_S * 1e3 for row in watch.rows]
    assert [index for index, flag in enumerate(evaluated) if flag] == [BATCHES, 2 * BATCHES, 3 * BATCHES]
    last = watch.rows[-BATCHES + 1 :]
    assert sum(row["eval_ms"] for row in last) == 0
    assert min(row["forward_ms"] for row in last) > 0
    assert min(row["data_ms"] for row in last) > 0


def test_roles_of_loaders(tmp_path: Path) -> None:
    """Which loader feeds the training and which the evaluation is a fact of the run."""
    with watching(tmp_path) as watch:
        evaluating("eval, no_grad outside")(watch)
    roles = {name: fact["role"] for name, fact in watch.facts().items() if name.startswith("loader/")}
    assert roles == {"loader/1": "train", "loader/2": "eval"}


def test_training_in_evaluation_mode_is_training(tmp_path: Path) -> None:
    """Fine-tuning with `model.eval()` has data and forward phases like any other, once it is known."""
    with watching(tmp_path) as watch:
        model = net().eval()
        watch.see(model)
        optimizer = sgd(model)
        for _ in range(2):
            for batch in loader():
                learn(model, optimizer, batch)
    assert sum(row["eval_ms"] for row in watch.rows[1:]) == 0
    assert min(row["forward_ms"] for row in watch.rows[1:]) > 0
    assert min(row["data_ms"] for row in watch.rows[1:]) > 0


def test_training_by_hand_after_a_look_at_a_validation_batch(tmp_path: Path) -> None:
    """A validation loader left after one batch does not turn what follows into evaluation."""
    batch = data()[:]
    with watching(tmp_path) as watch:
        model = net()
        watch.see(model)
        optimizer = sgd(model)
        with torch.no_grad():
            next(iter(loader()))
        for _ in range(4):
            learn(model, optimizer, batch)
            nap()
    assert [row["eval_ms"] for row in watch.rows[1:]] == [0.0] * 3
    assert watch.longest() == "other"


def test_a_sync_of_the_file_after_saving_counts_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`os.fsync` in the step of a `torch.save` is checkpointing; any other is the user's own."""
    monkeypatch.setattr(os, "fsync", nap)
    with watching(tmp_path) as watch:
        model = net()
        watch.see(model)
        optimizer = sgd(model)
        for number, batch in enumerate(loader()):
            learn(model, optimizer, batch)
            if number == 2:
                torch.save(model.state_dict(), tmp_path / "model.pt")
            os.fsync(0)
    long = [max(PHASES, key=lambda phase: row[f"{phase}_ms"]) for row in watch.rows]
    assert long == ["other"] * 2 + ["checkpoint"] + ["other"] * 2 + [long[-1]]
    assert [event["step"] for event in watch.kinds("save")] == [2]


class Slow(Dataset[Any]):
    """Burns the CPU, or sleeps, for each row."""

    def __init__(self, burn: bool) -> None:
        self.burn = burn

    def __len__(self) -> int:
        return 72

    def __getitem__(self, index: int) -> Any:
        end = time.thread_time() + 0.001
        while self.burn and time.thread_time() < end:
            pass
        if not self.burn:
            time.sleep(0.001)
        return torch.zeros(6), torch.zeros(1)


@pytest.mark.parametrize("burn", [True, False])
def test_working_for_data_is_told_from_waiting(burn: bool, tmp_path: Path) -> None:
    """The thread's CPU time while it fetches, measured on every eighth step."""
    with watching(tmp_path) as watch:
        model = net()
        watch.see(model)
        optimizer = sgd(model)
        for batch in DataLoader(Slow(burn), batch_size=8):
            learn(model, optimizer, batch)
    measured = [(row["data_cpu_ms"], row["data_ms"]) for row in watch.rows if row["data_cpu_ms"] >= 0]
    assert len(measured) == 2
    assert all(cpu <= waited + 0.5 for cpu, waited in measured)
    assert all((cpu >= 8) == burn for cpu, _ in measured)


def test_garbage_collection_is_timed(tmp_path: Path) -> None:
    """What Python's collector took out of a step stands beside it."""
    import gc

    with watching(tmp_path) as watch:
        model = net()
        watch.see(model)
        optimizer = sgd(model)
        for number, batch in enumerate(loader()):
            learn(model, optimizer, batch)
            if number == 3:
                gc.collect()
    assert watch.rows[3]["gc_ms"] > 0
    assert watch.rows[3]["gc_ms"] <= watch.rows[3]["step_ms"]
