"""Synthetic runs on a GPU, told in a line: `on_gpu(rows={"cuda_retries": 1})` is healthy but for retries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from windows import env, loader, rank, samples, window

from monitor.diagnosis.core.window import Rank, Window

#: A step of 50 ms, of which the host launches for 20 and waits for the device at the end.
STEP = {"data": 1.0, "forward": 8.0, "backward": 10.0, "optimizer": 1.0, "other": 30.0}
STEPS = 400
#: The probe's rows of a healthy run of 20 s on a device of 80 GB: 20 steps each.
ROW = {
    "cuda_steps": 20,
    "cuda_allocated_mb": 20_000,
    "cuda_reserved_mb": 66_000,
    "cuda_split_mb": 3_000,
    "cuda_peak_mb": 62_000,
    "cuda_segments": 300,
    "cuda_retries": 0,
    "cuda_ooms": 0,
    "cuda_device_allocs": 0,
    "cuda_device_frees": 0,
    "cuda_allocs": 40_000,
    "cuda_small_allocs": 12_000,
    "cuda_empty_cache": 0,
    "cuda_syncs": 0,
    "cuda_sync_ms": 0,
    "gpu_timed": 18,
    "gpu_step_ms": 50,
    "gpu_forward_ms": 17,
    "gpu_backward_ms": 30,
    "gpu_optimizer_ms": 2,
    "gpu_gap_ms": 0.6,
    "gpu_starved_ms": 1,
    "gpu_caught_up": 0,
}
#: The driver's samples of it. The power cap is set, as on a healthy, fully loaded device.
SAMPLE = {
    "gpu_util": 97,
    "gpu_sm_activity": 85,
    "gpu_tensor_activity": 40,
    "gpu_memory_used_mb": 66_600,
    "gpu_memory_total_mb": 80_000,
    "gpu_own_memory_mb": 66_600,
    "gpu_others_memory_mb": 0,
    "gpu_others_util": 0,
    "gpu_power_w": 690,
    "gpu_power_limit_w": 700,
    "gpu_temperature_c": 68,
    "gpu_sm_clock_mhz": 1_700,
    "gpu_sm_clock_max_mhz": 1_980,
    "gpu_throttle_bits": 4,
    "gpu_ecc_corrected": 2,
    "gpu_ecc_uncorrected": 0,
}
CUDA = {
    "device": 0,
    "name": "Big GPU",
    "capability": [9, 0],
    "total_mb": 80_000,
    "uuid": "GPU-aa-00",
    "backend": "native",
    "expandable_segments": False,
    "matmul_precision": "high",
    "cudnn_tf32": True,
    "h2d_watched": False,
}
MODEL = {
    "class": "Net",
    "device": "cuda:0",
    "parameters": 1_000_000,
    "dtypes": {"float32": 1_000_000},
    "matmuls": [{"name": "fc", "kind": "linear", "elements": 900_000}],
}
AUTOCAST = {"autocast": True, "autocast_dtype": "bfloat16"}
BATCH = {"mb": 20.0, "device": "cpu", "pinned": True, "pageable_mb": 0.0, "looks": 4}


def gpu_rank(
    number: int = 0,
    *,
    rows: Mapping[str, Any] | None = None,
    cuda: Mapping[str, Any] | None = None,
    facts: Mapping[str, Any] | None = None,
    **more: Any,
) -> Rank:
    """A rank on a device.

    Args:
        rows: metrics of origin "cuda" that differ from ROW, as numbers or arrays of 20.
        cuda: facts of its device that differ from CUDA.
        facts: other facts that differ from a healthy run's.
        more: as `windows.rank` takes it.
    """
    known = {
        **env(),
        **loader(pin_memory=True),
        "cuda": {**CUDA, **(cuda or {})},
        "model/1": MODEL,
        "precision": AUTOCAST,
        "batch/1": BATCH,
        **(facts or {}),
    }
    more = {**STEP, "samples": 32, "backward_calls": 1, **more}
    made = rank(STEPS, number, facts=known, **more)
    return replace(made, cuda=samples(21, 1.0, **{**ROW, **(rows or {})}))


def on_gpu(
    *ranks: Rank,
    gpu: Mapping[str, Any] | None = None,
    gpus: Mapping[str, Any] | None = None,
    listed: Sequence[Mapping[str, Any]] = (),
    events: Sequence[Mapping[str, Any]] = (),
    hosts: Mapping[str, Any] | None = None,
    **more: Any,
) -> Window:
    """A run on GPUs.

    Args:
        ranks: made from `more`, as `gpu_rank` takes it, where none is given.
        gpu: metrics of origin "gpu" of device 0 that differ from SAMPLE.
        gpus: samples of further devices by name.
        listed: what the agent says of devices, besides device 0.
    """
    made = window(*(ranks or (gpu_rank(**more),)), events=events, hosts=hosts)
    own = {"gpu": "0", "index": 0, "uuid": "GPU-aa-00", "name": "Big GPU", "others": []}
    first = next((one for one in listed if one.get("gpu") == "0"), own)
    rest = [one for one in listed if one.get("gpu") != "0"]
    return replace(
        made,
        gpus={"here/0": samples(21, 1.0, **{**SAMPLE, **(gpu or {})}), **(gpus or {})},
        host_facts={"here": {"gpus": [first, *rest]}},
    )


def half(value: float, usual: float = 0.0) -> np.ndarray:
    """A column of 21 that changes from `usual` to `value` midway."""
    return np.where(np.arange(21) < 10, usual, value)
