"""What a framework's adapter tells the probe: the loop begins, a step ends, this is evaluation.

While a framework leads, nothing is guessed from loaders and optimizers. Whatever an adapter does
runs inside somebody else's loop, so it passes through here, where no exception gets out.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from threading import get_ident
from typing import Any

import torch
from torch import nn

from monitor.probe.adapters.plain import Boundary
from monitor.probe.batches import count
from monitor.probe.clock import DATA, EVAL, OTHER
from monitor.probe.forward import ModuleHooks
from monitor.probe.loader import LoaderHooks
from monitor.probe.loop_state import StepAuthority
from monitor.probe.method_hooks import LOOKS, MethodHooks
from monitor.probe.patches import Patches
from monitor.probe.recorder import (
    BACKWARDS,
    ELEMENTS,
    MICRO_BATCHES,
    OPT_STEPS,
    SAMPLES,
    SKIPPED,
    TOKENS,
    Recorder,
)

#: Parts of a model whose forward pass is timed where the model itself is not called (see `follow`).
PARTS = 64


class FrameworkHooks(MethodHooks):
    """One for each probe; adapters get it in `install`.

    Attributes:
        roots: the modules that are trained.
        feeds: the loaders.
        told: what hooks are told of the loop.
    """

    def __init__(
        self,
        recorder: Recorder,
        boundary: Boundary,
        module_hooks: ModuleHooks,
        loader_hooks: LoaderHooks,
        patches: Patches,
    ) -> None:
        super().__init__(recorder, patches)
        self.module_hooks, self.loader_hooks = module_hooks, loader_hooks
        self._boundary = boundary
        self.loop_state = recorder.loop_state
        self._sums_loss = False

    # -- whose loop it is

    @property
    def leads(self) -> bool:
        """Whether a framework's loop runs here that says where steps end."""
        return self.loop_state.authority is StepAuthority.FRAMEWORK and self.recorder.here

    def begins(self, *, counts: bool = True, sums_loss: bool = False) -> None:
        """From now on the framework trains, in this thread, and says where steps end.

        Batches that were fetched before are none that it trains on.

        Args:
            counts: batches are counted as they are fetched; False: the adapter calls `count`.
            sums_loss: the losses of one step's backward passes are shares of one loss.
        """
        recorder, loop_state = self.recorder, self.loop_state
        recorder.training_thread_id[0] = get_ident()
        recorder.clock.begin()
        self._boundary.flush()
        recorder.values[SAMPLES] = recorder.values[TOKENS] = recorder.values[ELEMENTS] = math.nan
        recorder.values[MICRO_BATCHES] = 0.0
        loop_state.authority, loop_state.phase = StepAuthority.FRAMEWORK, OTHER
        loop_state.counts, loop_state.sums_loss = counts, sums_loss
        self.looks = LOOKS
        recorder.clock.set_base_phase(OTHER)

    def ends(self) -> None:
        """The framework's loop is over: steps are found by the plain rules again."""
        loop_state = self.loop_state
        loop_state.authority, loop_state.sums_loss = StepAuthority.INFERRED, self._sums_loss
        loop_state.phase, loop_state.counts = None, True
        self._boundary.exhausted()
        if self.recorder.here:
            self.recorder.clock.set_base_phase(OTHER)

    def sum_losses(self, on: bool) -> None:
        """Whether the losses of one step's backward passes are shares of one loss, in loops by hand."""
        self._sums_loss = self.loop_state.sums_loss = on

    # -- steps

    def stepped(self) -> bool:
        """Whether an optimizer stepped in this step so far, or its scaler skipped that."""
        values = self.recorder.values
        return bool(values[OPT_STEPS]) or values[SKIPPED] == values[SKIPPED]

    def trained(self) -> bool:
        """Whether there was a backward pass in this step so far."""
        return bool(self.recorder.values[BACKWARDS])

    def step(self, epoch: float) -> None:
        """A step ends here, in this epoch (from 1)."""
        self.recorder.epoch = float(epoch)
        self.recorder.end_step()

    def plan(self, more: float) -> None:
        """The loop that begins now means to take so many steps more; what is no such number is left alone."""
        if math.isfinite(more) and more > 0:
            self.recorder.fact("plan", {"steps": self.recorder.steps + int(more)})

    def count(self, batch: Any) -> None:
        """Count the samples of a batch that is trained on now."""
        with contextlib.suppress(Exception):  # a batch of a kind of its own is not counted
            count(batch, self.recorder.values)
        self.recorder.values[MICRO_BATCHES] += 1

    def log(self, values: Mapping[str, Any]) -> None:
        """Numbers of the framework's own; what is no plain number is left alone: it may be on a device."""
        plain = {k: v for k, v in values.items() if isinstance(v, int | float) and not isinstance(v, bool)}
        self.recorder.user_metrics.log(plain)

    # -- phases

    def evaluates(self, on: bool) -> None:
        """Evaluation begins, or ends: time, batches and forward passes are none of the training's."""
        led = self.loop_state.authority is StepAuthority.FRAMEWORK
        self.loop_state.phase = EVAL if on else OTHER if led else None
        self.recorder.clock.set_base_phase(EVAL if on else OTHER)

    @contextlib.contextmanager
    def evaluation(self) -> Iterator[None]:
        """What runs inside is evaluation."""
        inner = not self.recorder.here or self.loop_state.phase == EVAL
        if not inner:
            self.evaluates(True)
        try:
            yield
        finally:
            if not inner:
                self.evaluates(False)

    def open_fetch(self, *_: Any) -> None:
        """The framework fetches a batch, from whatever it was given."""
        self._fetch = self.recorder.clock.push(EVAL if self.loop_state.phase == EVAL else DATA)

    def close_fetch(self, *_: Any) -> None:
        """It has the batch."""
        self.recorder.clock.pop(self._fetch)

    def handing_out(self, iterator: Iterator[Any]) -> Iterator[Any]:
        """The same batches, counted as they are handed out and not as they are fetched ahead."""
        loop_state, clock, recorder = self.loop_state, self.recorder.clock, self.recorder
        evaluates: bool | None = None
        try:
            while True:
                counts, loop_state.counts = loop_state.counts, False
                try:
                    batch = next(iterator)
                except StopIteration:
                    return
                finally:
                    loop_state.counts = counts
                if recorder.here:
                    if evaluates is None:
                        evaluates = loop_state.phase == EVAL or (loop_state.phase is None and self._guess())
                    if evaluates:
                        clock.set_base_phase(EVAL)
                    elif counts:
                        self.count(batch)
                yield batch
        finally:
            if evaluates and loop_state.phase is None and recorder.here:
                clock.set_base_phase(OTHER)

    def _guess(self) -> bool:
        quiet = not torch.is_grad_enabled() or not self.module_hooks.training()
        return quiet or self.recorder.clock.base_phase[0] == EVAL

    def follow(self, module: nn.Module) -> None:
        """Time this module's forward pass, and its parts', where a framework calls those alone."""
        self.module_hooks.add(module)
        for part in _parts(module)[:PARTS]:
            self.module_hooks.time(part)

    # -- methods of the framework

    def time_loop(self, owner: Any, name: str, begin: Callable[[Any], None] | None = None) -> None:
        """When this method of the class is left, in whatever way, the framework's loop is over.

        Args:
            begin: called with the object before it, if the loop begins there and not later.
        """
        begun, end = self.anywhere(begin or (lambda _: None)), self.anywhere(self.ends)

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def run(target: Any, /, *args: Any, **kwargs: Any) -> Any:
                begun(target)
                try:
                    return original(target, *args, **kwargs)
                finally:
                    end()

            return run

        self.wrap(owner, name, make)

    def time_evaluation(self, owner: Any, name: str) -> None:
        """Have a method of this class count as evaluation."""

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def evaluate(*args: Any, **kwargs: Any) -> Any:
                with self.evaluation():
                    return original(*args, **kwargs)

            return evaluate

        self.wrap(owner, name, make)


def _parts(module: nn.Module) -> list[nn.Module]:
    """Direct parts that have parameters and may be called; containers that never are, are opened."""
    found: list[nn.Module] = []
    for part in module.children():
        if isinstance(part, nn.ModuleList | nn.ModuleDict):
            found.extend(_parts(part))
        elif next(part.parameters(), None) is not None:
            found.append(part)
    return found
