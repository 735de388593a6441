"""Hardware with fast low precision, and float32 arithmetic takes most of the step.

What: the hardware has fast 16-bit units (Tensor Cores; AMX or AVX-512 bfloat16 on CPUs), autocast is off,
    and float32 forward and backward take half of a step, 10 ms at least. On a GPU its own time counts, and
    one that waits for launches is left alone. Information.
Why it costs: the fast units do nothing. Small models and, on CPUs, linear layers used for few rows are left
    alone: casting costs them more than it saves.
How to see it: `compute_share` and `hardware`; `tensor_activity_percent` where the GPU tells it.
How to fix it: autocast with bfloat16 around the forward pass and the loss.
How sure we are: that it is off is certain; what it brings shows when it is tried, so nothing is promised.

Columns: `forward_ms`, `backward_ms`; on a GPU `gpu_forward_ms`, `gpu_backward_ms`, `gpu_step_ms`,
    `gpu_tensor_activity`
Facts: precision: `autocast`; model: `dtypes`, `conv_layers`, `linear_rows`, `device`; env:
    `cpu_capabilities`; cuda: `capability`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.cpu_contention import sample_values
from monitor.diagnosis.signals.cuda_device import capability, compute, gpu, launch_starved
from monitor.diagnosis.signals.facts import fact, facts_of, numbers, on_gpu, ranks_where
from monitor.diagnosis.signals.robust import mean
from monitor.diagnosis.signals.training_steps import recent_steps

CODE = "amp_off"
NEEDS = frozenset({"steps", "model", "precision"})

#: CPU flags of native bfloat16 units, as /proc/cpuinfo names them (x86, and "bf16" on ARM). Without them
#: bfloat16 is emulated, and slower.
CPU_UNITS = frozenset({"amx_bf16", "avx512_bf16", "bf16"})

#: Compute capability of the first GPUs with Tensor Cores (TensorBoard's plug-in: 7).
TENSOR_CORES = 7

#: Share of the step, and milliseconds, that forward and backward must take (own; below, launching or
#: waiting is what costs, and casting only adds to it). On a GPU its own time counts, where it was told.
COMPUTE_SHARE = 0.5
COMPUTE_MS = 10.0

#: On a CPU every weight is cast anew in each step. That pays where a weight is used for many positions:
#: convolutions, or this many rows per linear layer (own: measurements.md#16-bit-types-on-cpus).
LAYERS = 2
ROWS = 512


def detect(window: Window) -> Finding | None:
    """Information only, and nothing promised: how much it brings shows when it is tried."""
    ranks = ranks_where(window, _would_gain)
    if not ranks:
        return None
    rank = ranks[0]
    on_device = any(on_gpu(model) for model in facts_of(rank, "model"))
    device = "cuda" if on_device else "cpu"
    own = gpu(window, rank) if on_device else None
    tensor = mean(sample_values(own[1], "gpu_tensor_activity")) if own else float("nan")
    return Finding(
        CODE, "info", "Mixed precision is off", "float32 compute on fast 16-bit hardware",
        {
            "compute_share": round(compute(rank).share, 3),
            "hardware": "Tensor Cores" if on_device else ", ".join(sorted(_units(rank))),
            **({"tensor_activity_percent": round(tensor, 1)} if tensor == tensor else {}),
        },
        "Try bfloat16 autocast around the forward pass and the loss (not around backward).",
        snippet=f'with torch.autocast("{device}", dtype=torch.bfloat16):\n    loss = loss_fn(model(x), y)',
        ranks=numbers(ranks),
    )  # fmt: skip


def _would_gain(rank: Rank) -> bool:
    if fact(rank, "precision").get("autocast"):
        return False
    taken = compute(rank)
    if (
        not recent_steps(rank).count
        or taken.share < COMPUTE_SHARE
        or taken.ms < COMPUTE_MS
        or launch_starved(rank)
    ):
        return False
    return any(_fast_in_half(rank, model) for model in facts_of(rank, "model") if _in_float32(model))


def _fast_in_half(rank: Rank, model: Mapping[str, Any]) -> bool:
    if on_gpu(model):
        version = capability(rank)
        return version is not None and version[0] >= TENSOR_CORES
    reused = int(model.get("conv_layers") or 0) >= LAYERS or int(model.get("linear_rows") or 0) >= ROWS
    return bool(_units(rank)) and reused


def _units(rank: Rank) -> set[str]:
    return set(fact(rank, "env").get("cpu_capabilities") or ()) & CPU_UNITS


def _in_float32(model: Mapping[str, Any]) -> bool:
    dtypes = model.get("dtypes")
    return isinstance(dtypes, Mapping) and max(dtypes, key=lambda kind: dtypes[kind], default="") == "float32"
