"""Attach by itself, in a script that knows nothing of us: once torch is there and training begins.

A launcher (torchrun), a loader's worker or a helper script imports torch as well but never trains,
so nothing is written before the first loader is iterated, the first backward pass or optimizer step,
or until a process group says that this process is a rank. Importing this module does not import torch.
"""

from __future__ import annotations

import importlib.util
import sys
import weakref
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _Wrapped(Loader):
    """A loader that calls back once its module is complete."""

    def __init__(self, inner: Any, then: Callable[[], None]) -> None:
        self._inner = inner
        self._then = then

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the inner loader does."""
        module: ModuleType | None = self._inner.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """As the inner loader does, then call back."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._inner
        module.__loader__ = self._inner
        self._inner.exec_module(module)
        self._then()


class _Finder(MetaPathFinder):
    """Finds one module by asking everybody else, and wraps its loader."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name = name
        self._then = then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's own spec with a loader that calls back; None for every other module."""
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Wrapped(spec.loader, self._then)
        return spec


def when_imported(name: str, then: Callable[[], None]) -> None:
    """Call `then` right after the top-level module `name` was imported; at once where it is already."""
    if name in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _Finder(name, then))


def when_training_begins(attach: Callable[[], object]) -> None:
    """Call `attach` once, when training begins. The triggers are set as soon as torch is imported."""
    when_imported("torch", lambda: _set_triggers(attach))


#: Takes the triggers back, while there are any.
_armed: list[Callable[[], None]] = []


def stand_down() -> None:
    """The script attaches by itself: take the triggers back, so that none stays beneath its hooks."""
    while _armed:
        _armed.pop()()


def _set_triggers(attach: Callable[[], object]) -> None:
    try:
        _patch(attach)
    except Exception as error:  # noqa: BLE001 - the script runs, with us or without
        print(f"torchvitals: monitoring is off: {type(error).__name__}: {error}", file=sys.stderr)


def _patch(attach: Callable[[], object]) -> None:
    import torch
    from torch.optim.optimizer import register_optimizer_step_pre_hook
    from torch.utils.data import DataLoader, get_worker_info

    from monitor.probe.construction import watch_construction
    from monitor.probe.patches import Patches
    from monitor.probe.recorder import say

    patches = Patches()
    constructions = Patches()
    watch_construction(constructions)

    def disarm() -> None:
        patches.restore()
        constructions.restore()

    def begin() -> None:
        if disarm not in _armed:
            return
        stand_down()
        if get_worker_info() is not None:  # a dataset with a loader of its own, in a loader's worker
            return
        try:
            attach()
        except Exception as error:  # noqa: BLE001 - the script runs, with us or without
            say(f"monitoring is off: {type(error).__name__}: {error}. The training goes on.")

    def before(owner: Any, name: str) -> None:
        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def trigger(*args: Any, **kwargs: Any) -> Any:
                outermost = getattr(owner, name) is trigger
                begin()
                # What stands there now may be a hook that attach has just put in place. Called by somebody
                # else's replacement, we go on to what that one was made for, or it would run twice.
                return (getattr(owner, name) if outermost else original)(*args, **kwargs)

            return trigger

        patches.replace(owner, name, make)

    _armed.append(disarm)
    before(DataLoader, "__iter__")
    before(torch.autograd, "backward")
    patches.on_undo(register_optimizer_step_pre_hook(_once_stepped(begin)).remove)
    if torch.distributed.is_available():
        _after_process_group(torch.distributed, patches, begin)


def _once_stepped(begin: Callable[[], None]) -> Callable[..., None]:
    """A pre-hook that attaches once the step is over: torch walks its hooks now, and attach adds some."""
    seen: weakref.WeakSet[Any] = weakref.WeakSet()

    def before(optimizer: Any, *_: Any) -> None:
        if optimizer not in seen:
            seen.add(optimizer)
            optimizer.register_step_post_hook(lambda *_: begin())

    return before


def _after_process_group(distributed: Any, patches: Any, begin: Callable[[], None]) -> None:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def init_process_group(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            begin()
            return result

        return init_process_group

    patches.replace(distributed, "init_process_group", make)
