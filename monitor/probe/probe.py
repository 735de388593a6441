"""All hooks of one training process, put in and taken out together."""

from __future__ import annotations

import contextlib
import os
import traceback
import weakref
from collections.abc import Iterable
from typing import Any

from torch import nn

from monitor.probe import facts
from monitor.probe.adapters import Adapter, find, transfers
from monitor.probe.adapters.plain import Boundary, plain
from monitor.probe.amp import Amp
from monitor.probe.clock import OTHER
from monitor.probe.collectives import install_collectives
from monitor.probe.construction import watch_construction
from monitor.probe.cuda import Cuda
from monitor.probe.cuda.device import Device
from monitor.probe.ddp import Ddp
from monitor.probe.forward import ModuleHooks
from monitor.probe.framework_entry import watch_entries
from monitor.probe.framework_hooks import FrameworkHooks
from monitor.probe.loader import LoaderHooks
from monitor.probe.loop_state import StepAuthority
from monitor.probe.patches import Patches, hide_from_compiler
from monitor.probe.recorder import BACKWARDS, OPT_STEPS, Recorder
from monitor.probe.source_location import foreign, short, user_frame
from monitor.probe.training import (
    Optimizers,
    install_backward,
    install_gc,
    install_optimizer,
    install_saving,
)

_alive: weakref.WeakSet[Probe] = weakref.WeakSet()


