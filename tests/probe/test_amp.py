"""Mixed precision as it is really used: autocast, scaler, clipping, and no difference made by looking."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from loops import BATCHES, error, loader, net, sgd
from torch import nn
from torch.amp import GradScaler
from watching import See, Watch, alike

#: What a loop does between forward pass and step: `(model, loss, optimizer, scaler) -> None`.
Update = Callable[[nn.Module, torch.Tensor, torch.optim.Optimizer, GradScaler], None]


def plain(model: nn.Module, loss: torch.Tensor, optimizer: Any, scaler: GradScaler) -> None:
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()


def clipped_unscaled(model: nn.Module, loss: torch.Tensor, optimizer: Any, scaler: GradScaler) -> None:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()


def clipped_scaled(model: nn.Module, loss: torch.Tensor, optimizer: Any, scaler: GradScaler) -> None:
    scaler.scale(loss).backward()
    nn.utils.clip_grad_value_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()


def watched(
    folder: Path,
    update: Update,
    *,
    dtype: torch.dtype | None = torch.float16,
    inside: bool = False,
    scale: bool = True,
) -> Watch:
    """A loop with these habits, watched, the result compared with the bare one."""

    def loop(see: See) -> Any:
        model = net()
        see(model)
        optimizer, scaler, losses = sgd(model), GradScaler("cpu", init_scale=8.0, enabled=scale), []
        for batch in loader():
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = error(model, batch)
                if inside:
                    update(model, loss, optimizer, scaler)
            if not inside:
                update(model, loss, optimizer, scaler)
            losses.append(loss.item())
        return model, losses

    watch = alike(loop, folder)
    assert watch.steps == BATCHES
    return watch


def precision(watch: Watch) -> dict[str, Any]:
    found: dict[str, Any] = watch.facts()["precision"]
    return found


def test_autocast_and_scaler_are_facts(tmp_path: Path) -> None:
    """Type, device and line of the autocast; line and first scale of the scaler; the scale in each step."""
    watch = watched(tmp_path, plain)
    found = precision(watch)
    assert (found["autocast"], found["autocast_dtype"], found["autocast_device"]) == (True, "float16", "cpu")
    assert (found["scaler"], found["scale_init"], found["scaler_skips"]) == (True, 8.0, 0)
    assert found["autocast_location"].startswith("tests/probe/test_amp.py:")
    assert found["scaler_location"].startswith("tests/probe/test_amp.py:")
    assert watch.column("loss_scale") == [8.0] * BATCHES
    assert watch.column("amp_skipped") == [0.0] * BATCHES


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_what_is_switched_off_is_no_fact(dtype: torch.dtype | None, tmp_path: Path) -> None:
    """A disabled autocast and a disabled scaler count as none; what is not measured is unknown."""
    watch = watched(tmp_path, plain, dtype=dtype, scale=False)
    found = precision(watch)
    assert (found["autocast"], found["scaler"]) == (dtype is not None, False)
    assert all(value != value for value in watch.column("loss_scale") + watch.column("amp_skipped"))


@pytest.mark.parametrize("inside", [True, False])
def test_backward_inside_autocast_is_seen(inside: bool, tmp_path: Path) -> None:
    """How many backward passes ran under autocast, and the line of the first."""
    found = precision(watched(tmp_path, plain, inside=inside))
    assert found["backward_calls"] == BATCHES
    assert found["backward_in_autocast"] == (BATCHES if inside else 0)
    assert (found["backward_location"] is not None) == inside


@pytest.mark.parametrize(("update", "scaled"), [(clipped_unscaled, 0), (clipped_scaled, BATCHES)])
def test_clipping_scaled_gradients_is_seen(update: Update, scaled: int, tmp_path: Path) -> None:
    """Clips, those of gradients that were still scaled, and the line."""
    watch = watched(tmp_path, update)
    found = precision(watch)
    assert (found["clips"], found["clips_while_scaled"]) == (BATCHES, scaled)
    assert found["clip_location"].startswith("tests/probe/test_amp.py:")
    (event,) = watch.kinds("clip")
    assert (event["location"], event["scaled"]) == (found["clip_location"], scaled > 0)


def test_two_optimizers_and_one_scaler(tmp_path: Path) -> None:
    """A GAN under a scaler: one step an iteration, both optimizer steps counted."""

    def loop(see: See) -> Any:
        maker, critic = net(6), net()
        see(maker, critic)
        making, judging, scaler = sgd(maker), sgd(critic), GradScaler("cpu", init_scale=4.0)
        for features, _ in loader():
            judging.zero_grad()
            making.zero_grad()
            scaler.scale(critic(maker(features)).mean()).backward()
            scaler.step(judging)
            scaler.step(making)
            scaler.update()
        return maker, critic

    watch = alike(loop, tmp_path)
    assert watch.column("optimizer_steps") == [2.0] * BATCHES


def test_autocast_as_a_decorator_and_nested(tmp_path: Path) -> None:
    """All forms of autocast are one class, and give what they gave."""

    def loop(see: See) -> Any:
        model = net()
        see(model)
        optimizer = sgd(model)
        compute = torch.autocast("cpu", torch.bfloat16)(error)
        for batch in loader():
            optimizer.zero_grad()
            loss = compute(model, batch)
            with torch.autocast("cpu", torch.bfloat16), torch.autocast("cpu", enabled=False):
                loss = loss + error(model, batch)
            loss.backward()
            optimizer.step()
        return model

    assert precision(alike(loop, tmp_path))["autocast_dtype"] == "bfloat16"
