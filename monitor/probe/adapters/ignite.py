"""Ignite: `Engine.run`.

A step is an iteration at whose end an optimizer has stepped. Engines that run inside one that was
attached evaluate. An attached engine that never trains is an inference loop: each iteration is a step.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from monitor.probe.adapters import descends

if TYPE_CHECKING:
    from torch import nn

    from monitor.probe.framework_hooks import FrameworkHooks

NAME = "an Ignite Engine"
PACKAGES = ("ignite",)
TRANSFERS = (("ignite.engine", "convert_tensor"),)
ENTRIES = (("ignite.engine.engine", "Engine", "run"),)
MIN_VERSION = (0, 4, 8)

_found: weakref.WeakSet[Any] = weakref.WeakSet()
_attached: weakref.WeakSet[Any] = weakref.WeakSet()


def matches(target: Any) -> bool:
    """Whether it is an `ignite.engine.Engine`."""
    return descends(target, "Engine", "ignite")


def modules(target: Any) -> list[nn.Module]:
    """Modules that the engine's function closes over, or that its owner holds."""
    from torch import nn

    function = target._process_function
    while isinstance(function, functools.partial):
        function = function.func
    held = list(getattr(getattr(function, "__self__", None), "__dict__", {}).values())
    if inspect.isfunction(function):
        held += inspect.getclosurevars(function).nonlocals.values()
    found = [value for value in held if isinstance(value, nn.Module)]
    return [module for module in found if next(module.parameters(), None) is not None]


def install(target: Any, hooks: FrameworkHooks) -> None:
    """Handle the end of each iteration, and the fetching of batches that come from no DataLoader."""
    events = importlib.import_module("ignite.engine").Events
    begun: list[int] = []
    handles = [
        target.add_event_handler(events.STARTED, hooks.safe(_started(begun))),
        target.add_event_handler(events.GET_BATCH_STARTED, hooks.safe(hooks.open_fetch)),
        target.add_event_handler(events.GET_BATCH_COMPLETED, hooks.safe(_fetched(hooks))),
        target.add_event_handler(events.ITERATION_COMPLETED, hooks.safe(_iterated(hooks, begun))),
    ]
    _attached.add(target)

    def undo(engine: Any) -> None:
        _attached.discard(engine)
        for handle in handles:
            handle.remove()

    hooks.on_detach(target, undo)
    owner = next(base for base in type(target).__mro__ if base.__name__ == "Engine")
    hooks.wrap(owner, "run", _running(hooks))


def enter(target: Any, hooks: FrameworkHooks) -> None:
    """Its run has begun already. Nobody named it, so it may evaluate: then its iterations are no steps."""
    _found.add(target)
    hooks.begins(counts=False)


def _fetched(hooks: FrameworkHooks) -> Callable[[Any], None]:
    def fetched(engine: Any) -> None:
        hooks.close_fetch()
        hooks.count(engine.state.batch)

    return fetched


def _started(begun: list[int]) -> Callable[[Any], None]:
    """Keeps the iteration at which the run begins, which is not 0 where it goes on from a checkpoint."""

    def started(engine: Any) -> None:
        begun[:] = [engine.state.iteration]

    return started


def _iterated(hooks: FrameworkHooks, begun: list[int]) -> Callable[[Any], None]:
    def iterated(engine: Any) -> None:
        if engine in _found and not hooks.stepped() and not hooks.trained():
            hooks.evaluates(True)
        elif hooks.stepped() or not hooks.trained():
            hooks.step(engine.state.epoch)
            if begun:  # how many iterations a step takes is known from the first one on
                hooks.plan(_left(engine.state) // (engine.state.iteration - begun.pop()))

    return iterated


def _left(state: Any) -> float:
    """Iterations that the run still means to do; NaN where the loader has no length."""
    most, epochs, length = getattr(state, "max_iters", None), state.max_epochs, state.epoch_length
    total = epochs * length if most is None and epochs and length else most
    return math.nan if total is None else total - state.iteration


def _running(hooks: FrameworkHooks) -> Callable[[Any], Any]:
    begin = hooks.anywhere(lambda: hooks.begins(counts=False))
    end = hooks.anywhere(hooks.ends)

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(engine: Any, /, *args: Any, **kwargs: Any) -> Any:
            if hooks.leads:
                with hooks.evaluation():
                    return original(engine, *args, **kwargs)
            if engine not in _attached:
                return original(engine, *args, **kwargs)
            begin()
            try:
                return original(engine, *args, **kwargs)
            finally:
                end()

        return run

    return make
