"""Hugging Face `transformers.Trainer` and what descends from it (TRL's trainers).

A step is one of its optimizer steps (`state.global_step`). It gathers all micro-batches of a step
before `on_step_begin`, through Accelerate's loaders, which fetch one more ahead.
"""

from __future__ import annotations

import importlib
import math
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from monitor.probe.adapters import descends
from monitor.probe.adapters.accelerate import count_batches

if TYPE_CHECKING:
    from torch import nn

    from monitor.probe.framework_hooks import FrameworkHooks

NAME = "a Hugging Face Trainer"
PACKAGES = ("transformers",)
TRANSFERS = (("transformers.trainer", "Trainer._prepare_inputs"),)
ENTRIES = (("transformers.trainer", "Trainer", "train"),)
MIN_VERSION = (4, 46)


def matches(target: Any) -> bool:
    """Whether it is a `transformers.Trainer`."""
    return descends(target, "Trainer", "transformers")


def modules(target: Any) -> list[nn.Module]:
    """None yet: which module is called is known when the training begins."""
    return []


def install(target: Any, hooks: FrameworkHooks) -> None:
    """Add a callback, and time evaluation and saving."""
    watch = _callback(hooks, weakref.ref(target))
    target.add_callback(watch)
    hooks.on_detach(target, lambda trainer: trainer.remove_callback(watch))
    count_batches(hooks)
    kind = type(target)
    hooks.time_loop(kind, "train")
    for name in ("evaluate", "predict"):
        hooks.time_evaluation(kind, name)
    for name in ("_save_checkpoint", "save_model"):
        hooks.time_saving(kind, name)


def _callback(hooks: FrameworkHooks, trainer: Callable[[], Any]) -> Any:
    base = importlib.import_module("transformers.trainer_callback").TrainerCallback

    def begin(args: Any, state: Any, *_: Any, **__: Any) -> None:
        target = trainer()
        hooks.plan(state.max_steps - state.global_step)
        hooks.begins(sums_loss=True)
        hooks.module_hooks.add(target.model_wrapped)

    def end_of_step(args: Any, state: Any, *_: Any, **__: Any) -> None:
        hooks.step(math.ceil(state.epoch or 1.0))

    def log(args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        hooks.log({key: value for key, value in (logs or {}).items() if key not in ("loss", "epoch")})

    class TorchvitalsCallback(base):  # type: ignore[misc, valid-type]
        on_train_begin = staticmethod(hooks.anywhere(begin))
        on_step_end = staticmethod(hooks.safe(end_of_step))
        on_log = staticmethod(hooks.safe(log))

        def __reduce__(self) -> Any:
            return base, ()

    return TorchvitalsCallback()
