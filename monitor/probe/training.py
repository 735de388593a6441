"""Backward pass and optimizer step: what a step is made of, and what is known of its loss."""

from __future__ import annotations

import gc
import os
import sys
import time
import weakref
from collections import Counter
from collections.abc import Callable
from threading import get_ident
from types import FrameType
from typing import Any

import torch
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from monitor.probe import torch_compat
from monitor.probe.adapters.plain import Boundary
from monitor.probe.amp import Amp
from monitor.probe.clock import BACKWARD, BEFORE, CHECKPOINT, OPTIMIZER
from monitor.probe.ddp import Ddp
from monitor.probe.forward import ModuleHooks, optimizers_in_reach
from monitor.probe.module_registry import optimizers
from monitor.probe.patches import Patches
from monitor.probe.recorder import BACKWARDS, GC, LOSS, OPT_STEPS, Recorder
from monitor.probe.source_location import location, user_frame
from monitor.probe.weight_gradients import timed_grad
from monitor.tape.layout import LIVE_PHASE

#: Backward passes looked at closely for an autocast around them; then every LOOK_EVERY one.
LOOK_FIRST = 32
LOOK_EVERY = 64
#: Optimizers described in the run's facts.
OPTIMIZERS = 8
#: Optimizers whose modules are looked for: one for each parameter, in loops that step inside backward.
DISCOVERIES = 64


def install_backward(recorder: Recorder, patches: Patches, boundary: Boundary, amp: Amp, ddp: Ddp) -> None:
    """Replace `torch.autograd.backward`, which `Tensor.backward` calls, and time `torch.autograd.grad`."""
    exchanged, replicas = ddp.after_backward, ddp.watched
    clock, training_thread_id, adopt = recorder.clock, recorder.training_thread_id, recorder.adopt
    loop_state, late = recorder.loop_state, recorder.loop_state.late_optimizers
    push, pop, compiling, begin = clock.push, clock.pop, torch_compat.is_dynamo_compiling(), recorder.begin
    outside = recorder.outside
    after = _after_backward(recorder, boundary, amp)

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def backward(*args: Any, **kwargs: Any) -> Any:
            if (
                compiling()
                or loop_state.in_backward
                or (get_ident() != training_thread_id[0] and not adopt())
            ):
                return original(*args, **kwargs)
            if outside[0]:
                begin()
            loop_state.in_backward, opened = True, push(BACKWARD)
            try:
                return original(*args, **kwargs)
            finally:
                loop_state.in_backward = False
                pop(opened)
                if replicas:
                    exchanged()
                try:
                    after(args[0] if args else kwargs.get("tensors"))
                    while late:
                        boundary.optimizer(late.pop(0))
                except Exception as error:  # noqa: BLE001 - steps cannot be counted any more
                    recorder.fail(error)

        return backward

    patches.replace(*torch_compat.owner(torch_compat.BACKWARD), make)
    patches.replace(torch.autograd, "grad", timed_grad(recorder, boundary))


def _after_backward(recorder: Recorder, boundary: Boundary, amp: Amp) -> Callable[[Any], None]:
    values, loop_state, on_backward, calls, finite = (
        recorder.values,
        recorder.loop_state,
        boundary.backward,
        0,
        True,
    )
    Tensor, factor, look = torch.Tensor, amp.factor, amp.look_at_backward  # noqa: N806

    def after(tensors: Any) -> None:
        nonlocal calls, finite
        values[BACKWARDS] += 1
        on_backward()
        try:
            if type(tensors) is Tensor and tensors.is_cpu and tensors.numel() == 1:
                loss = tensors.item()
                if type(loss) is float:
                    loss /= factor[0]
                    before = values[LOSS]
                    values[LOSS] = before + loss if loop_state.sums_loss and before == before else loss
                    # A tape's NaN says "not measured", so a loss that is none is told as an event.
                    if (loss - loss == 0.0) != finite:
                        finite = not finite
                        _tell_turn(recorder, finite, loss)
        except Exception as error:  # noqa: BLE001 - the loss is lost, and nothing else
            recorder.signal_lost("loss", error)
        calls += 1
        if calls < LOOK_FIRST or not calls % LOOK_EVERY:
            look()

    return after


