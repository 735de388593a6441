"""Which of our figures stands beside which of somebody else's, and how far apart they may be. Pure."""

from __future__ import annotations

import math
import re
from typing import Any

from gpu_runs import Outcome
from gpu_table import Row

#: What the bare loop asks NVML for, and which of our columns it stands beside: (title, tolerance).
NVML = {
    "gpu_util": ("utilisation, %", 0.15),
    "gpu_memory_used_mb": ("memory in use, MB", 0.02),
    "gpu_power_w": ("power, W", 0.10),
    "gpu_power_limit_w": ("power limit, W", 0.01),
    "gpu_sm_clock_max_mhz": ("highest clock, MHz", 0.01),
    "gpu_temperature_c": ("temperature, °C", 0.05),
    "gpu_sm_clock_mhz": ("clock, MHz", 0.05),
}
UNITS = {"GiB": 2**30 / 1e6, "MiB": 2**20 / 1e6, "KiB": 2**10 / 1e6, "bytes": 1e-6}


def nvml_rows(out: Outcome) -> list[Row]:
    """What the agent sampled, beside the bare loop's."""
    return [
        Row(title, out.means.get(key), out.nvml.get(key), "bare NVML loop", tolerance)
        for key, (title, tolerance) in NVML.items()
    ]


def device_rows(out: Outcome) -> list[Row]:
    """Which device it was, its energy beside its power, and whether its Tensor Cores were seen at work."""
    agent, probe = (", ".join(sorted(out.uuids.get(who) or ())) or None for who in ("agent", "probe"))
    power = out.means.get("gpu_power_w")
    return [
        Row("device, by its UUID", agent, probe, "torch, in the script"),
        Row(
            "energy, J", out.sums.get("gpu_energy_j"), None if power is None else power * out.seconds,
            "mean power × time", 0.15,
        ),
        Row("Tensor Cores busy, %", out.means.get("gpu_tensor_activity"), 5.0, "the script", 0, "least"),
    ]  # fmt: skip


def copy_rows(out: Outcome) -> list[Row]:
    """What travelled to the device, beside the batches that the script copied."""
    theirs = ratio(out.told.get("copied_mb"), out.told.get("seconds"))
    return [Row("PCIe, to the GPU, MB/s", out.means.get("gpu_pcie_in_mb_per_s"), theirs, "the script", 0.25)]


def fits_row(out: Outcome, tried: dict[str, Any]) -> Row:
    """Whether the batch that should fit does: `tried` is a run's last line with it; empty where it died."""
    advised = next((f for f in out.report["findings"] if f["code"] == "memory_headroom"), None)
    size = advised and advised["evidence"].get("batch_size_that_fits")
    ours, other = ("fits", "fits" if tried else "does not fit") if size else (None, None)
    return Row(f"a batch of {size or '–'}", ours, other, "a run with it")


def memory_rows(out: Outcome) -> list[Row]:
    """What the probe read of the allocator, beside what the script was told by torch's public functions."""
    told, lasts = out.told, out.lasts
    rows = [
        Row(f"{title}, MB", lasts.get(f"cuda_{key}"), told.get(key), "torch.cuda, in the script", 0.02)
        for key, title in (
            ("allocated_mb", "allocated"), ("reserved_mb", "reserved"), ("peak_mb", "most allocated"),
            ("split_mb", "free in split blocks"),
        )
    ]  # fmt: skip
    ours = ratio(out.sums.get("cuda_allocs"), out.sums.get("cuda_steps"))
    theirs = ratio(told.get("allocations"), told.get("steps"))
    return [*rows, Row("allocations a step", ours, theirs, "torch.cuda, in the script", 0.1)]


def time_rows(out: Outcome, synchronised: dict[str, Any], profiled: dict[str, Any]) -> list[Row]:
    """The device's time for each phase, beside two other ways to measure it."""
    rows = [
        Row(
            f"GPU time of {phase}, ms", out.means.get(f"gpu_{phase}_ms"), synchronised.get(f"{phase}_ms"),
            "synchronised before and after", 0.15,
        )
        for phase in ("forward", "backward", "optimizer")
    ]  # fmt: skip
    compute = [out.means.get(f"gpu_{phase}_ms", math.nan) for phase in ("forward", "backward", "optimizer")]
    kernels = profiled.get("kernels_ms")
    return [
        *rows,
        Row("GPU time of all three, ms", sum(compute), kernels, "torch.profiler: kernels and copies", 0.15),
        Row("step, ms", out.report["step_ms"]["p50"], out.told.get("step_ms"), "clock of the script", 0.05),
    ]


def oom_rows(out: Outcome) -> list[Row]:
    """Who held the memory, beside what torch's message says."""
    told = next((event for event in out.events if event["kind"] == "oom"), {})
    held = sum(told["categories"].values()) if told.get("categories") else None
    wanted, allocated = (
        in_message(told, words) for words in ("Tried to allocate", "Of the allocated memory")
    )
    return [
        Row("asked for when memory ran out, MB", told.get("requested_mb"), wanted, "torch's message", 0.01),
        Row("held when memory ran out, MB", held, allocated, "torch's message", 0.1),
    ]


def in_message(told: dict[str, Any], words: str) -> float | None:
    """The size that stands behind these words in torch's message, in MB (1e6); None where there is none."""
    found = re.search(rf"{words} ([\d.]+) ?(\w+)", str(told.get("message", "")))
    return float(found[1]) * UNITS[found[2]] if found and found[2] in UNITS else None


def ratio(part: float | None, whole: float | None) -> float | None:
    """One by the other; None where either is not known."""
    return part / whole if part is not None and whole else None
