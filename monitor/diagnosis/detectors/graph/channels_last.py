"""Convolutions that would run faster with channels last in memory. Advice, to be tried.

What: a convolutional model in contiguous format whose forward and backward take half of the step.
    Information.
Why it costs: convolution and pooling kernels reorder their inputs; how much that is depends on the layers.
How to see it: `conv_layers`.
How to fix it: model and inputs `.to(memory_format=torch.channels_last)`.
How sure we are: advice to be tried: 1.3 times on one of our scripts, nothing on plain stacks of 3×3
    convolutions.

Columns: `forward_ms`, `backward_ms`
Facts: model: `conv_layers`, `conv_channels_last`, `device`; precision
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.facts import facts_of, half_autocast, numbers, on_gpu, ranks_where
from monitor.diagnosis.signals.training_steps import phase_ms, recent_steps, share

CODE = "channels_last"
NEEDS = frozenset({"backward", "forward", "model", "steps"})

#: Fewer convolutions than this do not dominate a model (own).
LAYERS = 2

#: Share of the step, and milliseconds, that forward and backward must take (own: where the step is
#: elsewhere, or launch-bound, the memory format changes nothing).
COMPUTE_SHARE = 0.5
COMPUTE_MS = 5.0


def detect(window: Window) -> Finding | None:
    """Information only: how much it brings depends on the layers (1.3 times in channels_last_miss, next to
    nothing in plain 3×3 stacks)."""
    ranks = ranks_where(window, lambda rank: _model(rank) is not None and _computes(rank))
    if not ranks:
        return None
    model = _model(ranks[0])
    assert model is not None
    return Finding(
        CODE, "info", "Convolutions in contiguous format", "contiguous convolutions",
        {"model": model.get("class"), "conv_layers": model.get("conv_layers")},
        "Try channels_last: convolution and pooling kernels work on it directly, instead of reordering.",
        snippet="model = model.to(memory_format=torch.channels_last)\n"
        "x = x.to(memory_format=torch.channels_last)",
        ranks=numbers(ranks), location=model.get("location"),
    )  # fmt: skip


def _model(rank: Rank) -> Mapping[str, Any] | None:
    """The first convolutional model in contiguous format; on GPUs only with 16-bit compute, where it pays."""
    for model in facts_of(rank, "model"):
        contiguous = not model.get("conv_channels_last") and not model.get("channels_last")
        pays = not on_gpu(model) or half_autocast(rank) is not None
        if int(model.get("conv_layers") or 0) >= LAYERS and contiguous and pays:
            return model
    return None


def _computes(rank: Rank) -> bool:
    part = recent_steps(rank)
    compute = phase_ms(part, "forward") + phase_ms(part, "backward")
    return share(compute, part) >= COMPUTE_SHARE and bool(part.count) and float(compute.mean()) >= COMPUTE_MS
