"""Backward pass and optimizer step: what a step is made of, and what is known of its loss."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from threading import get_ident
from typing import Any

import torch
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from monitor.probe.adapters.plain import Boundary
from monitor.probe.amp import Amp
from monitor.probe.clock import BACKWARD, CHECKPOINT, OPTIMIZER
from monitor.probe.forward import Roots
from monitor.probe.patches import Patches
from monitor.probe.place import location, user_frame
from monitor.probe.recorder import BACKWARDS, GC, LOSS, OPT_STEPS, Recorder

#: Backward passes looked at closely for an autocast around them; then every LOOK_EVERY one.
LOOK_FIRST = 32
LOOK_EVERY = 64
#: Optimizers described in the run's facts.
OPTIMIZERS = 8


def install_backward(recorder: Recorder, patches: Patches, boundary: Boundary, amp: Amp) -> None:
    """Replace `torch.autograd.backward`, which `Tensor.backward` calls."""
    clock, gate, values = recorder.clock, recorder.gate, recorder.values
    push, pop, on_backward, compiling = clock.push, clock.pop, boundary.backward, torch.compiler.is_compiling
    depth, calls, first = 0, 0, True
    Tensor, factor, look = torch.Tensor, amp.factor, amp.look_at_backward  # noqa: N806

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def backward(*args: Any, **kwargs: Any) -> Any:
            nonlocal depth, calls, first
            if compiling() or depth or (get_ident() != gate[0] and not (first and recorder.adopt())):
                return original(*args, **kwargs)
            if first:
                first = False
                clock.begin()
            depth, opened = 1, push(BACKWARD)
            try:
                return original(*args, **kwargs)
            finally:
                depth = 0
                pop(opened)
                try:
                    values[BACKWARDS] += 1
                    on_backward()
                    tensors: Any = args[0] if args else kwargs.get("tensors")
                    if type(tensors) is Tensor and tensors.is_cpu and tensors.numel() == 1:
                        values[LOSS] = tensors.item() / factor[0]
                    calls += 1
                    if calls < LOOK_FIRST or not calls % LOOK_EVERY:
                        look()
                except Exception as error:  # noqa: BLE001 - the training must not notice
                    recorder.fail(error)

        return backward

    patches.replace(torch.autograd, "backward", make)


def install_optimizer(recorder: Recorder, patches: Patches, boundary: Boundary, roots: Roots) -> None:
    """Hook every optimizer's step. `super().step()` and closures run inside the outermost one."""
    clock, gate, values = recorder.clock, recorder.gate, recorder.values
    push, pop, on_optimizer = clock.push, clock.pop, boundary.optimizer
    known: set[int] = set()
    running, opened, nested, first = 0, 0, 0, True

    def before(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        nonlocal running, opened, nested, first
        if get_ident() != gate[0] and not (first and recorder.adopt()):
            return
        if first:
            first = False
            clock.begin()
        if running == id(optimizer):
            nested += 1
            return
        running, nested, opened = id(optimizer), 0, push(OPTIMIZER)

    def after(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        nonlocal running, nested
        if get_ident() != gate[0] or running != id(optimizer):
            return
        if nested:
            nested -= 1
            return
        running = 0
        pop(opened)
        try:
            values[OPT_STEPS] += 1
            if id(optimizer) not in known and len(known) < OPTIMIZERS:
                known.add(id(optimizer))
                roots.discover(optimizer, user_frame(2))
                recorder.fact(f"optimizer/{len(known)}", optimizer_facts(optimizer))
            on_optimizer(id(optimizer))
        except Exception as error:  # noqa: BLE001 - the training must not notice
            recorder.fail(error)

    patches.on_undo(register_optimizer_step_pre_hook(before).remove)
    patches.on_undo(register_optimizer_step_post_hook(after).remove)


def optimizer_facts(optimizer: Optimizer) -> dict[str, Any]:
    """An optimizer's class and plain hyper-parameters."""
    plain = {k: v for k, v in optimizer.defaults.items() if isinstance(v, bool | int | float | str)}
    count = sum(p.numel() for group in optimizer.param_groups for p in group["params"])
    return {"class": type(optimizer).__name__, "parameters": count, **plain}


def install_saving(recorder: Recorder, patches: Patches) -> None:
    """Time `torch.save`, and the `fsync` that follows one in the same step."""
    clock, gate = recorder.clock, recorder.gate
    saved_in = -1

    def make_save(original: Callable[..., Any]) -> Callable[..., Any]:
        def save(*args: Any, **kwargs: Any) -> Any:
            nonlocal saved_in
            if get_ident() != gate[0]:
                return original(*args, **kwargs)
            began, opened = time.perf_counter_ns(), clock.push(CHECKPOINT)
            try:
                return original(*args, **kwargs)
            finally:
                clock.pop(opened)
                saved_in = recorder.steps
                took_ms = (time.perf_counter_ns() - began) / 1e6
                recorder.event("save", ms=round(took_ms, 3), location=location(user_frame(2)))

        return save

    def make_fsync(original: Callable[..., Any]) -> Callable[..., Any]:
        def fsync(fd: Any) -> Any:
            if get_ident() != gate[0] or saved_in != recorder.steps:
                return original(fd)
            opened = clock.push(CHECKPOINT)
            try:
                return original(fd)
            finally:
                clock.pop(opened)

        return fsync

    patches.replace(torch, "save", make_save)
    patches.replace(os, "fsync", make_fsync)


def install_gc(recorder: Recorder, patches: Patches) -> None:
    """Count the time that Python's garbage collector takes out of a step."""
    gate, values, now = recorder.gate, recorder.values, time.perf_counter_ns
    began = 0

    def collected(phase: str, info: dict[str, int]) -> None:
        nonlocal began
        if get_ident() != gate[0]:
            return
        if phase == "start":
            began = now()
        elif began:
            values[GC] += now() - began
            began = 0

    def undo() -> None:
        if collected in gc.callbacks:
            gc.callbacks.remove(collected)

    gc.callbacks.append(collected)
    patches.on_undo(undo)
