"""Accelerate: a loop by hand, whose `Accelerator` knows when gradients are only accumulated.

Its loaders fetch one batch ahead. Waiting belongs to the step during which it blocks; samples are
counted when a batch is handed out, so that they belong to the step that trains on them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from monitor.probe.adapters import descends

if TYPE_CHECKING:
    from torch import nn

    from monitor.probe.framework_hooks import FrameworkHooks

NAME = "an Accelerate Accelerator"
PACKAGES = ("accelerate",)
TRANSFERS = (("accelerate.data_loader", "send_to_device"),)
ENTRIES = (("accelerate.accelerator", "Accelerator", "prepare"),)
MIN_VERSION = (0, 34)


def matches(target: Any) -> bool:
    """Whether it is an `accelerate.Accelerator`."""
    return descends(target, "Accelerator", "accelerate")


def modules(target: Any) -> list[nn.Module]:
    """The models that were prepared before attach."""
    return list(target._models)


def install(target: Any, hooks: FrameworkHooks) -> None:
    """Add up losses that are accumulated, count batches as they are handed out, watch what is prepared."""
    hooks.sum_losses(target.gradient_accumulation_steps > 1)
    count_batches(hooks)
    kind = type(target)
    hooks.wrap(kind, "prepare_model", _prepared(hooks))
    hooks.wrap(kind, "log", _logged(hooks))
    for name in ("save_state", "save_model", "save"):
        hooks.time_saving(kind, name)


def count_batches(hooks: FrameworkHooks) -> None:
    """Count batches where Accelerate's loaders hand them out. Transformers' Trainer uses them as well."""
    loaders = sys.modules.get("accelerate.data_loader")
    for name in ("DataLoaderShard", "DataLoaderDispatcher", "SkipDataLoader"):
        kind = getattr(loaders, name, None)
        if kind is not None and "__iter__" in vars(kind):
            hooks.wrap(kind, "__iter__", lambda original: _iterating(hooks, original))


def _iterating(
    hooks: FrameworkHooks, original: Callable[[Any], Iterator[Any]]
) -> Callable[[Any], Iterator[Any]]:
    def __iter__(loader: Any) -> Iterator[Any]:
        iterator = original(loader)
        return hooks.handing_out(iterator) if hooks.recorder.here else iterator

    return __iter__


def _prepared(hooks: FrameworkHooks) -> Callable[[Any], Any]:
    add = hooks.safe(hooks.module_hooks.add)

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def prepare_model(*args: Any, **kwargs: Any) -> Any:
            model = original(*args, **kwargs)
            add(model)
            return model

        return prepare_model

    return make


def _logged(hooks: FrameworkHooks) -> Callable[[Any], Any]:
    note = hooks.safe(hooks.log)

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def log(accelerator: Any, values: Any, *args: Any, **kwargs: Any) -> Any:
            note(values)
            return original(accelerator, values, *args, **kwargs)

        return log

    return make
