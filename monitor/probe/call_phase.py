"""Whether a module call that may be training or evaluation is the one or the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import nn

from monitor.probe.clock import EVAL, FORWARD, OTHER
from monitor.probe.recorder import Recorder


class CallPhase:
    """FORWARD or EVAL, for the module calls that are not plainly training.

    A policy that acts in an environment is called in evaluation mode too, and what it is called on is
    trained on afterwards: that is no evaluation. It is told by its size: a few observations at a time, or one
    token, where training takes a whole batch of them. What comes from a DataLoader is never taken for it.

    Args:
        is_trained: whether an optimizer trains a module.
        evaluated: told that a trained model was called without gradients; says whether a batch of a loader
            is at hand, so that it may have been called on that.

    Attributes:
        size_wanted: a list of one: whether the next call for training is to be measured by `measure`.
    """

    def __init__(
        self, recorder: Recorder, is_trained: Callable[[nn.Module], bool], evaluated: Callable[[], bool]
    ) -> None:
        self.recorder = recorder
        self._is_trained = is_trained
        self._evaluated = evaluated
        self.size_wanted = [True]
        self._trained_on = 0

    def measure(self, args: Iterable[Any], kwargs: Mapping[str, Any]) -> None:
        """Note the size of what is trained on; the largest so far counts."""
        self.size_wanted[0] = False
        self._trained_on = max(self._trained_on, _largest(args, kwargs))

    def of(self, module: nn.Module, args: Iterable[Any], kwargs: Mapping[str, Any]) -> int:
        """The phase of a call of `module`. What is not trained (a teacher) is no evaluation by itself."""
        state, clock = self.recorder.loop_state, self.recorder.clock
        if state.phase is not None:
            return EVAL if state.phase == EVAL else FORWARD
        evaluating, trained = clock.base_phase[0] == EVAL, self._is_trained(module)
        if not torch.is_grad_enabled():
            at_hand = trained and self._evaluated()
            if evaluating or not trained or module.training:
                return EVAL if evaluating else FORWARD
            return FORWARD if not at_hand and self._acts(args, kwargs) else EVAL
        if module.training and trained:
            clock.set_base_phase(OTHER)  # an evaluation that was left early: this is training again
            return FORWARD
        return EVAL

    def _acts(self, args: Iterable[Any], kwargs: Mapping[str, Any]) -> bool:
        self.size_wanted[0] = True
        return 0 < 2 * _largest(args, kwargs) <= self._trained_on


def _largest(args: Iterable[Any], kwargs: Mapping[str, Any]) -> int:
    """Elements of the largest tensor among the arguments, also in a dict or list among them; 0: none."""
    values: list[Any] = []
    for value in (*args, *kwargs.values()):
        if isinstance(value, Mapping):
            values.extend(value.values())
        else:
            values.extend(value if isinstance(value, list | tuple) else (value,))
    return max((value.numel() for value in values if isinstance(value, torch.Tensor)), default=0)
