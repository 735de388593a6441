"""The modules that were constructed since anybody watched: what trains is found without a name for it.

Libraries keep their model in objects that no frame of the user's knows. So each `nn.Module` is noted, weakly,
when it is constructed, copied or unpickled.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from monitor.probe.patches import Patches

_optimizers: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
_alive: dict[int, weakref.ref[nn.Module]] = {}


def watch_modules(patches: Patches) -> None:
    """Note every module that comes into being from now on."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def born(module: Any, *args: Any, **kwargs: Any) -> Any:
            note(module)
            return original(module, *args, **kwargs)

        return born

    for name in ("__init__", "__setstate__"):
        patches.replace(nn.Module, name, make)


def watch_optimizers(patches: Patches) -> None:
    """Note every optimizer that is made from now on."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            _optimizers.add(optimizer)

        return __init__

    patches.replace(torch.optim.Optimizer, "__init__", make)


def optimizers() -> list[torch.optim.Optimizer]:
    """Those that were made while somebody watched, and live."""
    return list(_optimizers)


def note(module: nn.Module) -> None:
    """Remember a module for as long as it lives."""
    number = id(module)
    known = _alive.get(number)
    if known is None or known() is not module:
        _alive[number] = weakref.ref(module, lambda gone: _forget(number, gone))


def _forget(number: int, gone: weakref.ref[nn.Module]) -> None:
    if _alive.get(number) is gone:
        del _alive[number]


def noted() -> list[nn.Module]:
    """Those that still live, in the order in which they came into being."""
    found = [reference() for reference in list(_alive.values())]
    return [module for module in found if module is not None]
