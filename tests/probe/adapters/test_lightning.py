"""Lightning: batches at whose end an optimizer stepped, whatever the trainer does in between."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset
from training import digits, network, watching, weights

from monitor.probe import adapters
from monitor.probe.loop_state import StepAuthority
from monitor.report import wait

pl = pytest.importorskip("lightning.pytorch", reason="lightning is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")


class Module(pl.LightningModule):
    """A digits classifier; `rest_s` is slept in `training_step`, outside every module."""

    def __init__(self, rest_s: float = 0.0) -> None:
        super().__init__()
        self.net = network()
        self.rest_s = rest_s
        self.losses: list[float] = []

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        x, y = batch
        time.sleep(self.rest_s)
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch: Any, index: int) -> None:
        self.log("val", nn.functional.cross_entropy(self.net(batch[0]), batch[1]))

    test_step = validation_step

    def predict_step(self, batch: Any, index: int) -> torch.Tensor:
        return self.net(batch[0])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), 0.1)


class Adversaries(pl.LightningModule):
    """Two optimizers, driven by hand; each steps once a batch, but the first only every `every`-th."""

    def __init__(self, every: int = 1) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.one, self.other, self.every = network(0), network(1), every

    def training_step(self, batch: Any, index: int) -> None:
        x, y = batch
        first, second = self.optimizers()
        for optimizer, net, due in (
            (first, self.one, index % self.every == 0),
            (second, self.other, index % self.every == 0),
        ):
            self.manual_backward(nn.functional.cross_entropy(net(x), y))
            if due:
                optimizer.step()
                optimizer.zero_grad()

    def configure_optimizers(self) -> Any:
        return [torch.optim.SGD(net.parameters(), 0.1) for net in (self.one, self.other)]


class Functional(Module):
    """No module of its own is called: its layers are parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(10, 64))

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        time.sleep(0.01)
        return nn.functional.cross_entropy(batch[0] @ self.weight.T, batch[1])


class Stream(IterableDataset):  # type: ignore[type-arg]
    """Digits, with no length."""

    def __init__(self, count: int) -> None:
        self.data = digits(count)

    def __iter__(self) -> Iterator[Any]:
        return iter([self.data[i] for i in range(len(self.data))])


def loader(count: int = 96) -> Any:
    return DataLoader(digits(count), 8, shuffle=True, generator=torch.Generator().manual_seed(3))


def trainer(folder: Path, package: Any = pl, **options: Any) -> Any:
    quiet = {
        "logger": False, "enable_progress_bar": False, "enable_model_summary": False,
        "enable_checkpointing": False, "accelerator": "cpu", "max_epochs": 2, "num_sanity_val_steps": 0,
    }  # fmt: skip
    torch.manual_seed(1)
    return package.Trainer(default_root_dir=str(folder), **{**quiet, **options})


@pytest.mark.parametrize("options", [{}, {"accumulate_grad_batches": 3}, {"num_sanity_val_steps": 2}])
def test_losses_and_weights_are_the_same(tmp_path: Path, options: dict[str, Any]) -> None:
    """To the last bit, with and without us."""
    bare, ours = Module(), Module()
    trainer(tmp_path, **options).fit(bare, loader(), loader(16))
    target = trainer(tmp_path, **options)
    with watching(tmp_path / "tape", target):
        target.fit(ours, loader(), loader(16))
    assert ours.losses == bare.losses
    assert weights(ours) == weights(bare)


