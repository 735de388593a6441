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
TRANSFERS = (("fastai.data.load", "to_device"),)
MIN_VERSION = (2, 7)


def matches(target: Any) -> bool:
    """Whether it is a `fastai.learner.Learner`."""
    return descends(target, "Learner", "fastai")


def modules(target: Any) -> list[nn.Module]:
    """The learner's model."""
    return [target.model]


def install(target: Any, lead: Lead) -> None:
    """Wrap methods of fastai's own: to a callback it hands each of its two dozen events, at 50 µs a batch."""

    def begin(learner: Any) -> None:
        lead.begins()
        lead.roots.add(learner.model)

    def end_batch(learner: Any) -> None:
        if lead.leads and learner.training and lead.stepped():
            lead.step(learner.epoch + 1)

    owner = next(base for base in type(target).__mro__ if base.__name__ == "Learner")
    lead.time_loop(owner, "fit", begin)
    lead.after(owner, "one_batch", end_batch)
    lead.time_evaluation(owner, "_do_epoch_validate")
    lead.time_optimizer(importlib.import_module("fastai.optimizer").Optimizer, "step")
    loading = importlib.import_module("fastai.data.load")
    lead.wrap(loading, "_loaders", lambda kinds: tuple(lead.feeds.opening(kind) for kind in kinds))
