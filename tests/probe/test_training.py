"""Backward pass, optimizer and saving: what is seen of each."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from loops import BATCHES, FEATURES, data, error, learn, loader, net, sgd
from torch import nn
from watching import See, Watch, alike, watching

from monitor.probe.training import OPTIMIZERS, optimizer_facts


def rows_of(folder: Path, backward: Any) -> Watch:
    """A loop over the loader with its own way of going back."""
    model = net()
    with watching(folder, model) as watch:
        optimizer = sgd(model)
        for batch in loader():
            optimizer.zero_grad()
            backward(model, batch)
            optimizer.step()
    return watch


def test_every_way_of_calling_backward(tmp_path: Path) -> None:
    """`loss.backward()`, `torch.autograd.backward` with its arguments by place or name, several roots."""
    ways = {
        "method": lambda loss: loss.backward(),
        "function": lambda loss: torch.autograd.backward(loss),
        "by name": lambda loss: torch.autograd.backward(tensors=loss),
        "with its gradient": lambda loss: loss.backward(torch.ones_like(loss)),
        "several roots": lambda loss: torch.autograd.backward([loss, loss * 2]),
    }
    for name, way in ways.items():
        watch = rows_of(tmp_path, lambda model, batch, way=way: way(error(model, batch)))
        assert watch.column("backward_calls") == [1.0] * BATCHES, name
        assert min(watch.column("backward_ms")) > 0, name
        assert all(loss == loss for loss in watch.column("loss")) == (name != "several roots")


def test_a_loss_that_is_no_real_number_is_not_recorded(tmp_path: Path) -> None:
    """A complex loss, and one with several elements, leave the value unknown and do no harm."""

    def complex_loss(model: nn.Module, batch: Any) -> None:
        loss = (error(model, batch) + 0j).reshape(())
        loss.backward(torch.ones_like(loss))

    def many(model: nn.Module, batch: Any) -> None:
        model(batch[0]).backward(torch.ones(len(batch[0]), 1))

    for backward in (complex_loss, many):
        watch = rows_of(tmp_path, backward)
        assert all(loss != loss for loss in watch.column("loss"))
        assert not watch.kinds("warn")


def test_gradients_taken_by_hand(tmp_path: Path) -> None:
    """`torch.autograd.grad` is not seen as a backward pass; steps end as ever."""

    def by_hand(model: nn.Module, batch: Any) -> None:
        parameters = list(model.parameters())
        gradients = torch.autograd.grad(error(model, batch), parameters)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient

    watch = rows_of(tmp_path, by_hand)
    assert watch.steps == BATCHES
    assert watch.column("backward_calls") == [0.0] * BATCHES


def test_a_double_backward(tmp_path: Path) -> None:
    """A gradient penalty: the second pass goes through the graph of the first."""

    def loop(see: See) -> Any:
        model = nn.Sequential(nn.Linear(FEATURES, 4), nn.Tanh(), nn.Linear(4, 1))
        see(model)
        optimizer, losses = sgd(model), []
        for features, _ in loader():
            optimizer.zero_grad()
            features.requires_grad_()
            (slope,) = torch.autograd.grad(model(features).sum(), features, create_graph=True)
            loss = slope.pow(2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return model, losses

    assert alike(loop, tmp_path).steps == BATCHES


def test_what_is_told_of_an_optimizer() -> None:
    """Class, plain hyper-parameters, and elements by type."""
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1).bfloat16())
    found = optimizer_facts(torch.optim.AdamW(model.parameters(), lr=0.01, betas=(0.9, 0.95)))
    assert (found["class"], found["lr"], found["parameters"]) == ("AdamW", 0.01, 25)
    assert found["param_dtypes"] == {"float32": 20, "bfloat16": 5}
    assert "betas" not in found


def test_where_an_optimizer_steps(tmp_path: Path) -> None:
    """The user's line that calls `step`; only some optimizers are described."""
    with watching(tmp_path) as watch:
        models = [net() for _ in range(OPTIMIZERS + 3)]
        for model in models:
            learn(model, sgd(model), data()[:])
    facts = {name: fact for name, fact in watch.facts().items() if name.startswith("optimizer/")}
    assert len(facts) == OPTIMIZERS
    assert facts["optimizer/1"]["location"].startswith("tests/support/loops.py:")