@pytest.mark.parametrize(("accumulate", "count"), [(1, 96), (3, 96), (4, 88), (2, 90)])
def test_a_step_is_an_optimizer_step(tmp_path: Path, accumulate: int, count: int) -> None:
    """As many as `global_step` says; sanity check and validation count for nothing."""
    target = trainer(tmp_path, accumulate_grad_batches=accumulate, num_sanity_val_steps=2)
    with watching(tmp_path / "tape", target) as seen:
        target.fit(Module(), loader(count), loader(16))
    assert seen.steps == target.global_step
    assert seen.sum("samples") == 2 * count
    assert seen.sum("backward_calls") == 2 * -(-count // 8)
    assert np.all(seen.columns["optimizer_steps"] == 1)
    assert sorted(set(seen.columns["epoch"])) == [1, 2]


def test_the_loss_is_that_of_the_whole_step(tmp_path: Path) -> None:
    """The mean over accumulated batches."""
    target, module = trainer(tmp_path, accumulate_grad_batches=2), Module()
    with watching(tmp_path / "tape", target) as seen:
        target.fit(module, loader())
    assert seen.columns["loss"] == pytest.approx(np.reshape(module.losses, (-1, 2)).mean(axis=1), rel=1e-5)


@pytest.mark.parametrize(("every", "steps"), [(1, 24), (3, 8)])
def test_several_optimizers_by_hand_are_one_step(tmp_path: Path, every: int, steps: int) -> None:
    """`global_step` counts each optimizer, a step is a batch in which they stepped."""
    target = trainer(tmp_path)
    with watching(tmp_path / "tape", target) as seen:
        target.fit(Adversaries(every), loader())
    assert target.global_step == 2 * steps
    assert seen.steps == steps
    assert np.all(seen.columns["optimizer_steps"] == 2)


def test_each_nanosecond_has_its_phase(tmp_path: Path) -> None:
    """A sleep in `training_step`, which runs inside `optimizer.step`, is `other`; a module's is `forward`."""

    class Sleepy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = network()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            time.sleep(0.02)
            return self.net(x)

    module, target = Module(rest_s=0.03), trainer(tmp_path, max_epochs=1)
    module.net = Sleepy()
    with watching(tmp_path / "tape", target) as seen:
        target.fit(module, loader(64))
    medians = {key: float(np.median(values)) for key, values in seen.columns.items()}
    assert medians["forward_ms"] >= 20
    assert medians["other_ms"] >= 30
    assert medians["optimizer_ms"] < min(medians["forward_ms"], medians["other_ms"])


def test_forward_without_modules_is_training_step(tmp_path: Path) -> None:
    """Where no module is heard of, training_step less backward is the forward pass."""
    target = trainer(tmp_path, max_epochs=1)
    with watching(tmp_path / "tape", target) as seen:
        target.fit(Functional(), loader(64))
    assert np.all(seen.columns["forward_ms"][3:] >= 10)


def test_validation_inside_an_epoch_is_evaluation(tmp_path: Path) -> None:
    """Its loader's start, its batches and its forward passes are `eval` of the step after it."""

    class Slow(Module):
        def validation_step(self, batch: Any, index: int) -> None:
            time.sleep(0.02)
            super().validation_step(batch, index)

    target = trainer(tmp_path, max_epochs=1, val_check_interval=4)
    with watching(tmp_path / "tape", target) as seen:
        target.fit(Slow(), loader(), loader(24))
    assert seen.steps == 12
    assert list(np.flatnonzero(seen.columns["eval_ms"])) == [4, 8]
    assert seen.columns["eval_ms"][[4, 8]].min() >= 60
    assert seen.sum("samples") == 96


def test_fit_twice_test_and_predict(tmp_path: Path) -> None:
    """A second fit goes on counting; test and predict take no steps, and a loop by hand still does."""
    target, module = trainer(tmp_path), Module()
    with watching(tmp_path / "tape", target) as seen:
        target.fit(module, loader(), loader(16))
        target.test(module, loader(16), verbose=False)
        target.predict(module, loader(16))
        target.fit_loop.max_epochs = 3
        target.fit(module, loader(), loader(16))
        optimizer = torch.optim.SGD(module.parameters(), 0.1)
        module.train()
        for batch in loader(40):
            module.training_step(batch, 0).backward()
            optimizer.step()
    assert target.global_step == 36
    assert seen.steps == 36 + 5
    assert seen.sum("samples") == 3 * 96 + 40


def test_a_loader_with_no_length_fetches_ahead(tmp_path: Path) -> None:
    """Samples belong to the step that trains on them."""
    target = trainer(tmp_path, max_epochs=1)
    with watching(tmp_path / "tape", target) as seen:
        target.fit(Module(), DataLoader(Stream(44), 8))
    assert list(seen.columns["samples"]) == [8, 8, 8, 8, 8, 4]


class Batches:
    """An iterable that is no DataLoader."""

    def __init__(self) -> None:
        self.batches = list(loader(40))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.batches)

    def __len__(self) -> int:
        return len(self.batches)


@pytest.mark.parametrize("given", [Batches, lambda: {"a": loader(40), "b": loader(40)}])
def test_whatever_is_given_as_loader(tmp_path: Path, given: Any) -> None:
    """An iterable of one's own, several loaders: samples are those of the first."""

    class Choosing(Module):
        def training_step(self, batch: Any, index: int) -> torch.Tensor:
            return super().training_step(batch["a"] if isinstance(batch, dict) else batch, index)

    target = trainer(tmp_path, max_epochs=1)
    with watching(tmp_path / "tape", target) as seen:
        target.fit(Choosing(), given())
    assert seen.steps == 5
    assert seen.sum("samples") == 40


def test_checkpoints_are_a_phase(tmp_path: Path) -> None:
    """One event each, whatever is written."""
    saving = pl.callbacks.ModelCheckpoint(dirpath=tmp_path / "saved", every_n_train_steps=4, save_top_k=-1)
    target = trainer(tmp_path, enable_checkpointing=True, callbacks=[saving], max_epochs=1)
    with watching(tmp_path / "tape", target) as seen:
        target.fit(Module(), loader())
    assert len(seen.of("save")) == len(list((tmp_path / "saved").iterdir()))
    assert seen.sum("checkpoint_ms") > 0


