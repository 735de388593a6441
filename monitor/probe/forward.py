"""The forward pass of the modules that are trained: which they are, and how long they take."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable
from threading import get_ident
from types import FrameType
from typing import Any

import torch
from torch import nn

from monitor.probe.clock import EVAL, FORWARD, OTHER
from monitor.probe.patches import Patches, unseen_by_compiler
from monitor.probe.recorder import Recorder
from monitor.probe.source_location import names_in

#: Frames searched upwards from the first optimizer step for the modules that are trained.
FRAMES = 12
#: Where `nn.Module.__call__` looks first.
COMPILED_CALL_ATTR = "_compiled_call_impl"
#: Marks our own call there; its value is the compiled call whose place it took, if the module had one.
OURS = "_torchvitals_compiled"
#: Names looked at in one frame.
NAMES = 400


class _CompiledCallHook(functools.partial[Any]):
    """Our call in that place. A copy of it is nothing: it would run the module that it was made for.

    Torch leaves the place out where it copies or pickles a module; a model with its own way may not.
    """

    def __reduce__(self) -> Any:
        return type(None), ()


class ModuleHooks:
    """The outermost trained modules. One where the user named it, else found at the first step.

    None of them is kept alive: a model that the user lets go takes its memory with it.
    """

    def __init__(self, recorder: Recorder, evaluated: Callable[[], None]) -> None:
        self.recorder = recorder
        self._references: list[weakref.ref[nn.Module]] = []
        self._evaluated = evaluated
        self._patches: Patches | None = None

    @property
    def modules(self) -> list[nn.Module]:
        """Those that still live, in the order in which they were found."""
        found = [reference() for reference in self._references]
        return [module for module in found if module is not None]

    def install(self, patches: Patches, modules: Iterable[nn.Module]) -> None:
        """Hook the given modules; more may be found by `discover`."""
        self._patches = patches
        # TorchScript would look for the type of what stands in that place.
        ignored: list[str] = getattr(torch.jit._recursive, "ignored_attributes", [])
        ignored.append(COMPILED_CALL_ATTR)
        patches.on_undo(lambda: ignored.remove(COMPILED_CALL_ATTR))
        patches.replace(nn.Module, "compile", self._compile)
        patches.replace(nn.Module, "_replicate_for_data_parallel", self._replicate)
        for module in modules:
            self.add(module)

    def training(self) -> bool:
        """False while every known root is in evaluation mode."""
        known = False
        for reference in self._references:
            module = reference()
            if module is not None:
                if module.training:
                    return True
                known = True
        return not known

    def add(self, module: nn.Module) -> None:
        """Time this module's forward pass from now on."""
        if self._patches is None or any(module is known for known in self.modules):
            return
        self._references.append(weakref.ref(module, self._references.remove))
        self._wrap(module)

    def time(self, module: nn.Module) -> None:
        """Time the forward pass of a part of a known module, where a framework calls it alone."""
        if self._patches is not None and not hasattr(vars(module).get(COMPILED_CALL_ATTR), OURS):
            self._wrap(module)

    def _wrap(self, module: nn.Module) -> None:
        """Step in where `Module.__call__` looks for a compiled call.

        That is a fifth of the cost of a pair of hooks, adds no graph break, and is the one attribute
        that torch itself leaves out when a module is pickled or copied.
        """
        reference = weakref.ref(module)
        before = vars(module).get(COMPILED_CALL_ATTR)
        calls = vars(module)[COMPILED_CALL_ATTR] = _CompiledCallHook(
            unseen_by_compiler(self._around(reference, before))
        )
        setattr(calls, OURS, before)

        def undo() -> None:
            here = reference()
            if here is not None and vars(here).get(COMPILED_CALL_ATTR) is calls:
                del vars(here)[COMPILED_CALL_ATTR]
                if before is not None:
                    vars(here)[COMPILED_CALL_ATTR] = before

        assert self._patches is not None
        self._patches.on_undo(undo)

    def _compile(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compile(module: nn.Module, *args: Any, **kwargs: Any) -> Any:  # noqa: A001 - torch's name
            mine = any(module is known for known in self.modules) and bool(
                self.recorder.training_thread_id[0]
            )
            before = vars(module).pop(COMPILED_CALL_ATTR, None) if mine else None
            try:
                return original(module, *args, **kwargs)
            except BaseException:
                if before is not None:
                    vars(module)[COMPILED_CALL_ATTR] = before
                raise
            finally:
                if mine and vars(module).get(COMPILED_CALL_ATTR) is not before:
                    self._wrap(module)

        return compile

    def _replicate(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def _replicate_for_data_parallel(module: nn.Module) -> Any:
            replica = original(module)
            # A replica takes over its original's attributes, and with ours it would run the original.
            ours = vars(replica).get(COMPILED_CALL_ATTR)
            if hasattr(ours, OURS):
                vars(replica).update({COMPILED_CALL_ATTR: getattr(ours, OURS)})
            return replica

        return _replicate_for_data_parallel

    def discover(self, optimizer: torch.optim.Optimizer, frame: FrameType | None) -> None:
        """Find the modules that `optimizer` trains among the names in reach of its caller.

        A wrapper (DistributedDataParallel, a compiled module) takes the place of what it wraps.
        """
        trained = {id(p) for group in optimizer.param_groups for p in group["params"]}
        self._outermost([m for m in in_reach(frame) if any(id(p) in trained for p in m.parameters())])

    def look(self, frame: FrameType | None) -> None:
        """Find the modules with parameters in reach of `frame`, for a loop that has no optimizer."""
        self._outermost([m for m in in_reach(frame) if next(m.parameters(), None) is not None])

    def _outermost(self, found: list[nn.Module]) -> None:
        inner = {id(part) for m in found + self.modules for part in m.modules() if part is not m}
        for module in found:
            if id(module) not in inner:
                self.add(module)

    def _around(
        self, reference: weakref.ref[nn.Module], compiled: Callable[..., Any] | None
    ) -> Callable[..., Any]:
        recorder, clock, evaluated = self.recorder, self.recorder.clock, self._evaluated
        training_thread_id, push, pop, base_phase, set_base_phase = (
            recorder.training_thread_id,
            clock.push,
            clock.pop,
            clock.base_phase,
            clock.set_base_phase,
        )
        grad_enabled, compiling = torch.is_grad_enabled, torch.compiler.is_dynamo_compiling
        loop_state = recorder.loop_state

        def phase_of(module: Any) -> int:
            if loop_state.phase is not None:
                return EVAL if loop_state.phase == EVAL else FORWARD
            if not grad_enabled():
                evaluated()
                return EVAL if base_phase[0] == EVAL or not module.training else FORWARD
            if not module.training:
                return EVAL
            set_base_phase(OTHER)  # an evaluation that was left early: this is training again
            return FORWARD

        def call(*args: Any, **kwargs: Any) -> Any:
            module: Any = reference()
            original = compiled or module._call_impl
            if compiling() or get_ident() != training_thread_id[0]:
                return original(*args, **kwargs)
            try:
                usual = loop_state.phase is None and grad_enabled() and base_phase[0] != EVAL
                depth = push(FORWARD if usual else phase_of(module))
            except Exception as error:  # noqa: BLE001 - the training must not notice
                recorder.fail(error)
                return original(*args, **kwargs)
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
        names = names_in(frame)
        owned = getattr(names.get("self"), "__dict__", {})
        values = [*list(names.values())[:NAMES], *list(owned.values())[:NAMES]]
        for value in values:
            if isinstance(value, nn.Module):
                found[id(value)] = value
            elif isinstance(value, list | tuple | dict) and len(value) <= 8:
                inside = value.values() if isinstance(value, dict) else value
                found.update({id(v): v for v in inside if isinstance(v, nn.Module)})
        frame = frame.f_back
    return list(found.values())
