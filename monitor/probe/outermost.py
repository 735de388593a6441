"""Learns which modules the loop itself calls, and which are called inside others only.

A loop may call a model's parts and never the model, a frozen network beside the trained one, or a module that
no name of the user's leads to. So for a few steps every known module tells that it is called; of those, the
outermost keep a hook. Learning begins anew where new modules or optimizers have come since.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from monitor.probe.call_hook import COMPILED_CALL_ATTR, OURS, CompiledCallHook, compiler_in_use
from monitor.probe.module_registry import noted
from monitor.probe.patches import Patches, unseen_by_compiler

if TYPE_CHECKING:
    from monitor.probe.forward import ModuleHooks

#: Steps during which every call is noted.
STEPS = 3
#: Modules that are asked at most: beyond it only those in reach are timed.
MODULES = 50_000


class Learner:
    """Watches every module's calls for STEPS steps at a time.

    Args:
        hooks: gets what was found, by `add`.
    """

    def __init__(self, hooks: ModuleHooks) -> None:
        self._hooks = hooks
        self._asked: list[tuple[weakref.ref[nn.Module], CompiledCallHook]] = []
        self._outermost: dict[int, weakref.ref[nn.Module]] = {}
        self._left = 0
        self._classes: set[type] = set()
        self._timed = hooks.make_timed(self._note)

    def start(self) -> None:
        """Ask every known module that is not hooked yet, unless torch.compile is in use."""
        if "forward" in self._hooks.recorder.lost:
            return
        if self._asked:
            self._ask(noted())
            self._left = STEPS
            return
        if compiler_in_use():
            return
        self._ask(noted()[:MODULES])
        self._left = STEPS
        each = self._hooks.recorder.each
        if self._stepped not in each:
            each.append(self._stepped)

    def stop(self) -> None:
        """Take the questions back, and keep a hook on what was found to be outermost."""
        asked, self._asked = self._asked, []
        for reference, call in asked:
            module = reference()
            if module is not None and vars(module).get(COMPILED_CALL_ATTR) is call:
                del vars(module)[COMPILED_CALL_ATTR]
        outermost, self._outermost = self._outermost, {}
        for reference in outermost.values():
            module = reference()
            if module is not None:
                self._hooks.time(module)
        each = self._hooks.recorder.each
        if self._stepped in each:
            each.remove(self._stepped)

    def release(self, module: nn.Module) -> None:
        """Ask this module no more: it gets a hook for good."""
        hook = vars(module).get(COMPILED_CALL_ATTR)
        if any(hook is call for _, call in self._asked):
            del vars(module)[COMPILED_CALL_ATTR]

    def _stepped(self, _: int) -> None:
        self._left -= 1
        if self._left <= 0:
            self.stop()

    def _note(self, module: nn.Module) -> None:
        if id(module) not in self._outermost:
            self._outermost[id(module)] = weakref.ref(module)

    def _ask(self, modules: list[nn.Module]) -> None:
        timed = self._timed
        compiled = [m for m in modules if _is_compiled(m)]
        skipped = {id(part) for module in compiled for part in module.modules()}
        for module in compiled:
            self._hooks.time(module)
        for module in modules:
            if id(module) in skipped or COMPILED_CALL_ATTR in vars(module):
                continue
            if isinstance(module, torch.jit.ScriptModule):
                continue
            reference = weakref.ref(module)
            hook = CompiledCallHook(_asking(reference, timed))
            setattr(hook, OURS, None)
            vars(module)[COMPILED_CALL_ATTR] = hook
            self._asked.append((reference, hook))
            self._ask_class(type(module))

    def _ask_class(self, kind: type) -> None:
        """A library's own `__call__` never looks where our hook is: it is timed itself."""
        if kind in self._classes:
            return
        self._classes.add(kind)
        patches, timed = self._hooks.patches, self._hooks.timed
        for owner in kind.__mro__:
            if owner is nn.Module:
                return
            if "__call__" in vars(owner) and not owner.__module__.startswith("torch."):
                if owner not in self._classes or owner is kind:
                    self._classes.add(owner)
                    _time_calls(owner, timed, patches)
                return


def _asking(reference: weakref.ref[nn.Module], timed: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        module: Any = reference()
        return timed(module, module._call_impl, args, kwargs)

    return unseen_by_compiler(call)


def _is_compiled(module: nn.Module) -> bool:
    call = vars(module).get(COMPILED_CALL_ATTR)
    return type(module).__name__ == "OptimizedModule" or (call is not None and not hasattr(call, OURS))


def _time_calls(owner: type, timed: Any, patches: Patches) -> None:
    def make(original: Any) -> Any:
        def __call__(module: Any, /, *args: Any, **kwargs: Any) -> Any:
            return timed(module, lambda *given, **named: original(module, *given, **named), args, kwargs)

        return __call__

    patches.replace(owner, "__call__", make)
