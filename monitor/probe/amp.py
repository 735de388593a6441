"""Mixed precision as it is really used: autocast, gradient scaler, clipping."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any

import torch
from torch.amp import GradScaler
from torch.amp.autocast_mode import autocast
from torch.nn.utils import clip_grad

from monitor.probe.patches import Patches
from monitor.probe.place import location, user_frame
from monitor.probe.recorder import OPT_STEPS, SCALE, SKIPPED, Recorder


class Amp:
    """What was seen of mixed precision in this process.

    Attributes:
        facts: written as the fact "precision" whenever it changed.
        factor: a list of one: what a scaled loss was multiplied by; 1 without a scaler.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.facts: dict[str, Any] = {
            "autocast": False,
            "autocast_dtype": None,
            "autocast_device": None,
            "autocast_location": None,
            "backward_calls": 0,
            "backward_in_autocast": 0,
            "backward_location": None,
            "scaler": False,
            "scaler_location": None,
            "scale_init": None,
            "scaler_skips": 0,
            "clips": 0,
            "clips_while_scaled": 0,
            "clip_location": None,
            "matmul_precision": torch.get_float32_matmul_precision(),
        }
        self.factor = [1.0]
        self._scaled = self._unscaled = False

    def install(self, patches: Patches) -> None:
        """Patch the classes; nothing reads a tensor that is not on the CPU."""
        patches.replace(autocast, "__enter__", self._enter)
        patches.replace(GradScaler, "scale", self._scale)
        patches.replace(GradScaler, "unscale_", self._unscale)
        patches.replace(GradScaler, "step", self._step)
        patches.replace(GradScaler, "update", self._update)
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            make = self._clip
            patches.replace(clip_grad, name, make)
            patches.replace(torch.nn.utils, name, make)
        self.recorder.watchers.append(lambda: self.recorder.fact("precision", self.facts))

    def look_at_backward(self) -> None:
        """See whether autocast is still on where backward was called."""
        facts = self.facts
        facts["backward_calls"] += 1
        device = facts["autocast_device"]
        if device is not None and torch.is_autocast_enabled(device):
            facts["backward_in_autocast"] += 1
            if facts["backward_location"] is None:
                facts["backward_location"] = location(user_frame(3))

    def _here(self) -> bool:
        return get_ident() == self.recorder.gate[0]

    def _guarded(self, note: Callable[..., None], *args: Any) -> None:
        try:
            if self._here():
                note(*args)
        except Exception as error:  # noqa: BLE001 - the training must not notice
            self.recorder.fail(error)

    def _enter(self, original: Callable[..., Any]) -> Callable[..., Any]:
        facts = self.facts

        def __enter__(context: Any) -> Any:
            if facts["autocast_dtype"] is None and not torch.compiler.is_compiling():
                self._guarded(self._entered, context)
            return original(context)

        return __enter__

    def _entered(self, context: Any) -> None:
        if getattr(context, "_enabled", False):
            self.facts.update(
                autocast=True,
                autocast_dtype=str(context.fast_dtype).removeprefix("torch."),
                autocast_device=context.device,
                autocast_location=location(user_frame(4)),
            )

    def _scale(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def scale(scaler: Any, outputs: Any) -> Any:
            result = original(scaler, outputs)
            self._guarded(self._was_scaled, scaler)
            return result

        return scale

    def _was_scaled(self, scaler: Any) -> None:
        if not scaler.is_enabled():
            return
        self._scaled, self._unscaled = True, False
        if not self.facts["scaler"]:
            place = location(user_frame(4))
            self.facts.update(scaler=True, scaler_location=place, scale_init=scaler._init_scale)
        current = scaler._scale
        if current is not None and current.is_cpu:
            self.factor[0] = current.item()
            self.recorder.values[SCALE] = self.factor[0]

    def _unscale(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def unscale_(scaler: Any, optimizer: Any) -> Any:
            self._unscaled = True
            return original(scaler, optimizer)

        return unscale_

    def _step(self, original: Callable[..., Any]) -> Callable[..., Any]:
        values = self.recorder.values

        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            before = values[OPT_STEPS]
            result = original(scaler, optimizer, *args, **kwargs)
            self._guarded(self._stepped, scaler, optimizer, before)
            return result

        return step

    def _stepped(self, scaler: Any, optimizer: Any, before: float) -> None:
        if not scaler.is_enabled():
            return
        values = self.recorder.values
        found = getattr(optimizer, "found_inf", None)
        fused = found is not None and found.is_cpu and found.item() > 0
        # A scaler that skips never calls the optimizer, so its hook did not fire: no synchronise needed.
        if values[OPT_STEPS] == before or fused:
            skipped = values[SKIPPED]
            values[SKIPPED] = 1.0 if skipped != skipped else skipped + 1.0
            self.facts["scaler_skips"] += 1
        elif values[SKIPPED] != values[SKIPPED]:
            values[SKIPPED] = 0.0

    def _update(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def update(scaler: Any, *args: Any, **kwargs: Any) -> Any:
            self._scaled = self._unscaled = False
            self.factor[0] = 1.0
            return original(scaler, *args, **kwargs)

        return update

    def _clip(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def clip(*args: Any, **kwargs: Any) -> Any:
            self._guarded(self._clipped)
            return original(*args, **kwargs)

        clip.__name__ = getattr(original, "__name__", "clip")
        return clip

    def _clipped(self) -> None:
        facts = self.facts
        facts["clips"] += 1
        scaled = self._scaled and not self._unscaled
        facts["clips_while_scaled"] += scaled
        if facts["clip_location"] is None or (scaled and facts["clips_while_scaled"] == 1):
            facts["clip_location"] = location(user_frame(4))
            self.recorder.event("clip", location=facts["clip_location"], scaled=scaled)
