"""The forward pass of the modules that are trained: which they are, and how long they take."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import get_ident
from types import FrameType
from typing import Any

import torch
from torch import nn

from monitor.probe.clock import EVAL, FORWARD
from monitor.probe.patches import Patches
from monitor.probe.recorder import Recorder

#: Frames searched upwards from the first optimizer step for the modules that are trained.
FRAMES = 12
#: Where `nn.Module.__call__` looks first.
SEAM = "_compiled_call_impl"
#: Marks our own call there; its value says whether the module was compiled in place.
OURS = "_torchvitals_compiled"
#: Names looked at in one frame.
NAMES = 400


class Roots:
    """The outermost trained modules. One where the user named it, else found at the first step."""

    def __init__(self, recorder: Recorder, evaluated: Callable[[], None]) -> None:
        self.recorder = recorder
        self.modules: list[nn.Module] = []
        self._evaluated = evaluated
        self._patches: Patches | None = None

    def install(self, patches: Patches, modules: Iterable[nn.Module]) -> None:
        """Hook the given modules; more may be found by `discover`."""
        self._patches = patches
        patches.replace(nn.Module, "compile", self._compile)
        for module in modules:
            self.add(module)

    def training(self) -> bool:
        """False while every known root is in evaluation mode."""
        for module in self.modules:
            if module.training:
                return True
        return not self.modules

    def add(self, module: nn.Module) -> None:
        """Time this module's forward pass from now on."""
        if self._patches is None or any(module is known for known in self.modules):
            return
        self.modules.append(module)
        self._wrap(module)

    def _wrap(self, module: nn.Module) -> None:
        """Step in where `Module.__call__` looks for a compiled call.

        That is a fifth of the cost of a pair of hooks, adds no graph break, and is the one attribute
        that torch itself leaves out when a module is pickled or copied.
        """
        calls = self._around(module, getattr(module, SEAM, None) or module._call_impl)
        before = vars(module).get(SEAM)
        vars(module)[SEAM] = calls
        setattr(calls, OURS, before is not None)

        def undo() -> None:
            if vars(module).get(SEAM) is calls:
                del vars(module)[SEAM]
                if before is not None:
                    vars(module)[SEAM] = before

        assert self._patches is not None
        self._patches.on_undo(undo)

    def _compile(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compile(module: nn.Module, *args: Any, **kwargs: Any) -> Any:  # noqa: A001 - torch's name
            mine = any(module is known for known in self.modules)
            if mine:
                vars(module).pop(SEAM, None)
            result = original(module, *args, **kwargs)
            if mine:
                self._wrap(module)
            return result

        return compile

    def discover(self, optimizer: torch.optim.Optimizer, frame: FrameType | None) -> None:
        """Find the modules that `optimizer` trains among the names in reach of its caller.

        A wrapper (DistributedDataParallel, a compiled module) takes the place of what it wraps.
        """
        trained = {id(p) for group in optimizer.param_groups for p in group["params"]}
        found = [m for m in in_reach(frame) if any(id(p) in trained for p in m.parameters())]
        inner = {id(part) for m in found + self.modules for part in m.modules() if part is not m}
        for module in found:
            if id(module) not in inner:
                self.add(module)

    def _around(self, module: nn.Module, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder, clock, evaluated = self.recorder, self.recorder.clock, self._evaluated
        gate, push, pop, on_floor = recorder.gate, clock.push, clock.pop, clock.on_floor
        grad_enabled, compiling = torch.is_grad_enabled, torch.compiler.is_compiling

        def call(*args: Any, **kwargs: Any) -> Any:
            if compiling() or get_ident() != gate[0]:
                return original(*args, **kwargs)
            phase = FORWARD
            if on_floor() == EVAL:
                phase = EVAL
            elif not grad_enabled():
                evaluated()
                if not module.training:
                    phase = EVAL
            depth = push(phase)
            try:
                return original(*args, **kwargs)
            finally:
                pop(depth)

        return call


def in_reach(frame: FrameType | None) -> list[nn.Module]:
    """Modules that the frames from `frame` outwards know by name, or as attributes of `self`."""
    found: dict[int, nn.Module] = {}
    for _ in range(FRAMES):
        if frame is None:
            break
        names = dict(frame.f_locals)
        owner = names.get("self")
        values = [*list(names.values())[:NAMES], *list(getattr(owner, "__dict__", {}).values())[:NAMES]]
        for value in values:
            if isinstance(value, nn.Module):
                found[id(value)] = value
            elif isinstance(value, list | tuple | dict) and len(value) <= 8:
                inside = value.values() if isinstance(value, dict) else value
                found.update({id(v): v for v in inside if isinstance(v, nn.Module)})
        frame = frame.f_back
    return list(found.values())
