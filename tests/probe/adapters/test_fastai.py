"""fastai: batches at whose end an optimizer stepped; its optimizers and loaders are none of torch's."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from training import digits, network, watching, weights

from monitor.probe.loop_state import StepAuthority

learner = pytest.importorskip("fastai.learner", reason="fastai is not installed")

# pytest.importorskip keeps the warnings of the import itself to itself.
core = pytest.importorskip("fastai.callback.core")
GradientAccumulation = pytest.importorskip("fastai.callback.training").GradientAccumulation
Callback, CancelBatchException = core.Callback, core.CancelBatchException
DataLoaders = pytest.importorskip("fastai.data.core").DataLoaders
load, optimizers = pytest.importorskip("fastai.data.load"), pytest.importorskip("fastai.optimizer")

pytestmark = pytest.mark.filterwarnings("ignore")


class Losses(Callback):  # type: ignore[misc, valid-type]
    """Every loss of the training, as fastai has it."""

    def before_fit(self) -> None:
        self.seen: list[float] = []

    def after_batch(self) -> None:
        if self.training:
            self.seen.append(self.learn.loss.item())


class Wait:
    """20 ms an item."""

    def __init__(self, count: int) -> None:
        self.data = digits(count)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.02)
        return self.data[index]


def learn(folder: Path, count: int = 96, valid: Any = None, workers: int = 0, **options: Any) -> Any:
    torch.manual_seed(1)
    train = load.DataLoader(digits(count), bs=8, shuffle=True, num_workers=workers)
    train.rng.seed(3)
    held_out = load.DataLoader(valid or digits(16), bs=8, num_workers=0)
    options.setdefault("model", network())
    made = learner.Learner(
        DataLoaders(train, held_out), loss_func=nn.CrossEntropyLoss(), path=folder, cbs=Losses(), **options
    )
    made.remove_cbs([cb for cb in made.cbs if type(cb).__name__ == "ProgressCallback"])
    made.logger = lambda *_: None
    return made


def fit(target: Any, epochs: int = 2, **options: Any) -> Any:
    torch.manual_seed(5)
    target.fit(epochs, lr=0.1, **options)
    return target.losses.seen


@pytest.mark.parametrize("accumulate", [0, 24])
def test_losses_and_weights_are_the_same(tmp_path: Path, accumulate: int) -> None:
    """To the last bit, with and without us."""
    cbs = [GradientAccumulation(accumulate)] if accumulate else []
    bare, ours = learn(tmp_path), learn(tmp_path)
    expected = fit(bare, cbs=list(cbs))
    with watching(tmp_path / "tape", ours):
        assert fit(ours, cbs=list(cbs)) == expected
    assert weights(ours.model) == weights(bare.model)


@pytest.mark.parametrize("opt_func", [None, "torch"])
def test_every_batch_is_a_step(tmp_path: Path, opt_func: str | None) -> None:
    """As many as `train_iter` says, with fastai's own optimizers and with torch's."""
    own = (
        {}
        if opt_func is None
        else {"opt_func": lambda p, **o: optimizers.OptimWrapper(p, torch.optim.SGD, **o)}
    )
    target = learn(tmp_path, **own)
    with watching(tmp_path / "tape", target) as seen:
        fit(target)
    assert seen.steps == target.train_iter == 24
    assert seen.sum("samples") == 192
    assert np.all(seen.columns["optimizer_steps"] == 1)
    assert seen.columns["optimizer_ms"].min() > 0
    assert seen.columns["forward_ms"].min() > 0
    assert sorted(set(seen.columns["epoch"])) == [1, 2]


def test_accumulated_batches_are_one_step(tmp_path: Path) -> None:
    """`GradientAccumulation` cancels a batch after its backward pass: no step there."""
    target = learn(tmp_path)
    with watching(tmp_path / "tape", target) as seen:
        fit(target, cbs=[GradientAccumulation(24)])
    assert seen.steps == 8
    assert list(seen.columns["samples"]) == [24] * 8
    assert np.all(seen.columns["backward_calls"] == 3)


def test_a_cancelled_batch_is_no_step(tmp_path: Path) -> None:
    """What was fetched for it belongs to the next."""

    class Skip(Callback):
        def before_batch(self) -> None:
            if self.training and self.iter % 4 == 1:
                raise CancelBatchException

    target = learn(tmp_path)
    with watching(tmp_path / "tape", target) as seen:
        fit(target, 1, cbs=[Skip()])
    assert seen.steps == 9
    assert list(seen.columns["samples"]) == [8, 16, 8, 8, 16, 8, 8, 16, 8]


def test_validation_is_evaluation(tmp_path: Path) -> None:
    """Its waiting and its forward passes; its batches are no samples."""
    target = learn(tmp_path, 32, Wait(8))
    with watching(tmp_path / "tape", target) as seen:
        fit(target)
        target.get_preds()
    assert seen.steps == 8
    assert seen.sum("samples") == 64
    assert list(np.flatnonzero(seen.columns["eval_ms"])) == [4]
    assert seen.columns["eval_ms"][4] >= 160
    assert seen.columns["data_ms"].max() < 160


def test_its_loaders_are_described(tmp_path: Path) -> None:
    """They are no DataLoader of torch's; workers, epochs and their start are seen all the same."""
    target = learn(tmp_path, workers=1)
    with watching(tmp_path / "tape", target) as seen:
        fit(target)
    loaders = [event["value"] for event in seen.of("fact") if event["name"].startswith("loader/")]
    assert loaders[0]["num_workers"] == 1
    epochs = seen.of("epoch")
    assert [event["epoch"] for event in epochs] == [1, 2]
    assert epochs[1]["workers_started_ms"] > 1
    assert seen.columns["data_ms"][12] >= epochs[1]["workers_started_ms"] - 1


