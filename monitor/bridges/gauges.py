"""Gauges: a live run as a few named numbers in base units, for those who keep history of a whole fleet.

`/metrics` (Prometheus) and the OTLP push tell the same names. What was not measured is left out, never zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from monitor.diagnosis.core.finding import SEVERITIES

#: Tile of an update -> (metric, help, factor to Prometheus' base unit).
_TILES = {
    "steps_per_s": ("steps_per_second", "Training steps per second.", 1.0),
    "samples_per_s": ("samples_per_second", "Samples per second.", 1.0),
    "tokens_per_s": ("tokens_per_second", "Tokens per second.", 1.0),
    "data_share": ("data_share_ratio", "Share of wall time spent waiting for data.", 1.0),
    "step_p50_ms": ("step_p50_seconds", "Median step time.", 1e-3),
    "step_p95_ms": ("step_p95_seconds", "95th percentile of step time.", 1e-3),
    "step_p99_ms": ("step_p99_seconds", "99th percentile of step time.", 1e-3),
    "rss_mb": ("resident_memory_bytes", "Memory of the training processes.", 1e6),
    "tree_pss_mb": ("tree_memory_bytes", "Memory of the training processes and their children.", 1e6),
    "main_cpu": ("main_cpu_cores", "CPU used by the training processes.", 1.0),
    "workers_cpu": ("workers_cpu_cores", "CPU used by loader workers.", 1.0),
    "loss": ("loss", "Newest loss.", 1.0),
}

#: Likewise, of each GPU.
_GPU_TILES = {
    "gpu_util": ("gpu_utilisation_ratio", "Share of time in which the GPU ran anything.", 1e-2),
    "gpu_sm_activity": ("gpu_sm_activity_ratio", "Share of the multiprocessors that were busy.", 1e-2),
    "gpu_tensor_activity": ("gpu_tensor_activity_ratio", "Share of time the Tensor Cores were busy.", 1e-2),
    "gpu_memory_used_mb": ("gpu_memory_used_bytes", "GPU memory in use.", 1e6),
    "gpu_memory_total_mb": ("gpu_memory_bytes", "GPU memory there is.", 1e6),
    "gpu_power_w": ("gpu_power_watts", "Power the GPU draws.", 1.0),
    "gpu_temperature_c": ("gpu_temperature_celsius", "Temperature of the GPU.", 1.0),
    "gpu_ecc_uncorrected": ("gpu_uncorrected_errors", "Memory errors since the driver was loaded.", 1.0),
}

#: (name without its prefix, "gauge" or "counter", help, labels, value)
Sample = tuple[str, str, str, Mapping[str, str], float]


def _gauges(
    tiles: Mapping[str, Any], wanted: Mapping[str, tuple[str, str, float]], labels: Mapping[str, str]
) -> Iterator[Sample]:
    for key, (name, help_text, factor) in wanted.items():
        value = tiles.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield name, "gauge", help_text, labels, value * factor


def of_run(state: Mapping[str, Any]) -> Iterator[Sample]:
    """Samples of one run, from its present state (an update as viewers get it)."""
    labels = {"run": str(state.get("run")), "name": str(state.get("name"))}
    info = {**labels, "status": str(state.get("status"))}
    yield "run_info", "gauge", "A live run; its status is a label.", info, 1.0
    if isinstance(state.get("steps"), int):
        yield "steps_total", "counter", "Training steps completed.", labels, float(state["steps"])
    tiles = state.get("tiles") or {}
    yield from _gauges(tiles, _TILES, labels)
    for gpu in tiles.get("gpu") or ():
        yield from _gauges(gpu, _GPU_TILES, {**labels, "gpu": str(gpu.get("gpu"))})
    for severity in SEVERITIES:
        count = sum(
            finding.get("severity") == severity and finding.get("cleared_at_s") is None
            for finding in state.get("findings") or ()
        )
        yield "findings", "gauge", "Findings that last.", {**labels, "severity": severity}, float(count)
