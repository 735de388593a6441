"""fastai: `Learner.fit` and all that is built on it.

A step is a batch at whose end an optimizer has stepped. fastai's own optimizers and loaders are none
of torch's, so both are watched here.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from monitor.probe.adapters import descends

if TYPE_CHECKING:
    from torch import nn

    from monitor.probe.framework_hooks import FrameworkHooks

NAME = "a fastai Learner"
PACKAGES = ("fastai",)
TRANSFERS = (("fastai.data.load", "to_device"),)
ENTRIES = (("fastai.learner", "Learner", "fit"),)
MIN_VERSION = (2, 7)


def matches(target: Any) -> bool:
    """Whether it is a `fastai.learner.Learner`."""
    return descends(target, "Learner", "fastai")


def modules(target: Any) -> list[nn.Module]:
    """The learner's model."""
    return [target.model]


def install(target: Any, hooks: FrameworkHooks) -> None:
    """Wrap methods of fastai's own: to a callback it hands each of its two dozen events, at 50 µs a batch."""

    first: list[bool] = []
    later: list[int] = []

    def begin(learner: Any) -> None:
        hooks.begins()
        hooks.module_hooks.add(learner.model)
        first[:] = [True]

    def end_batch(learner: Any) -> None:
        if hooks.leads and learner.training and hooks.stepped():
            hooks.step(learner.epoch + 1)
            if first:  # how many batches a step takes is known from the first one on
                first.clear()
                hooks.plan(_left(learner, later.pop() if later else 0))

    owner = next(base for base in type(target).__mro__ if base.__name__ == "Learner")
    if hasattr(owner, "fine_tune"):
        hooks.wrap(owner, "fine_tune", _fine_tuning(later))
    hooks.time_loop(owner, "fit", begin)
    hooks.after(owner, "one_batch", end_batch)
    hooks.time_evaluation(owner, "_do_epoch_validate")
    hooks.time_optimizer(importlib.import_module("fastai.optimizer").Optimizer, "step")
    loading = importlib.import_module("fastai.data.load")
    hooks.wrap(loading, "_loaders", lambda kinds: tuple(hooks.loader_hooks.opening(kind) for kind in kinds))


def enter(target: Any, hooks: FrameworkHooks) -> None:
    """Its fit has begun already."""
    hooks.begins()


def _left(learner: Any, later: int) -> float:
    """Steps that the fit still means to take, and one of `later` epochs after it; NaN where unknown."""
    try:
        epochs, length = learner.n_epoch - learner.epoch + later, learner.n_iter
        return float((epochs * length - learner.iter - 1) // learner.train_iter)
    except (AttributeError, TypeError, ZeroDivisionError):  # a loader or a callback of the user's own
        return math.nan


def _fine_tuning(later: list[int]) -> Callable[[Any], Any]:
    """`fine_tune` fits twice: at its first fit the epochs of the second one are known too."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def fine_tune(learner: Any, /, epochs: Any, *args: Any, **kwargs: Any) -> Any:
            later[:] = [epochs] if isinstance(epochs, int) else []
            try:
                return original(learner, epochs, *args, **kwargs)
            finally:
                later.clear()

        return fine_tune

    return make
