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

    from monitor.probe.lead import Lead

NAME = "a Hugging Face Trainer"
PACKAGES = ("transformers",)
TRANSFERS = (("transformers.trainer", "Trainer._prepare_inputs"),)
MIN_VERSION = (4, 46)


def matches(target: Any) -> bool:
    """Whether it is a `transformers.Trainer`."""
    return descends(target, "Trainer", "transformers")


def modules(target: Any) -> list[nn.Module]:
    """None yet: which module is called is known when the training begins."""
    return []


def install(target: Any, lead: Lead) -> None:
    """Add a callback, and time evaluation and saving."""
    watch = _callback(lead, weakref.ref(target))
    target.add_callback(watch)
    lead.on_detach(target, lambda trainer: trainer.remove_callback(watch))
    count_batches(lead)
    kind = type(target)
    lead.time_loop(kind, "train")
    for name in ("evaluate", "predict"):
        lead.time_evaluation(kind, name)
    for name in ("_save_checkpoint", "save_model"):
        lead.time_saving(kind, name)


def _callback(lead: Lead, trainer: Callable[[], Any]) -> Any:
    base = importlib.import_module("transformers.trainer_callback").TrainerCallback

    def begin(args: Any, state: Any, *_: Any, **__: Any) -> None:
        target = trainer()
        lead.plan(state.max_steps - state.global_step)
        lead.begins(sums_loss=True)
        lead.roots.add(target.model_wrapped)

    def end_of_step(args: Any, state: Any, *_: Any, **__: Any) -> None:
        lead.step(math.ceil(state.epoch or 1.0))

    def log(args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        lead.log({key: value for key, value in (logs or {}).items() if key not in ("loss", "epoch")})

    class TorchvitalsCallback(base):  # type: ignore[misc, valid-type]
        on_train_begin = staticmethod(lead.anywhere(begin))
        on_step_end = staticmethod(lead.safe(end_of_step))
        on_log = staticmethod(lead.safe(log))

        def __reduce__(self) -> Any:
            return base, ()

    return TorchvitalsCallback()
