"""Lightning and PyTorch Lightning: `Trainer.fit`.

A step is a batch at whose end an optimizer has stepped: one a batch however many optimizers take
part, and one for all the batches that are accumulated. The trainer runs forward and backward inside
`optimizer.step`, and calls `training_step` rather than the module, so both are told apart here.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from monitor.probe.adapters import descends

if TYPE_CHECKING:
    from torch import nn

    from monitor.probe.framework_hooks import FrameworkHooks

NAME = "a Lightning Trainer"
PACKAGES = ("lightning", "pytorch_lightning")
TRANSFERS = (
    ("lightning.pytorch.strategies.strategy", "Strategy.batch_to_device"),
    ("pytorch_lightning.strategies.strategy", "Strategy.batch_to_device"),
)
ENTRIES = (
    ("lightning.pytorch.trainer.trainer", "Trainer", "fit"),
    ("pytorch_lightning.trainer.trainer", "Trainer", "fit"),
)
MIN_VERSION = (2, 0)

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def matches(target: Any) -> bool:
    """Whether it is a Trainer of either package."""
    return descends(target, "Trainer", *_PACKAGES)


def modules(target: Any) -> list[nn.Module]:
    """None yet: `fit` is given the module."""
    return []


def ranks(target: Any) -> tuple[int, int, int] | None:
    """Rank, world size and local rank where `fit` starts this script anew for each other rank, else None.

    A strategy that spawns or forks trains in children only, which must attach themselves.
    """
    launcher = getattr(target.strategy, "launcher", None)
    if target.world_size == 1 or (launcher is not None and "Subprocess" not in type(launcher).__name__):
        return None
    return target.global_rank, target.world_size, target.local_rank


def install(target: Any, hooks: FrameworkHooks) -> None:
    """Add a callback, and time training_step, evaluation and saving."""
    watch = _callback(hooks, _package(target))
    target.callbacks.append(watch)
    hooks.on_detach(target, lambda trainer: trainer.callbacks.remove(watch))
    hooks.time_training_step(type(target.strategy), "training_step")
    loops = (target.fit_loop.epoch_loop.val_loop, target.validate_loop, target.test_loop, target.predict_loop)
    for kind in {type(loop) for loop in loops}:
        hooks.time_evaluation(kind, "run")
    hooks.time_saving(type(target), "save_checkpoint")


def _package(target: Any) -> str:
    names = [base.__module__ for base in type(target).__mro__ if base.__name__ == "Trainer"]
    return next(package for package in _PACKAGES for name in names if name.startswith(package))


def _callback(hooks: FrameworkHooks, package: str) -> Any:
    base = importlib.import_module(f"{package}.callbacks").Callback

    def begin(trainer: Any, module: Any) -> None:
        hooks.begins(counts=False, sums_loss=module.automatic_optimization)
        hooks.follow(module)

    def begin_training(trainer: Any, *_: Any) -> None:
        hooks.loop_state.counts = _as_fetched(trainer)
        if len(trainer.optimizers) == 1:  # of several, each counts its own steps
            hooks.plan(trainer.estimated_stepping_batches - trainer.global_step)

    def begin_batch(trainer: Any, module: Any, batch: Any, *_: Any) -> None:
        if not hooks.loop_state.counts:
            hooks.count(batch)

    def end_batch(trainer: Any, *_: Any) -> None:
        if hooks.stepped():
            hooks.step(trainer.current_epoch + 1)

    def end(*_: Any) -> None:
        hooks.ends()

    class TorchvitalsCallback(base):  # type: ignore[misc, valid-type]
        on_fit_start = staticmethod(hooks.anywhere(begin))
        on_train_start = staticmethod(hooks.anywhere(begin_training))
        on_train_batch_start = staticmethod(hooks.safe(begin_batch))
        on_train_batch_end = staticmethod(hooks.safe(end_batch))
        on_fit_end = on_exception = staticmethod(hooks.anywhere(end))

        def __reduce__(self) -> Any:
            return base, ()

    return TorchvitalsCallback()


def _as_fetched(trainer: Any) -> bool:
    """Whether each batch is trained on right after a DataLoader gave it: none is fetched ahead."""
    from torch.utils.data import DataLoader

    fetcher = getattr(trainer.fit_loop, "_data_fetcher", None)
    loaders = getattr(getattr(fetcher, "_combined_loader", None), "flattened", None) or ()
    known = getattr(fetcher, "length", None) is not None
    return known and bool(loaders) and all(isinstance(loader, DataLoader) for loader in loaders)
