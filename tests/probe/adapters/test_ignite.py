"""Ignite: iterations at whose end an optimizer stepped; engines inside an engine evaluate."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader
from training import digits, network, watching, weights

from monitor.probe.loop_state import StepAuthority

engine = pytest.importorskip("ignite.engine", reason="pytorch-ignite is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")

Events = engine.Events


def loader(count: int = 96) -> Any:
    return DataLoader(digits(count), 8, shuffle=True, generator=torch.Generator().manual_seed(3))


class Training:
    """A supervised trainer as Ignite makes it, with its losses."""

    def __init__(self, accumulate: int = 1, model: nn.Module | None = None) -> None:
        self.model = model or network()
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.1)
        self.losses: list[float] = []
        self.engine = engine.create_supervised_trainer(
            self.model, self.optimizer, nn.CrossEntropyLoss(), gradient_accumulation_steps=accumulate
        )
        self.engine.add_event_handler(
            Events.ITERATION_COMPLETED, lambda e: self.losses.append(float(e.state.output))
        )

    def run(self, data: Any = None, epochs: int = 2) -> Any:
        torch.manual_seed(5)
        return self.engine.run(data if data is not None else loader(), max_epochs=epochs)


@pytest.mark.parametrize("accumulate", [1, 3])
def test_losses_and_weights_are_the_same(tmp_path: Path, accumulate: int) -> None:
    """To the last bit, with and without us."""
    bare, ours = Training(accumulate), Training(accumulate)
    bare.run()
    with watching(tmp_path, ours.engine):
        ours.run()
    assert ours.losses == bare.losses
    assert weights(ours.model) == weights(bare.model)


@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_step_is_an_optimizer_step(tmp_path: Path, accumulate: int) -> None:
    """`state.iteration` counts micro-batches; a step takes as many as are accumulated."""
    training = Training(accumulate)
    with watching(tmp_path, training.engine) as seen:
        state = training.run()
    assert seen.steps == state.iteration / accumulate
    assert seen.sum("samples") == 192
    assert np.all(seen.columns["backward_calls"] == accumulate)
    assert sorted(set(seen.columns["epoch"])) == [1, 2]
    assert seen.columns["forward_ms"].min() > 0


def test_the_model_is_found_where_the_function_holds_it(tmp_path: Path) -> None:
    """In its closure, or in the object that it is a method of."""

    class Owner:
        def __init__(self) -> None:
            self.model, self.ears = network(), nn.ReLU()

        def update(self, engine: Any, batch: Any) -> None:
            self.model(batch[0]).sum().backward()

    owner = Owner()
    with watching(tmp_path, engine.Engine(owner.update), Training().engine) as seen:
        assert seen.probe is not None
        assert len(seen.probe.module_hooks.modules) == 2
        assert seen.probe.module_hooks.modules[0] is owner.model


def test_an_evaluator_inside_is_evaluation(tmp_path: Path) -> None:
    """All of it, from its loader's start to its metrics: no samples, no steps."""
    training = Training()

    class Slow(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            time.sleep(0.02)
            return x

    evaluator = engine.create_supervised_evaluator(Slow())
    training.engine.add_event_handler(Events.ITERATION_COMPLETED(every=4), lambda: evaluator.run(loader(24)))
    with watching(tmp_path, training.engine) as seen:
        training.run(epochs=1)
    assert seen.steps == 12
    assert seen.sum("samples") == 96
    spent = seen.columns["eval_ms"]
    assert len(np.flatnonzero(spent)) == 3
    assert spent[spent > 0].min() >= 60
    assert np.median(seen.columns["forward_ms"][spent > 0]) < 60


def test_batches_that_come_from_no_loader(tmp_path: Path) -> None:
    """A list, or a generator that takes its time: waiting is data, samples are counted."""

    def slowly() -> Any:
        for batch in loader(40):
            time.sleep(0.02)
            yield batch

    training = Training()
    with watching(tmp_path, training.engine) as seen:
        training.run(list(loader(40)), epochs=1)
        training.engine.run(slowly(), max_epochs=1, epoch_length=5)
    assert seen.steps == 10
    assert seen.sum("samples") == 80
    assert np.median(seen.columns["data_ms"][:5]) < 20
    assert seen.columns["data_ms"][5:].min() >= 20


def test_an_iteration_that_skips_its_step_belongs_to_the_next(tmp_path: Path) -> None:
    """Cancelled by the function itself: no optimizer step, no step."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def update(trainer: Any, batch: Any) -> None:
        loss = nn.functional.cross_entropy(model(batch[0]), batch[1])
        loss.backward()
        if trainer.state.iteration % 4 != 2:
            optimizer.step()
        optimizer.zero_grad()

    target = engine.Engine(update)
    with watching(tmp_path, target) as seen:
        target.run(loader(64), max_epochs=1)
    assert seen.steps == 6
    assert list(seen.columns["samples"]) == [8, 16, 8, 8, 16, 8]


def test_an_engine_that_only_infers(tmp_path: Path) -> None:
    """Attached itself, each of its iterations is a step, and its forward pass is `forward`."""
    target = engine.create_supervised_evaluator(network())
    with watching(tmp_path, target) as seen:
        target.run(loader(40))
    assert seen.steps == 5
    assert seen.sum("samples") == 40
    assert seen.columns["forward_ms"].min() > 0
    assert seen.sum("eval_ms") == 0


def test_an_engine_that_was_not_attached_is_a_plain_loop(tmp_path: Path) -> None:
    """Two trainers one after the other: the second is found by its loader and optimizer."""
    first, second = Training(), Training()
    with watching(tmp_path, first.engine) as seen:
        first.run(epochs=1)
        second.run(epochs=1)
    assert seen.steps == 24


def test_an_exception_reaches_the_user(tmp_path: Path) -> None:
    """As it is, and the loop counts as over."""
    target = engine.Engine(lambda *_: 1 / 0)
    with watching(tmp_path, target) as seen:
        with pytest.raises(ZeroDivisionError):
            target.run(loader())
        assert seen.probe is not None
        assert seen.probe.recorder.loop_state.authority is StepAuthority.INFERRED


def test_detach_takes_the_handlers_back(tmp_path: Path) -> None:
    """Engine and class are as they were."""
    training, run = Training(), engine.Engine.run
    before = {event: len(handlers) for event, handlers in training.engine._event_handlers.items()}
    with watching(tmp_path, training.engine):
        pass
    after = {event: len(handlers) for event, handlers in training.engine._event_handlers.items()}
    assert {k: v for k, v in after.items() if v} == {k: v for k, v in before.items() if v}
    assert engine.Engine.run is run


def plans(seen: Any) -> list[dict[str, int]]:
    """What was told of the number of steps."""
    return [event["value"] for event in seen.of("fact") if event["name"] == "plan"]


@pytest.mark.parametrize(("accumulate", "steps"), [(1, 24), (3, 8)])
def test_the_number_of_steps_is_known(tmp_path: Path, accumulate: int, steps: int) -> None:
    """Epochs times their length, by the iterations that a step takes; told once."""
    training = Training(accumulate)
    with watching(tmp_path, training.engine) as seen:
        training.run()
    assert plans(seen) == [{"steps": steps}]
    assert seen.steps == steps


def test_a_run_of_so_many_iterations(tmp_path: Path) -> None:
    """`max_iters` is what counts then, in the middle of an epoch too."""
    training = Training()
    with watching(tmp_path, training.engine) as seen:
        training.engine.run(loader(), max_iters=17)
    assert plans(seen) == [{"steps": 17}]
    assert seen.steps == 17


def test_a_run_that_goes_on_has_only_the_rest_before_it(tmp_path: Path) -> None:
    """From a checkpoint: what was done before is not done again."""
    training = Training()
    training.engine.load_state_dict({"epoch": 1, "max_epochs": 3, "epoch_length": 12})
    with watching(tmp_path, training.engine) as seen:
        training.engine.run(loader())
    assert plans(seen) == [{"steps": 24}]
    assert seen.steps == 24


def test_where_the_loader_has_no_length_nothing_is_promised(tmp_path: Path) -> None:
    """And the training is recorded all the same."""
    training = Training()
    with watching(tmp_path, training.engine) as seen:
        training.run(iter(list(loader())), epochs=1)
    assert plans(seen) == []
    assert seen.steps == 12