@pytest.mark.parametrize("owner", [torch, torch.serialization])
def test_saving_is_told(owner: Any, tmp_path: Path) -> None:
    """Each `torch.save`: how long it took, and the line; by either name, and the file is whole."""
    model = net()
    with watching(tmp_path, model) as watch:
        optimizer = sgd(model)
        for batch in loader():
            learn(model, optimizer, batch)
        owner.save(model.state_dict(), tmp_path / "model.pt")
    (event,) = watch.kinds("save")
    assert event["ms"] > 0
    assert event["location"].startswith("tests/probe/test_training.py:")
    assert torch.load(tmp_path / "model.pt", weights_only=True).keys() == model.state_dict().keys()


def test_torch_save_can_be_pickled(tmp_path: Path) -> None:
    """A function that is handed to another process is found there under its own name."""
    with watching(tmp_path):
        pickled = pickle.dumps([torch.save, nn.utils.clip_grad_norm_, torch.autograd.backward])
    assert pickle.loads(pickled) == [torch.save, nn.utils.clip_grad_norm_, torch.autograd.backward]


def test_a_save_that_fails_raises_the_users_exception(tmp_path: Path) -> None:
    """What cannot be saved is refused by torch itself, and the step goes on."""
    with watching(tmp_path) as watch:
        model = net()
        optimizer = sgd(model)
        with pytest.raises((AttributeError, pickle.PicklingError)):
            torch.save(lambda: None, tmp_path / "nothing.pt")
        for batch in loader():
            learn(model, optimizer, batch)
    assert watch.steps == BATCHES
    assert watch.rows[-1]["checkpoint_ms"] == 0


#: In a process of its own: here other tests' models may still be about.
FIRST_LESSON = """
import sys
from pathlib import Path
import torch
from watching import watching

x, y = torch.randn(32, 5), torch.randn(32, 1)
with watching(Path(sys.argv[1])) as watch:
    weights = [torch.zeros(5, 1, requires_grad=True), torch.zeros(1, requires_grad=True)]
    if sys.argv[2] == "names":
        w, b = weights
        del weights
    for _ in range(9):
        first, second = weights if sys.argv[2] == "list" else (w, b)
        (x @ first + second - y).square().mean().backward()
        with torch.no_grad():
            for each in (first, second):
                each -= 0.05 * each.grad
                each.grad = None
print(watch.steps)
"""


@pytest.mark.parametrize("held", ["names", "list"])
def test_tensors_of_no_module_updated_by_hand(held: str, tmp_path: Path) -> None:
    """As in a first lesson: weights are plain tensors, known by name or in a list."""
    ran = subprocess.run(
        [sys.executable, "-c", FIRST_LESSON, str(tmp_path), held],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "support")},
        capture_output=True, text=True,
    )  # fmt: skip
    assert (ran.stdout, ran.stderr) == ("9\n", "")


def test_a_second_thread_that_trains_is_told(tmp_path: Path) -> None:
    """Its steps are another training's: they are not counted, and that is said."""
    begun, done = threading.Event(), threading.Event()

    def other() -> None:
        model = net()
        optimizer = sgd(model)
        begun.wait()
        learn(model, optimizer, data()[:])
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with watching(tmp_path) as watch:
        model = net()
        watch.see(model)
        optimizer = sgd(model)
        for _ in range(10):
            learn(model, optimizer, data()[:])
            begun.set()
            done.wait()
    thread.join()
    assert watch.steps == 10
    assert [event["text"] for event in watch.kinds("warn")] == [
        "another thread trains as well: its steps are not counted"
    ]
