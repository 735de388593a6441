"""Half-precision matrix products with dimensions that are no multiples of 8.

What: linear layers whose sizes are no multiples of 8 hold a quarter of the weights or more, under 16-bit
    autocast. A warning on GPUs with Tensor Cores, information elsewhere.
Why it costs: matrix units work in tiles; what does not fill one is computed by slower kernels or padded.
How to see it: `largest` names the layer.
How to fix it: round sizes up; pad a vocabulary or class count.
How sure we are: the sizes are certain, the cost depends on the library.

Facts: model: `unaligned` [[name, in, out]], `parameters`, `linear_weights`, `device`; cuda: `capability`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monitor.diagnosis.core.finding import Finding, Severity
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.cuda_device import capability
from monitor.diagnosis.signals.facts import facts_of, half_autocast, numbers, on_gpu, ranks_where

CODE = "amp_unaligned_shapes"
NEEDS = frozenset({"autocast", "model"})

#: Matrix units want multiples of this many 16-bit elements (torch and NVIDIA's mixed-precision guide).
UNITS = 8

#: Compute capability of the first GPUs with Tensor Cores (TensorBoard's plug-in: 7).
TENSOR_CORES = 7

#: Share of the linear layers' weights in such layers (own: a classifier with 10 classes is a small part).
SHARE = 0.25


def detect(window: Window) -> Finding | None:
    """A warning where Tensor Cores lie idle for it; on CPUs it costs less and is information."""
    ranks = ranks_where(window, lambda rank: half_autocast(rank) is not None and _worst(rank) is not None)
    if not ranks:
        return None
    model = _worst(ranks[0])
    assert model is not None
    layers = sorted(_unaligned(model), key=_weight, reverse=True)
    old = (capability(ranks[0]) or (TENSOR_CORES, 0))[0] < TENSOR_CORES
    severity: Severity = "warning" if on_gpu(model) and not old else "info"
    name, inputs, outputs = layers[0][:3]
    return Finding(
        CODE, severity, "Layer sizes that matrix units dislike", "dimensions not multiples of 8",
        {
            "layers": len(layers), "largest": f"{name}: {inputs} → {outputs}",
            "weight_share": round(_share(model), 3),
        },
        message(
            "Round layer sizes up to multiples of {units} (a vocabulary or class count can be padded).",
            units=UNITS,
        ),
        snippet=f"nn.Linear({_up(inputs)}, {_up(outputs)})  # now {inputs}, {outputs}",
        ranks=numbers(ranks),
    )  # fmt: skip


def _worst(rank: Rank) -> Mapping[str, Any] | None:
    models = [model for model in facts_of(rank, "model") if _share(model) >= SHARE]
    return max(models, key=_share, default=None)


def _unaligned(model: Mapping[str, Any]) -> list[Any]:
    return [layer for layer in model.get("unaligned") or () if len(layer) >= 3]


def _share(model: Mapping[str, Any]) -> float:
    """Share of the weights in unaligned layers, 0 to 1."""
    total = model.get("linear_weights") or model.get("parameters") or 0
    return min(sum(map(_weight, _unaligned(model))) / total, 1.0) if total else 0.0


def _weight(layer: Any) -> int:
    return int(layer[1]) * int(layer[2])


def _up(size: int) -> int:
    return -(-int(size) // UNITS) * UNITS
