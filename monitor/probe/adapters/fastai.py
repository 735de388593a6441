"""fastai: `Learner.fit` and all that is built on it.

A step is a batch at whose end an optimizer has stepped. fastai's own optimizers and loaders are none
of torch's, so both are watched here.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from monitor.probe.adapters import descends

if TYPE_CHECKING:
    from torch import nn

    from monitor.probe.lead import Lead

NAME = "a fastai Learner"
PACKAGES = ("fastai",)
MIN_VERSION = (2, 7)

#: After fastai's own callbacks (its Recorder is 50), so that those see a batch before its step ends.
_ORDER = 90


def matches(target: Any) -> bool:
    """Whether it is a `fastai.learner.Learner`."""
    return descends(target, "Learner", "fastai")


def modules(target: Any) -> list[nn.Module]:
    """The learner's model."""
    return [target.model]


def install(target: Any, lead: Lead) -> None:
    """Add a callback; watch fastai's optimizers and loaders."""
    watch = _callback(lead)
    target.add_cb(watch)
    lead.on_detach(target, lambda learner: learner.remove_cb(watch))
    learner = next(base for base in type(target).__mro__ if base.__name__ == "Learner")
    lead.time_loop(learner, "fit")
    lead.time_optimizer(importlib.import_module("fastai.optimizer").Optimizer, "step")
    loading = importlib.import_module("fastai.data.load")
    lead.wrap(loading, "_loaders", lambda kinds: tuple(lead.feeds.opening(kind) for kind in kinds))


def _callback(lead: Lead) -> Any:
    core = importlib.import_module("fastai.callback.core")

    class TorchvitalsCallback(core.Callback):  # type: ignore[misc, name-defined]
        order = _ORDER

        def __init__(self) -> None:
            super().__init__()
            evaluates = lead.safe(lead.evaluates)
            self.before_fit = lead.anywhere(self._begin)
            self.after_batch = lead.safe(self._end_batch)
            self.before_validate = lambda: evaluates(True)
            self.after_validate = lambda: evaluates(False)

        def _begin(self) -> None:
            lead.begins()
            lead.roots.add(self.model)

        def _end_batch(self) -> None:
            if self.training and lead.stepped():
                lead.step(self.epoch + 1)

        def __reduce__(self) -> Any:
            return core.Callback, ()

    return TorchvitalsCallback()
