"""Hardware with fast low precision, and float32 arithmetic takes most of the step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monitor.diagnosis.facts import fact, facts_of, numbers, on_gpu, ranks_where
from monitor.diagnosis.finding import Finding
from monitor.diagnosis.steady import phase_ms, share, steady
from monitor.diagnosis.window import Rank, Window

CODE = "amp_off"
NEEDS = frozenset({"steps", "model", "precision"})

#: CPU flags of native bfloat16 units, as /proc/cpuinfo names them (x86, and "bf16" on ARM). Without them
#: bfloat16 is emulated, and slower.
CPU_UNITS = frozenset({"amx_bf16", "avx512_bf16", "bf16"})

#: Compute capability of the first GPUs with Tensor Cores (TensorBoard's plug-in: 7).
TENSOR_CORES = 7

#: Share of the step, and milliseconds, that forward and backward must take (own; below, launching or
#: waiting is what costs, and casting only adds to it).
COMPUTE_SHARE = 0.5
COMPUTE_MS = 10.0

#: On a CPU every weight is cast anew in each step. That pays where a weight is used for many positions:
#: convolutions, or this many rows per linear layer (own: at 32 rows an MLP took 35 instead of 16 ms).
LAYERS = 2
ROWS = 512


def detect(window: Window) -> Finding | None:
    """Information only, and nothing promised: how much it brings shows when it is tried."""
    ranks = ranks_where(window, _would_gain)
    if not ranks:
        return None
    rank = ranks[0]
    gpu = any(on_gpu(model) for model in facts_of(rank, "model"))
    device = "cuda" if gpu else "cpu"
    part = steady(rank)
    return Finding(
        CODE, "info", "Mixed precision is off", "float32 compute on fast 16-bit hardware",
        {
            "compute_share": round(share(_compute_ms(part), part), 3),
            "hardware": "Tensor Cores" if gpu else ", ".join(sorted(_units(rank))),
        },
        "Try bfloat16 autocast around the forward pass and the loss (not around backward).",
        snippet=f'with torch.autocast("{device}", dtype=torch.bfloat16):\n    loss = loss_fn(model(x), y)',
        ranks=numbers(ranks),
    )  # fmt: skip


def _would_gain(rank: Rank) -> bool:
    if fact(rank, "precision").get("autocast"):
        return False
    part = steady(rank)
    compute = _compute_ms(part)
    if not part.count or share(compute, part) < COMPUTE_SHARE or float(compute.mean()) < COMPUTE_MS:
        return False
    return any(_fast_in_half(rank, model) for model in facts_of(rank, "model") if _in_float32(model))


def _compute_ms(part: Rank) -> Any:
    return phase_ms(part, "forward") + phase_ms(part, "backward")


def _fast_in_half(rank: Rank, model: Mapping[str, Any]) -> bool:
    if on_gpu(model):
        capability = fact(rank, "env").get("device_capability") or (0,)
        return int(capability[0]) >= TENSOR_CORES
    reused = int(model.get("conv_layers") or 0) >= LAYERS or int(model.get("linear_rows") or 0) >= ROWS
    return bool(_units(rank)) and reused


def _units(rank: Rank) -> set[str]:
    return set(fact(rank, "env").get("cpu_capabilities") or ()) & CPU_UNITS


def _in_float32(model: Mapping[str, Any]) -> bool:
    dtypes = model.get("dtypes")
    return isinstance(dtypes, Mapping) and max(dtypes, key=lambda kind: dtypes[kind], default="") == "float32"
