"""Attach by itself, in a script that knows nothing of us: once torch is there and training begins.

A launcher (torchrun), a loader's worker or a helper script imports torch as well but never trains,
so nothing is written before the first loader is iterated, the first backward pass, gradient of weights or
optimizer step, or until a process group says that this process is a rank. Importing this module does not
import torch.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from monitor.probe.patches import Patches


class ImportWatcher(MetaPathFinder):
    """Calls back once a module has been imported, however often somebody asks only where it is.

    Libraries ask `importlib.util.find_spec("torch")` to learn whether torch is installed, and import it
    later or never. So every question is answered with the module's own spec, whose loader calls back when it
    runs; the callback happens at the first run only.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, list[Callable[[], None]]] = {}
        self._asking = threading.local()

    def watch(self, name: str, then: Callable[[], None]) -> None:
        """Call `then` right after the module `name` was imported; at once where it is complete already."""
        module = sys.modules.get(name)
        if module is not None and not getattr(module.__spec__, "_initializing", False):
            then()
            return
        self._waiting.setdefault(name, []).append(then)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def forget(self, then: Callable[[], None]) -> None:
        """Take one callback back."""
        for waiting in self._waiting.values():
            if then in waiting:
                waiting.remove(then)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What the other finders say of a module that is waited for; None for every other module."""
        if fullname not in self._waiting or getattr(self._asking, "now", False):
            return None
        self._asking.now = True
        try:
            spec = _ask_others(self, fullname, path, target)
        finally:
            self._asking.now = False
        loader = getattr(spec, "loader", None)
        if loader is not None and hasattr(loader, "exec_module"):
            self._call_back_after(loader, fullname)
        return spec

    def _call_back_after(self, loader: Any, name: str) -> None:
        """Have this loader's next `exec_module` tell us. The loader itself stays what it is to everybody."""
        original = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            if vars(loader).get("exec_module") is exec_module:
                del loader.exec_module
            original(module)
            for then in self._waiting.pop(name, ()):
                then()

        with contextlib.suppress(AttributeError, TypeError):  # a loader that takes no attributes
            loader.exec_module = exec_module


def _ask_others(
    asking: MetaPathFinder, name: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    for finder in list(sys.meta_path):
        find = getattr(finder, "find_spec", None)
        if finder is not asking and find is not None:
            spec: ModuleSpec | None = find(name, path, target)
            if spec is not None:
                return spec
    return None


#: The one watcher of this process.
imports = ImportWatcher()


def when_training_begins(attach: Callable[[], object]) -> None:
    """Call `attach` once, when training begins. The triggers are set as soon as torch is imported."""
    imports.watch("torch", lambda: _set_triggers(attach))


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
    from torch.utils.data import DataLoader, get_worker_info

    from monitor.probe.construction import watch_construction
    from monitor.probe.framework_entry import entries
    from monitor.probe.module_registry import watch_modules, watch_optimizers
    from monitor.probe.patches import Patches
    from monitor.probe.recorder import say
    from monitor.probe.weight_gradients import of_weights

    patches = Patches()
    constructions = Patches()
    watch_construction(constructions)
    watch_modules(constructions)
    watch_optimizers(constructions)

    def disarm() -> None:
        patches.restore()
        constructions.restore()

    def begin() -> Any:
        if disarm not in _armed:
            return None
        stand_down()
        if get_worker_info() is not None:  # a dataset with a loader of its own, in a loader's worker
            return None
        try:
            return attach()
        except Exception as error:  # noqa: BLE001 - the script runs, with us or without
            say(f"monitoring is off: {type(error).__name__}: {error}. The training goes on.")
            return None

    before = _before(patches, begin)
    _armed.append(disarm)
    before(DataLoader, "__iter__")
    before(torch.autograd, "backward")
    before(torch.autograd, "grad", of_weights)
    patches.replace(torch.optim.Optimizer, "__init__", _at_first_step(begin, patches))
    for _, module, kind, method in entries():
        _before_entry(patches, before, module, kind, method)
    if torch.distributed.is_available():
        _after_process_group(torch.distributed, patches, begin)


def _always(*_: Any, **__: Any) -> bool:
    return True


def _before(patches: Patches, begin: Callable[[], Any]) -> Callable[..., None]:
    """before(owner, name, when): attach before this function is called, with arguments that `when` takes."""

    def before(owner: Any, name: str, when: Callable[..., bool] = _always) -> None:
        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def trigger(*args: Any, **kwargs: Any) -> Any:
                if not when(*args, **kwargs):
                    return original(*args, **kwargs)
                outermost = getattr(owner, name) is trigger
                begin()
                # What stands there now may be a hook that attach has just put in place. Called by somebody
                # else's replacement, we go on to what that one was made for, or it would run twice.
                return (getattr(owner, name) if outermost else original)(*args, **kwargs)

            return trigger

        patches.replace(owner, name, make)

    return before


def _at_first_step(
    begin: Callable[[], Any], patches: Patches
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Have every optimizer that is made attach as its first step begins, so that this step is seen whole.

    Torch walks the hooks of all optimizers before those of one, so a hook of one may add to the former.
    """
    handles: dict[int, Any] = {}

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        own = handles.pop(id(optimizer), None)
        session = begin()  # takes the other hooks back; torch is walking this one's
        if session is not None:
            session._optimizer_begins(optimizer, args, kwargs, release=own)

    def remove() -> None:
        for handle in handles.values():
            handle.remove()
        handles.clear()

    def make(original: Callable[..., None]) -> Callable[..., None]:
        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            with contextlib.suppress(Exception):  # without hooks it is seen from its second step on
                handles[id(optimizer)] = optimizer.register_step_pre_hook(before)

        return __init__

    patches.on_undo(remove)
    return make


def _before_entry(patches: Patches, before: Callable[..., None], module: str, kind: str, method: str) -> None:
    """Attach before a framework begins to train, once it is imported."""

    def imported() -> None:
        owner = getattr(sys.modules[module], kind, None)
        if owner is not None:
            before(owner, method)

    imports.watch(module, imported)
    patches.on_undo(lambda: imports.forget(imported))


def _after_process_group(distributed: Any, patches: Any, begin: Callable[[], None]) -> None:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def init_process_group(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            begin()
            return result

        return init_process_group

    patches.replace(distributed, "init_process_group", make)