def test_saving_is_a_phase(tmp_path: Path) -> None:
    """`Learner.save` is checkpoint time."""
    target = learn(tmp_path, 32)

    class Keep(Callback):
        def after_batch(self) -> None:
            if self.training and self.iter == 1:
                self.learn.save("there")

    with watching(tmp_path / "tape", target) as seen:
        fit(target, 1, cbs=[Keep()])
    assert len(seen.of("save")) == 1
    assert seen.sum("checkpoint_ms") > 0


def test_detach_puts_its_classes_back(tmp_path: Path) -> None:
    """Learners, optimizers and loaders are as they were; the learner's callbacks were never touched."""
    Optimizer, target = optimizers.Optimizer, learn(tmp_path)
    before = list(target.cbs), Optimizer.step, load._loaders, learner.Learner.fit
    with watching(tmp_path / "tape", target):
        assert Optimizer.step is not before[1]
        assert list(target.cbs) == before[0]
    assert (list(target.cbs), Optimizer.step, load._loaders, learner.Learner.fit) == before
    fit(target, 1)


def test_an_exception_reaches_the_user(tmp_path: Path) -> None:
    """As it is, and the loop counts as over."""

    class Break(Callback):
        def before_batch(self) -> None:
            raise ZeroDivisionError("here")

    target = learn(tmp_path)
    with watching(tmp_path / "tape", target) as seen:
        with pytest.raises(ZeroDivisionError):
            fit(target, cbs=[Break()])
        assert seen.probe is not None
        assert seen.probe.recorder.loop_state.authority is StepAuthority.INFERRED


def plans(seen: Any) -> list[dict[str, int]]:
    """What was told of the number of steps."""
    return [event["value"] for event in seen.of("fact") if event["name"] == "plan"]


@pytest.mark.parametrize(("accumulate", "steps"), [(0, 24), (24, 8)])
def test_the_number_of_steps_is_known(tmp_path: Path, accumulate: int, steps: int) -> None:
    """Epochs times batches, by the batches that a step takes; told once."""
    cbs = [GradientAccumulation(accumulate)] if accumulate else []
    ours = learn(tmp_path)
    with watching(tmp_path / "tape", ours) as seen:
        fit(ours, cbs=cbs)
    assert plans(seen) == [{"steps": steps}]
    assert seen.steps == steps


def test_a_fit_that_begins_later_has_only_the_rest_before_it(tmp_path: Path) -> None:
    """Epochs that are skipped take no steps."""
    ours = learn(tmp_path)
    with watching(tmp_path / "tape", ours) as seen:
        fit(ours, epochs=3, start_epoch=1)
    assert plans(seen) == [{"steps": 24}]
    assert seen.steps == 24


def test_fine_tuning_is_one_training(tmp_path: Path) -> None:
    """Its first fit knows of its second: nobody is told that an hour's training ends in five minutes."""
    pytest.importorskip("fastai.callback.schedule")
    ours = learn(tmp_path)
    with watching(tmp_path / "tape", ours) as seen:
        ours.fine_tune(2, freeze_epochs=1)
    assert plans(seen)[0] == {"steps": 36}
    assert seen.steps == 36
    assert {plan["steps"] for plan in plans(seen)} == {36}


def test_a_second_fit_is_planned_by_itself(tmp_path: Path) -> None:
    """On top of the steps that there are."""
    ours = learn(tmp_path)
    with watching(tmp_path / "tape", ours) as seen:
        fit(ours, epochs=1)
        fit(ours, epochs=2)
    assert plans(seen) == [{"steps": 12}, {"steps": 36}]
