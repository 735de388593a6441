"""Mixed precision as it is really used: autocast, gradient scaler, clipping."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any

import torch
from torch.amp import GradScaler
from torch.nn.utils import clip_grad

from monitor.probe import torch_compat
from monitor.probe.adapters.plain import Boundary
from monitor.probe.batches import add
from monitor.probe.patches import Patches
from monitor.probe.precision import matmul_precision
from monitor.probe.recorder import OPT_STEPS, SCALE, SKIPPED, Recorder
from monitor.probe.source_location import location, user_frame


class Amp:
    """What was seen of mixed precision in this process.

    Attributes:
        facts: written as the fact "precision" whenever it changed.
        factor: a list of one: what a scaled loss was multiplied by; 1 without a scaler.
    """

    def __init__(self, recorder: Recorder, boundary: Boundary) -> None:
        self.recorder = recorder
        self.boundary = boundary
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
            "matmul_precision": matmul_precision(),
        }
        self.factor = [1.0]
        self._read_scale = torch_compat.reader(torch_compat.SCALER_SCALE)
        self._read_device = torch_compat.reader(torch_compat.SCALER_DEVICE)
        self._read_states = torch_compat.reader(torch_compat.SCALER_STATES)
        self._read_fused = torch_compat.reader(torch_compat.FUSED_SCALING)
        self._scaled = self._unscaled = False

    def install(self, patches: Patches) -> None:
        """See autocast and clipping; nothing reads a tensor that is not on the CPU."""
        patches.replace(*torch_compat.owner(torch_compat.AUTOCAST_ENTER), self._enter)
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            patches.replace(clip_grad, name, self._clip, also=[torch.nn.utils])
        self.recorder.watch(lambda: self.recorder.fact("precision", self.facts), "precision")

    def install_scaler(self, patches: Patches) -> None:
        """See gradient scalers: a step that one skips is a step, and a scaled loss is not the loss."""
        recorder = self.recorder
        recorder.on_lost("loss_scale", lambda: recorder.signal_lost("loss", recorder.lost["loss_scale"]))
        patches.replace(GradScaler, "scale", self._scale)
        patches.replace(GradScaler, "unscale_", self._unscale)
        patches.replace(GradScaler, "step", self._step)
        patches.replace(GradScaler, "update", self._update)

    def look_at_backward(self) -> None:
        """See whether autocast is still on where backward was called."""
        self._guarded("precision", self._look)

    def _look(self) -> None:
        facts = self.facts
        facts["backward_calls"] += 1
        device = facts["autocast_device"]
        if device is not None and torch.is_autocast_enabled(device):
            facts["backward_in_autocast"] += 1
            if facts["backward_location"] is None:
                facts["backward_location"] = location(user_frame(4))

    def _guarded(self, signal: str, note: Callable[..., None], *args: Any) -> None:
        try:
            if get_ident() == self.recorder.training_thread_id[0]:
                note(*args)
        except Exception as error:  # noqa: BLE001 - the training must not notice
            self.recorder.signal_lost(signal, error)

    def _enter(self, original: Callable[..., Any]) -> Callable[..., Any]:
        facts, compiling = self.facts, torch.compiler.is_compiling

        def __enter__(context: Any) -> Any:
            if not compiling() and facts["autocast_dtype"] is None:
                self._guarded("precision", self._entered, context)
            return original(context)

        return __enter__

    def _entered(self, context: Any) -> None:
        if torch_compat.reader(torch_compat.AUTOCAST_ENABLED)(context):
            dtype = torch_compat.reader(torch_compat.AUTOCAST_DTYPE)(context)
            self.facts.update(
                autocast=True,
                autocast_dtype=str(dtype).removeprefix("torch."),
                autocast_device=torch_compat.reader(torch_compat.AUTOCAST_DEVICE)(context),
                autocast_location=location(user_frame(4)),
            )

    def _scale(self, original: Callable[..., Any]) -> Callable[..., Any]:
        compiling = torch.compiler.is_compiling

        def scale(scaler: Any, outputs: Any) -> Any:
            result = original(scaler, outputs)
            if not compiling():
                self._guarded("loss_scale", self._was_scaled, scaler)
            return result

        return scale

    def _was_scaled(self, scaler: Any) -> None:
        if not scaler.is_enabled():
            return
        self._scaled, self._unscaled = True, False
        first = not self.facts["scaler"]
        if first:
            self.facts.update(scaler=True, scaler_location=location(user_frame(4)))
        current = self._read_scale(scaler)
        if current is not None and current.is_cpu:
            self.factor[0] = current.item()
            self.recorder.values[SCALE] = self.factor[0]
        if first:
            self.facts["scale_init"] = _initial_scale(scaler, self.recorder.values[SCALE])

    def _unscale(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def unscale_(scaler: Any, optimizer: Any) -> Any:
            self._guarded("precision", self._was_unscaled)
            return original(scaler, optimizer)

        return unscale_

    def _was_unscaled(self) -> None:
        self._unscaled = True

    def _step(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder, values, compiling = self.recorder, self.recorder.values, torch.compiler.is_compiling

        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if compiling():
                return original(scaler, optimizer, *args, **kwargs)
            self._guarded("amp_skipped", self._steps, scaler, optimizer)
            before = recorder.steps, values[OPT_STEPS]
            result = original(scaler, optimizer, *args, **kwargs)
            quiet = (recorder.steps, values[OPT_STEPS]) == before
            self._guarded("amp_skipped", self._stepped, scaler, optimizer, quiet)
            return result

        return step

    def _steps(self, scaler: Any, optimizer: Any) -> None:
        # A fused optimizer is called in any case, and looks itself: on a device the answer stays there.
        asked = self._skips_by_itself(optimizer)
        if scaler.is_enabled() and (not asked or self._read_device(scaler) == "cpu"):
            add(self.recorder.values, SKIPPED, 0.0)

    def _stepped(self, scaler: Any, optimizer: Any, quiet: bool) -> None:
        """Note whether the scaler skipped. `quiet`: no optimizer's hook fired meanwhile."""
        if not scaler.is_enabled():
            return
        if quiet:
            # One that skips never calls the optimizer: that it skipped is known without asking the device.
            self._skipped()
            try:
                self.boundary.optimizer(id(optimizer))
            except Exception as error:  # noqa: BLE001 - steps cannot be counted any more
                self.recorder.fail(error)
        elif self._found_inf(scaler, optimizer):
            self._skipped()

    def _skipped(self) -> None:
        add(self.recorder.values, SKIPPED, 1.0)
        self.facts["scaler_skips"] += 1

    def _skips_by_itself(self, optimizer: Any) -> bool:
        """Whether it is called with gradients that are not finite as well, and leaves the step out itself."""
        try:
            return bool(self._read_fused(optimizer))
        except AttributeError:
            return False
        except LookupError:
            return any(group.get("fused") for group in optimizer.param_groups)

    def _found_inf(self, scaler: Any, optimizer: Any) -> bool:
        """Whether a fused optimizer met a gradient that is not finite, as far as that lies on the CPU."""
        if not self._skips_by_itself(optimizer):
            return False
        state = self._read_states(scaler).get(id(optimizer), {})
        found = state.get("found_inf_per_device", {}).values()
        return any(flag.is_cpu and flag.item() > 0 for flag in found)

    def _update(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def update(scaler: Any, *args: Any, **kwargs: Any) -> Any:
            self._guarded("precision", self._updated)
            return original(scaler, *args, **kwargs)

        return update

    def _updated(self) -> None:
        self._scaled = self._unscaled = False
        self.factor[0] = 1.0

    def _clip(self, original: Callable[..., Any]) -> Callable[..., Any]:
        compiling = torch.compiler.is_compiling

        def clip(*args: Any, **kwargs: Any) -> Any:
            if not compiling():
                self._guarded("precision", self._clipped)
            return original(*args, **kwargs)

        return clip

    def _clipped(self) -> None:
        facts = self.facts
        facts["clips"] += 1
        scaled = self._scaled and not self._unscaled
        facts["clips_while_scaled"] += scaled
        if facts["clip_location"] is None or (scaled and facts["clips_while_scaled"] == 1):
            facts["clip_location"] = location(user_frame(4))
            self.recorder.event("clip", location=facts["clip_location"], scaled=scaled)


def _initial_scale(scaler: Any, first: float) -> float | None:
    """The scale that the scaler began with; where torch does not tell, that of the first loss, if known."""
    try:
        return float(torch_compat.reader(torch_compat.SCALER_INIT)(scaler))
    except (LookupError, AttributeError):
        return first if first == first else None
