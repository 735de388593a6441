"""An Ampere GPU or newer multiplies float32 matrices in full precision.

What: a GPU with compute capability 8 or more, float32 matrix products at "highest" precision, no autocast,
    and a model most of whose weights lie in linear layers, computing for half of the step and 10 ms or
    more. Information.
Why it costs: TensorFloat-32 runs on the Tensor Cores, several times faster.
How to see it: `compute_share`, `compute_capability`; `torch.get_float32_matmul_precision()` says `highest`.
How to fix it: `torch.set_float32_matmul_precision("high")`. It keeps 10 bits of mantissa in the factors:
    fine for most training, not for everything.
How sure we are: the setting is certain; what it brings shows when it is tried. Convolutions use
    TensorFloat-32 anyway and are not counted. Not run on a real GPU yet.

Columns: as `amp_off`
Facts: cuda: `capability`, `matmul_precision`; model: `matmuls`, `dtypes`, `device`; precision: `autocast`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.cuda_device import capability, compute, cuda, launch_starved
from monitor.diagnosis.signals.facts import fact, facts_of, numbers, on_gpu, ranks_where

CODE = "tf32_off"
NEEDS = frozenset({"cuda", "model", "steps"})

#: Compute capability of the first GPUs with it (torch).
TF32 = 8

#: Share of the step, and milliseconds, that forward and backward must take (own, as for amp_off).
COMPUTE_SHARE = 0.5
COMPUTE_MS = 10.0

#: Share of the parameters in layers that multiply matrices (own; convolutions use it anyway).
MATMUL_SHARE = 0.5


def detect(window: Window) -> Finding | None:
    """Information: it changes the last bits of results, so it is the user's to decide."""
    ranks = ranks_where(window, _would_gain)
    if not ranks:
        return None
    taken = compute(ranks[0])
    return Finding(
        CODE, "info", "TensorFloat-32 is off", 'float32 matrices multiplied at "highest" precision', {
            "compute_share": round(taken.share, 3),
            "compute_capability": ".".join(map(str, capability(ranks[0]) or ())),
        },
        "Let float32 matrix products use the Tensor Cores: several times faster, with 10 bits of mantissa in "
        "the factors, which is enough for most training. Mixed precision gains more.",
        snippet='torch.set_float32_matmul_precision("high")', ranks=numbers(ranks),
    )  # fmt: skip


def _would_gain(rank: Rank) -> bool:
    version, taken = capability(rank), compute(rank)
    if version is None or version[0] < TF32 or cuda(rank).get("matmul_precision") != "highest":
        return False
    if fact(rank, "precision").get("autocast") or launch_starved(rank):
        return False
    heavy = taken.share >= COMPUTE_SHARE and taken.ms >= COMPUTE_MS
    return heavy and any(_multiplies(model) for model in facts_of(rank, "model"))


def _multiplies(model: Mapping[str, Any]) -> bool:
    """Whether most of a float32 model on a GPU lies in layers that multiply matrices."""
    layers = [one for one in model.get("matmuls") or () if isinstance(one, Mapping)]
    elements = sum(int(one.get("elements") or 0) for one in layers if one.get("kind") == "linear")
    dtypes, parameters = model.get("dtypes"), int(model.get("parameters") or 0)
    if not on_gpu(model) or not isinstance(dtypes, Mapping) or not parameters:
        return False
    usual = max(dtypes, key=lambda kind: dtypes[kind], default="")
    return usual == "float32" and elements >= MATMUL_SHARE * parameters