def test_a_strategy_that_wraps_the_module(tmp_path: Path) -> None:
    """DistributedDataParallel: the same steps, and forward time is seen inside it."""
    target = trainer(tmp_path, strategy="ddp", devices=1, max_epochs=1)
    with watching(tmp_path / "tape", target) as seen:
        target.fit(Module(), loader())
    torch.distributed.destroy_process_group()
    assert seen.steps == 12
    assert seen.columns["forward_ms"].min() > 0


def test_an_exception_reaches_the_user_and_ends_the_loop(tmp_path: Path) -> None:
    """As it is; what comes after is found by the plain rules."""

    class Broken(Module):
        def training_step(self, batch: Any, index: int) -> torch.Tensor:
            raise ZeroDivisionError

    target = trainer(tmp_path)
    with watching(tmp_path / "tape", target) as seen:
        with pytest.raises(ZeroDivisionError):
            target.fit(Broken(), loader())
        assert seen.probe is not None
        assert seen.probe.recorder.loop_state.authority is StepAuthority.INFERRED


def test_an_error_of_ours_does_not_reach_the_loop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is said once, and the training goes on without us."""
    target = trainer(tmp_path)
    with watching(tmp_path / "tape", target, healthy=False) as seen:
        assert seen.probe is not None
        seen.probe.hooks.step = None  # type: ignore[assignment]
        target.fit(Module(), loader())
    assert target.global_step == 24
    assert seen.steps == 0
    assert capsys.readouterr().err.count("monitoring is off") == 1


def test_the_trainer_can_still_be_copied(tmp_path: Path) -> None:
    """Strategies that spawn pickle it: our callback goes as one that does nothing."""
    target = trainer(tmp_path)
    with watching(tmp_path / "tape", target):
        ours = target.callbacks[-1]
        assert type(pickle.loads(pickle.dumps(ours))) is pl.Callback
        assert type(copy.deepcopy(ours)) is pl.Callback
    assert ours not in target.callbacks


def test_the_other_package(tmp_path: Path) -> None:
    """`pytorch_lightning` has classes of its own; the callback comes from there."""
    other = pytest.importorskip("pytorch_lightning", reason="pytorch_lightning is not installed")

    class Theirs(other.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.net = network()

        training_step = Module.training_step
        configure_optimizers = Module.configure_optimizers
        losses: list[float] = []  # noqa: RUF012
        rest_s = 0.0

    target = trainer(tmp_path, other)
    with watching(tmp_path / "tape", target) as seen:
        target.fit(Theirs(), loader())
    assert seen.steps == target.global_step == 24


@pytest.mark.parametrize(
    ("options", "plans"), [({"max_epochs": 2}, [{"steps": 24}]), ({"max_steps": 5}, [{"steps": 5}])]
)
def test_the_number_of_steps_is_known(
    tmp_path: Path, options: dict[str, Any], plans: list[dict[str, int]]
) -> None:
    """What the trainer means to do is told as a fact, so that a page knows what is left."""
    ours = trainer(tmp_path, **options)
    with watching(tmp_path / "tape", ours) as seen:
        ours.fit(Module(), DataLoader(digits(96), batch_size=8))
    assert [event["value"] for event in seen.of("fact") if event["name"] == "plan"] == plans
    assert seen.steps == plans[0]["steps"]


def test_ranks_are_known_before_the_others_are_started(tmp_path: Path, monkeypatch: Any) -> None:
    """One process is no group; of two that `fit` will start, this is the first; spawned ones are others."""
    ranks = adapters.find(trainer(tmp_path)).ranks  # type: ignore[attr-defined]
    assert ranks(trainer(tmp_path)) is None
    assert ranks(trainer(tmp_path, strategy="ddp", devices=2)) == (0, 2, 0)
    assert ranks(trainer(tmp_path, strategy="ddp_spawn", devices=2)) is None
    for name, value in {"LOCAL_RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "x", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    assert ranks(trainer(tmp_path, strategy="ddp", devices=2)) == (1, 2, 1)


TWO_RANKS = """
import sys
sys.path[:0] = {path!r}
import test_lightning as t, monitor
if __name__ == "__main__":
    trainer = t.trainer(".", strategy="ddp", devices=2, max_epochs=1)
    session = monitor.attach(trainer, dashboard=False, name="two", run_dir="runs")
    trainer.fit(t.Module(), t.loader())
    session.detach()
"""


def test_ranks_that_lightning_starts_are_one_run(tmp_path: Path) -> None:
    """`fit` starts this script anew for rank 1, which joins the run that rank 0 began."""
    here = Path(__file__)
    script = TWO_RANKS.format(path=[str(here.parent), str(here.parents[2] / "support")])
    (tmp_path / "train.py").write_text(script)
    env = {**os.environ, "MONITOR_STATE_DIR": str(tmp_path / "state")}
    command = [sys.executable, "-W", "ignore", "train.py"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=170, env=env)
    (run,) = (tmp_path / "runs").iterdir()
    report = wait(run, 60)
    assert (report["status"], report["world_size"], report["steps"]) == ("finished", 2, 6)