def _tell_turn(recorder: Recorder, finite: bool, loss: float) -> None:
    if finite:
        recorder.event("loss_finite")
        return
    value = "nan" if loss != loss else "inf"
    recorder.event("nan_loss", value=value, location=location(user_frame(2)))


def install_optimizer(
    recorder: Recorder, patches: Patches, boundary: Boundary, known: Optimizers
) -> Callable[[Optimizer, Any, Any], None]:
    """Hook every optimizer's step; what runs inside one (a parent's, a wrapped optimizer's) is part of it.

    Returns:
        The hook that runs before each step, for the one that runs already.
    """
    training_thread_id, adopt, values = recorder.training_thread_id, recorder.adopt, recorder.values
    begin, outside, step_file = recorder.begin, recorder.outside, _step_file()
    push, pop, on_optimizer = recorder.clock.push, recorder.clock.pop, boundary.optimizer
    compiling, seen, loop_state = torch_compat.is_dynamo_compiling(), known.seen, recorder.loop_state
    opened = nested = began_in = 0

    def before(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        nonlocal opened, nested, began_in
        if compiling() or (get_ident() != training_thread_id[0] and not adopt(optimizes=True)):
            return
        if outside[0]:
            begin()
        if loop_state.in_optimizer:
            if _inside_another(step_file) if step_file else began_in == recorder.steps:
                nested += loop_state.in_optimizer == id(optimizer)
                return
            pop(opened)  # an exception ended that one: its post-hook never came
        loop_state.in_optimizer, nested, opened = id(optimizer), 0, push(OPTIMIZER)
        began_in = recorder.steps

    def after(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        nonlocal nested
        if compiling() or loop_state.in_optimizer != id(optimizer) or get_ident() != training_thread_id[0]:
            return
        if nested:
            nested -= 1
            return
        loop_state.in_optimizer = 0
        pop(opened)
        try:
            values[OPT_STEPS] += 1
            if id(optimizer) not in seen:
                known.see(optimizer, user_frame(2))
            (loop_state.late_optimizers.append if loop_state.in_backward else on_optimizer)(id(optimizer))
        except Exception as error:  # noqa: BLE001 - the training must not notice
            recorder.fail(error)

    patches.on_undo(register_optimizer_step_pre_hook(before).remove)
    patches.on_undo(register_optimizer_step_post_hook(after).remove)
    return before


def _step_file() -> str:
    """The file of torch's wrapper around every `step`; "" where that cannot be told from the stack."""
    try:
        return str(torch_compat.value(torch_compat.OPTIMIZER_WRAPPER).__code__.co_filename)
    except (LookupError, AttributeError):
        return ""


def _inside_another(step_file: str) -> bool:
    """Whether two of torch's wrappers around `step` are on the stack: an optimizer runs inside another."""
    frame, wrappers = sys._getframe(2), 0
    while frame is not None and wrappers < 2:
        code = frame.f_code
        wrappers += code.co_name == "wrapper" and code.co_filename == step_file
        frame = frame.f_back  # type: ignore[assignment]
    return wrappers == 2


class Optimizers:
    """The optimizers that were looked at, as long as they live.

    Attributes:
        seen: their identities.
    """

    def __init__(self, recorder: Recorder, module_hooks: ModuleHooks) -> None:
        self.seen: set[int] = set()
        self._references: dict[int, weakref.ref[Optimizer]] = {}
        self._recorder = recorder
        self._roots = module_hooks
        self._count = 0

    def alive(self) -> list[Optimizer]:
        """Those that still live."""
        found = [reference() for reference in self._references.values()]
        return [optimizer for optimizer in found if optimizer is not None]

    def see(self, optimizer: Optimizer, frame: FrameType | None) -> None:
        """As `look`; where that fails only facts are lost."""
        try:
            self.look(optimizer, frame)
        except Exception as error:  # noqa: BLE001 - the step is counted all the same
            self._recorder.signal_lost("model", error)

    def look(self, optimizer: Optimizer, frame: FrameType | None) -> None:
        """Find what it trains, and describe it. `frame` is the user's, that called its step."""
        number = id(optimizer)
        self.seen.add(number)
        others = {id(other) for other in (*optimizers(), *optimizers_in_reach(frame))}
        self._recorder.loop_state.several_optimizers = len(others | self.seen) > 1
        self._references[number] = weakref.ref(optimizer, lambda _: self._forget(number))
        self._count += 1
        if self._count <= DISCOVERIES:
            self._roots.discover(optimizer, frame)
        if self._count <= OPTIMIZERS:
            facts = {**optimizer_facts(optimizer), "location": location(frame)}
            self._recorder.fact(f"optimizer/{self._count}", facts)

    def _forget(self, number: int) -> None:
        self.seen.discard(number)
        self._references.pop(number, None)


def optimizer_facts(optimizer: Optimizer) -> dict[str, Any]:
    """An optimizer's class, plain hyper-parameters, and how many elements of which type it trains."""
    plain = {k: v for k, v in optimizer.defaults.items() if isinstance(v, bool | int | float | str)}
    dtypes: Counter[str] = Counter()
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            dtypes[str(parameter.dtype).removeprefix("torch.")] += parameter.numel()
    return {
        **plain,
        "class": type(optimizer).__name__,
        "parameters": sum(dtypes.values()),
        "param_dtypes": dict(dtypes),
    }


def install_saving(recorder: Recorder, patches: Patches) -> None:
    """Time `torch.save`, and the `fsync` that follows one in the same step."""
    clock, training_thread_id, now = recorder.clock, recorder.training_thread_id, time.perf_counter_ns
    compiling, saved_in = torch.compiler.is_compiling, -1

    def make_save(original: Callable[..., Any]) -> Callable[..., Any]:
        def save(*args: Any, **kwargs: Any) -> Any:
            nonlocal saved_in
            if compiling() or get_ident() != training_thread_id[0] or recorder.loop_state.saving:
                return original(*args, **kwargs)
            began, opened = now(), clock.push(CHECKPOINT)
            try:
                return original(*args, **kwargs)
            finally:
                clock.pop(opened)
                saved_in = recorder.steps
                try:
                    took_ms = round((now() - began) / 1e6, 3)
                    recorder.event("save", ms=took_ms, location=location(user_frame(2)))
                except Exception as error:  # noqa: BLE001 - the training must not notice
                    recorder.signal_lost("checkpoint", error)

        return save

    def make_fsync(original: Callable[..., Any]) -> Callable[..., Any]:
        def fsync(fd: Any) -> Any:
            if get_ident() != training_thread_id[0] or saved_in != recorder.steps:
                return original(fd)
            opened = clock.push(CHECKPOINT)
            try:
                return original(fd)
            finally:
                clock.pop(opened)

        return fsync

    patches.replace(torch, "save", make_save, also=[torch.serialization])
    patches.replace(os, "fsync", make_fsync)


def install_gc(recorder: Recorder, patches: Patches) -> None:
    """Count the time that Python's garbage collector takes out of a step."""
    training_thread_id, values, now = recorder.training_thread_id, recorder.values, time.perf_counter_ns
    began, live = 0, recorder.tape.live

    def collected(phase: str, info: dict[str, int]) -> None:
        nonlocal began
        if get_ident() != training_thread_id[0]:
            return
        if phase == "start":
            # What is collected before the first step is none of its time.
            began = now() if live[LIVE_PHASE] != BEFORE else 0
        elif began:
            values[GC] += now() - began
            began = 0

    def undo() -> None:
        if collected in gc.callbacks:
            gc.callbacks.remove(collected)

    gc.callbacks.append(collected)
    patches.on_undo(undo)
