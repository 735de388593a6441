"""The forward pass of the modules that are trained: which they are, and how long they take."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from threading import get_ident
from types import FrameType
from typing import Any

import torch
from torch import nn

from monitor.probe import torch_compat
from monitor.probe.call_hook import (
    COMPILED_CALL_ATTR,
    OURS,
    CompiledCallHook,
    allow_call_hooks,
    compiler_in_use,
)
from monitor.probe.call_phase import CallPhase
from monitor.probe.clock import BACKWARD, EVAL, FORWARD
from monitor.probe.module_registry import note, noted, optimizers, watch_modules, watch_optimizers
from monitor.probe.outermost import Learner
from monitor.probe.patches import Patches, unseen_by_compiler
from monitor.probe.recorder import Recorder
from monitor.probe.source_location import names_in, user_frame

#: Frames searched upwards from the first optimizer step for the modules that are trained.
FRAMES = 12
#: Parameters, the first and the last so many, that tell whether weights were updated.
SAMPLED = 4
#: Times that the frames are searched for weights, where no module holds any.
SEARCHES = 3
#: Entries of a list that are looked at for weights, at most.
LEAVES = 64
#: Names looked at in one frame.
NAMES = 400


#: timed(module, original, args, kwargs) -> what original(*args, **kwargs) returns.
Timed = Callable[[Any, Callable[..., Any], Any, Any], Any]


class ModuleHooks:
    """The forward pass: every outermost module call of the training thread, trained modules and frozen ones.

    Which modules the loop itself calls, and which are called inside others only, is learnt: for a few steps
    every known module notes that it is called; then only the outermost ones keep a hook. None is kept alive:
    a model that the user lets go takes its memory with it.

    Attributes:
        trained: identities of the parameters that an optimizer trains.
    """

    def __init__(self, recorder: Recorder, evaluated: Callable[[], bool]) -> None:
        self.recorder = recorder
        self.trained: set[int] = set()
        self._models: list[weakref.ref[nn.Module]] = []
        self._called: list[weakref.ref[nn.Module]] = []
        self._call_phase = CallPhase(recorder, self.is_trained, evaluated)
        self._patches: Patches | None = None
        # The step in which an outermost call runs, counted from 1: what is called inside it is part of it.
        self._inside = [0]
        self._sampled: list[weakref.ref[nn.Parameter]] | None = None
        self._searched = 0
        self._learner: Learner
        self.timed: Timed
        self._is_trained: dict[int, bool] = {}
        self._read_version = torch_compat.reader(torch_compat.TENSOR_VERSION)

    @property
    def patches(self) -> Patches:
        """Where hooks go that are put back at detach."""
        assert self._patches is not None
        return self._patches

    @property
    def modules(self) -> list[nn.Module]:
        """The models, as far as they live: named by the user, or the outermost that hold what is trained."""
        return _living(self._models)

    def install(self, patches: Patches, modules: Iterable[nn.Module]) -> None:
        """Hook the given modules; more may be found by `discover`. Without hooks they are only described."""
        recorder = self.recorder
        recorder.weights_version = self.weights_version
        watch_modules(patches)
        watch_optimizers(patches)
        self._patches = part = patches.part()
        # Made here: what was made before is hidden from torch.compile together with all that it calls.
        self.timed = self.make_timed()
        self._learner = Learner(self)
        recorder.on_lost("forward", part.restore)
        try:
            allow_call_hooks(part)
        except Exception as error:  # noqa: BLE001 - this signal is lost, and nothing else
            recorder.signal_lost("forward", error)
        part.replace(nn.Module, "compile", self._compile)
        part.replace(torch, "compile", self._compiles)
        part.on_undo(self._learner.stop)
        for module in modules:
            for each in module.modules():
                note(each)
            self.add(module)
        self._learner.start()

    def weights_version(self) -> int:
        """A number that changes when weights are updated: torch counts the writes into each parameter.

        Weights that an optimizer holds are left out, for its step will be seen; unless it may be compiled.
        """
        if self._sampled is None:
            every = [p for m in noted() for p in m.parameters(recurse=False) if p.requires_grad]
            if not every and self._searched < SEARCHES:  # asked after each backward pass
                self._searched += 1
                every = leaves_in_reach(user_frame(3))
            if not every:
                return 0
            stepping = () if compiler_in_use() else (*optimizers(), *optimizers_in_reach(user_frame(3)))
            held = {id(p) for o in stepping for group in o.param_groups for p in group["params"]}
            by_hand = [p for p in every if id(p) not in held]
            self._sampled = [weakref.ref(p) for p in (*by_hand[:SAMPLED], *by_hand[-SAMPLED:])]
        living = [reference() for reference in self._sampled]
        try:
            return sum(self._read_version(parameter) for parameter in living if parameter is not None)
        except (LookupError, AttributeError) as error:
            self.recorder.signal_lost("steps", error)
            self._sampled = []
            return 0

    def training(self) -> bool:
        """False while every known model is in evaluation mode."""
        known = False
        for reference in self._models:
            module = reference()
            if module is not None:
                if module.training:
                    return True
                known = True
        return not known

    def is_trained(self, module: nn.Module) -> bool:
        """Whether an optimizer trains a parameter of it; True for all while no optimizer is known."""
        if not self.trained:
            return True
        known = self._is_trained.get(id(module))
        if known is None:
            known = any(id(parameter) in self.trained for parameter in module.parameters())
            self._is_trained[id(module)] = known
        return known

    def add(self, module: nn.Module) -> None:
        """A model: it is described, and its forward pass is timed from now on."""
        if self._patches is not None and not any(module is known for known in self.modules):
            self._models.append(weakref.ref(module, self._models.remove))
            self.time(module)

    def time(self, module: nn.Module) -> None:
        """Time the calls of this module: a model, or what a loop or framework calls beside one."""
        if self._patches is None or any(module is known for known in _living(self._called)):
            return
        number = id(module)

        def gone(reference: weakref.ref[nn.Module]) -> None:
            self._called.remove(reference)
            self._is_trained.pop(number, None)

        self._called.append(weakref.ref(module, gone))
        self._learner.release(module)
        if "forward" not in self.recorder.lost and not hasattr(vars(module).get(COMPILED_CALL_ATTR), OURS):
            self._wrap(module)

    def _wrap(self, module: nn.Module) -> None:
        """Step in where `Module.__call__` looks for a compiled call.

        That is a fifth of the cost of a pair of hooks, adds no graph break, and is the one attribute
        that torch itself leaves out when a module is pickled or copied.
        """
        reference = weakref.ref(module)
        before = vars(module).get(COMPILED_CALL_ATTR)
        calls = vars(module)[COMPILED_CALL_ATTR] = CompiledCallHook(
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
            self._learner.stop()
            mine = any(module is known for known in _living(self._called)) and bool(
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

    def _compiles(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compile(*args: Any, **kwargs: Any) -> Any:  # noqa: A001 - torch's name
            self._learner.stop()
            return original(*args, **kwargs)

        return compile

    def discover(self, optimizer: torch.optim.Optimizer, frame: FrameType | None) -> None:
        """Note what `optimizer` trains, and the modules in reach of its caller, trained or frozen.

        A wrapper (DistributedDataParallel, a compiled module) takes the place of what it wraps.
        """
        self.trained.update(id(p) for group in optimizer.param_groups for p in group["params"])
        self._is_trained.clear()
        for module in in_reach(frame):
            for part in module.modules():
                note(part)
        trained = {
            id(m): m for m in noted() if any(id(p) in self.trained for p in m.parameters(recurse=False))
        }
        self._find_models(trained)
        self._learner.start()

    def _find_models(self, holding: dict[int, nn.Module]) -> None:
        """Add the outermost modules that hold one of `holding`."""
        inner: dict[int, nn.Module] = {}
        outer = {id(part): module for module in noted() for part in module.children()}
        for module in holding.values():
            while id(module) in outer and id(module) not in inner:
                inner[id(module)] = module
                module = outer[id(module)]
            if id(module) not in inner:
                self.add(module)

    def look(self, frame: FrameType | None) -> None:
        """Find the modules with parameters in reach of `frame`, for a loop that has no optimizer."""
        found = [m for m in in_reach(frame) if next(m.parameters(), None) is not None]
        inner = {id(part) for m in found + self.modules for part in m.modules() if part is not m}
        for module in found:
            if id(module) not in inner:
                self.add(module)

    def _around(
        self, reference: weakref.ref[nn.Module], compiled: Callable[..., Any] | None
    ) -> Callable[..., Any]:
        timed = self.timed

        def call(*args: Any, **kwargs: Any) -> Any:
            module: Any = reference()
            return timed(module, compiled or module._call_impl, args, kwargs)

        return call

    def make_timed(self, outermost: Callable[[nn.Module], None] | None = None) -> Timed:
        """A function that calls a module's forward pass and times it, unless it is part of another one.

        Args:
            outermost: told each module that is called by the loop itself.
        """
        recorder, clock, live = self.recorder, self.recorder.clock, self.recorder.tape.live
        thread, push, pop, base_phase = recorder.training_thread_id, clock.push, clock.pop, clock.base_phase
        grad_enabled, compiling = torch.is_grad_enabled, torch_compat.is_dynamo_compiling()
        inside, loop_state, phase = self._inside, recorder.loop_state, self._call_phase
        phase_of, measure, size_wanted = phase.of, phase.measure, phase.size_wanted

        def timed(module: Any, original: Callable[..., Any], args: Any, kwargs: Any) -> Any:
            # First of all: torch.compile follows this function where it compiles what calls a module.
            if compiling():
                return original(*args, **kwargs)
            step = recorder.steps + 1
            # Inside a backward pass a forward pass is made anew (activation checkpointing): part of it.
            if get_ident() != thread[0] or inside[0] == step or live[0] == BACKWARD:
                return original(*args, **kwargs)
            try:
                usual = loop_state.phase is None and grad_enabled() and base_phase[0] != EVAL
                depth = push(FORWARD if usual else phase_of(module, args, kwargs))
                inside[0] = step
                if usual and size_wanted[0]:
                    measure(args, kwargs)
                if outermost is not None:
                    outermost(module)
            except Exception as error:  # noqa: BLE001 - the training must not notice
                recorder.signal_lost("forward", error)
                return original(*args, **kwargs)
            try:
                return original(*args, **kwargs)
            finally:
                inside[0] = 0
                pop(depth)

        return unseen_by_compiler(timed)


def _living(references: list[weakref.ref[nn.Module]]) -> list[nn.Module]:
    found = [reference() for reference in references]
    return [module for module in found if module is not None]


def optimizers_in_reach(frame: FrameType | None) -> list[torch.optim.Optimizer]:
    """Optimizers that the frames from `frame` outwards know by name, or as attributes of `self`."""
    found: list[torch.optim.Optimizer] = []
    for value in _values_in_reach(frame):
        inside = value if isinstance(value, list | tuple) and len(value) <= 8 else (value,)
        found.extend(item for item in inside if isinstance(item, torch.optim.Optimizer))
    return found


def leaves_in_reach(frame: FrameType | None) -> list[torch.Tensor]:
    """Tensors that gradients are kept for, known by name to the frames from `frame` outwards."""
    found = [v if isinstance(v, list | tuple) and len(v) <= LEAVES else (v,) for v in _values_in_reach(frame)]
    tensors = [item for inside in found for item in inside if isinstance(item, torch.Tensor)]
    return [tensor for tensor in tensors if tensor.is_leaf and tensor.requires_grad]


def in_reach(frame: FrameType | None) -> list[nn.Module]:
    """Modules that the frames from `frame` outwards know by name, or as attributes of `self`."""
    found: dict[int, nn.Module] = {}
    for value in _values_in_reach(frame):
        if isinstance(value, nn.Module):
            found[id(value)] = value
        elif isinstance(value, list | tuple | dict) and len(value) <= 8:
            inside = value.values() if isinstance(value, dict) else value
            found.update({id(v): v for v in inside if isinstance(v, nn.Module)})
    return list(found.values())


def _values_in_reach(frame: FrameType | None) -> Iterator[Any]:
    for _ in range(FRAMES):
        if frame is None:
            return
        names = names_in(frame)
        owned = getattr(names.get("self"), "__dict__", {})
        yield from [*list(names.values())[:NAMES], *list(owned.values())[:NAMES]]
        frame = frame.f_back