def _forked() -> None:
    """In a forked child nothing of ours runs: a loader's worker is no rank."""
    for probe in list(_alive):
        probe.recorder.training_thread_id[0] = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Probe:
    """What runs inside the training process.

    Args:
        recorder: writes to tape and journal.
        modules: the modules that are trained, where the user named them; others are found.
        device: the CUDA device, where it is another one than torch's.
    """

    def __init__(
        self, recorder: Recorder, modules: Iterable[nn.Module] = (), device: Device | None = None
    ) -> None:
        self.recorder = recorder
        self.patches = Patches()
        self.boundary: Boundary = plain(recorder)
        self.module_hooks = ModuleHooks(recorder, lambda: self.loader_hooks.evaluated())
        self.loader_hooks = LoaderHooks(recorder, self.boundary, self.module_hooks.training)
        self.amp = Amp(recorder, self.boundary)
        self.ddp = Ddp(recorder, self.module_hooks)
        self.optimizers = Optimizers(recorder, self.module_hooks)
        self.cuda = Cuda(recorder, self.patches, self.loader_hooks.looks, transfers, device)
        self._targets: weakref.WeakSet[Any] = weakref.WeakSet()
        self.hooks = FrameworkHooks(
            recorder, self.boundary, self.module_hooks, self.loader_hooks, self.patches
        )
        self._described: weakref.WeakKeyDictionary[nn.Module, int] = weakref.WeakKeyDictionary()
        self._install(modules)
        _alive.add(self)

    def _install(self, modules: Iterable[nn.Module]) -> None:
        recorder, patches = self.recorder, self.patches
        hide_from_compiler("monitor.probe", "monitor.tape", "monitor.batch")
        try:
            self.module_hooks.install(patches, modules)
            recorder.hook("loader", patches, watch_construction)
            recorder.hook("data", patches, self.loader_hooks.install)
            recorder.hook("backward", patches, self._install_backward)
            self._optimizer_begins = install_optimizer(recorder, patches, self.boundary, self.optimizers)
            recorder.hook("checkpoint", patches, lambda part: install_saving(recorder, part))
            install_gc(recorder, patches)
            recorder.hook("precision", patches, self.amp.install)
            self.amp.install_scaler(patches)
            recorder.hook("comm", patches, self._install_communication)
            facts.watch(recorder)
            watch_entries(patches, self._hand, self._left)
            recorder.watch(self._describe, "model")
            recorder.watch(self.cuda.look, "cuda")
        except BaseException:
            patches.restore()
            raise
        with contextlib.suppress(Exception):  # asked again after the first step, which then says why
            self.cuda.look()

    def _install_backward(self, patches: Patches) -> None:
        install_backward(self.recorder, patches, self.boundary, self.amp, self.ddp)

    def _install_communication(self, patches: Patches) -> None:
        self.ddp.install(patches)
        install_collectives(self.recorder, patches)

    def attach(self, adapter: Adapter, target: Any) -> None:
        """Have a framework's adapter say where steps end, once for each target."""
        if target not in self._targets:
            for module in adapter.modules(target):
                self.module_hooks.add(module)
            adapter.install(target, self.hooks)
            self._targets.add(target)

    def _hand(self, adapter: Adapter, target: Any) -> bool:
        """A framework begins to train with a target that nobody named. Whether its adapter took it."""
        if target in self._targets or self.hooks.leads or not self.recorder.training_thread_id[0]:
            return False
        try:
            find(target)  # one that is too old is left to the plain rules
            self.attach(adapter, target)
            enter = getattr(adapter, "enter", None)
            if enter is not None:
                enter(target, self.hooks)
        except TypeError:
            return False
        except Exception as error:  # noqa: BLE001 - the training must not notice
            self.recorder.fail(error)
            return False
        return True

    def _left(self) -> None:
        if self.hooks.leads:
            self.hooks.ends()

    def step(self) -> None:
        """The user says that a step ends here. With nothing trained in it, this is a loop of inference."""
        recorder = self.recorder
        inference = not recorder.values[BACKWARDS] and not recorder.values[OPT_STEPS]
        if inference and not recorder.steps and not self.module_hooks.modules:
            self.module_hooks.look(user_frame(2))
        if inference and not recorder.steps:
            recorder.loop_state.phase = OTHER
        elif not inference and recorder.loop_state.authority is not StepAuthority.FRAMEWORK:
            recorder.loop_state.phase = None
        recorder.clock.begin()
        self.boundary.step()

    def optimizer_begins(self, optimizer: Any, args: Any, kwargs: Any, release: Any) -> None:
        """The step of an optimizer has begun that attached us. `release` is the hook's handle, if any."""
        self._optimizer_begins(optimizer, args, kwargs)
        if release is not None:
            self.patches.on_undo(release.remove)

    def _describe(self) -> None:
        for module in self.module_hooks.modules:
            if module not in self._described:
                # The number of one that is gone is free again: in a notebook the newest takes its place.
                taken = set(self._described.values())
                number = next(n for n in range(1, len(taken) + 2) if n not in taken)
                self._described[module] = number
                self.recorder.fact(f"model/{number}", facts.model_facts(module))

    def failed(self, kind: type[BaseException], error: BaseException) -> None:
        """An exception that nobody caught ends the program: tell of it, and of the memory if that ran out."""
        failure = describe_failure(kind, error)
        self.recorder.event("exception", **failure)
        with contextlib.suppress(Exception):  # the exception itself is what must get out
            self.cuda.failed(error, failure["location"], self.module_hooks.modules, self.optimizers.alive())

    def pause(self) -> None:
        """A notebook's cell is over: its last step has ended, and the time until the next is no step's."""
        if self.recorder.here:
            self.boundary.flush()
            self.recorder.pause()

    def finish(self, **end: Any) -> None:
        """The last step is recorded, facts are written once more, and everything is put back."""
        recorder = self.recorder
        try:
            if recorder.here:
                self.boundary.flush()
                recorder.refresh()
                recorder.user_metrics.flush()
                self.cuda.finish()
            recorder.event("end", **end)
        finally:
            recorder.training_thread_id[0] = 0
            self.patches.restore()
            _alive.discard(self)
            recorder.journal.close()
            recorder.tape.close()


def describe_failure(kind: type[BaseException], error: BaseException) -> dict[str, Any]:
    """An uncaught exception as an event, with the innermost line of the user's own code."""
    frames = [f for f, _ in traceback.walk_tb(error.__traceback__) if not foreign(f.f_code.co_filename)]
    lines = dict(traceback.walk_tb(error.__traceback__))
    place = f"{short(frames[-1].f_code.co_filename)}:{lines[frames[-1]]}" if frames else None
    text = "".join(traceback.format_exception(kind, error, error.__traceback__))
    return {"type": kind.__name__, "message": str(error)[:2000], "traceback": text[-8000:], "location": place}
