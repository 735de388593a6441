"""`/metrics`: the live runs in Prometheus' text format, for those who keep fleet-wide history there.

Prometheus proves itself with the viewer's token (`authorization: {credentials: …}` in its
configuration). What was not measured is left out, never written as zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from flask import Blueprint, Response

from .ingest import Ingest
from .live import Live
from .source import Source

#: The format's own media type.
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: Runs in these states are told of.
LIVE = frozenset({"running", "stalled"})

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

Sample = tuple[str, str, str, Mapping[str, str], float]


def blueprint(source: Source, live: Live, ingest: Ingest) -> Blueprint:
    """The route `/metrics`."""
    routes = Blueprint("metrics", __name__)

    @routes.get("/metrics")
    def metrics() -> Response:
        ids = [str(run["run"]) for run in source.runs() if run.get("status") in LIVE]
        states = [state for state in map(source.snapshot, ids) if state is not None]
        samples = [sample for state in states for sample in _of_run(state)]
        samples.append(("viewers", "gauge", "Browsers connected.", {}, float(live.viewers)))
        samples.append(("agents", "gauge", "Agents connected.", {}, float(ingest.agents)))
        samples.append(("batches_total", "counter", "Batches taken.", {}, float(ingest.batches)))
        return Response(text(samples), mimetype=None, content_type=MEDIA_TYPE)

    return routes


def _gauges(
    tiles: Mapping[str, Any], wanted: Mapping[str, tuple[str, str, float]], labels: Mapping[str, str]
) -> Iterator[Sample]:
    for key, (name, told_as, factor) in wanted.items():
        value = tiles.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield name, "gauge", told_as, labels, value * factor


def _of_run(state: Mapping[str, Any]) -> Iterator[Sample]:
    labels = {"run": str(state.get("run")), "name": str(state.get("name"))}
    told = {**labels, "status": str(state.get("status"))}
    yield "run_info", "gauge", "A live run; its status is a label.", told, 1.0
    if isinstance(state.get("steps"), int):
        yield "steps_total", "counter", "Training steps completed.", labels, float(state["steps"])
    tiles = state.get("tiles") or {}
    yield from _gauges(tiles, _TILES, labels)
    for gpu in tiles.get("gpu") or ():
        yield from _gauges(gpu, _GPU_TILES, {**labels, "gpu": str(gpu.get("gpu"))})
    for severity in ("info", "warning", "critical"):
        count = sum(
            finding.get("severity") == severity and finding.get("cleared_at_s") is None
            for finding in state.get("findings") or ()
        )
        yield "findings", "gauge", "Findings that last.", {**labels, "severity": severity}, float(count)


def text(samples: list[Sample]) -> str:
    """The exposition: each metric's HELP and TYPE once, its samples below."""
    lines: list[str] = []
    for name in dict.fromkeys(sample[0] for sample in samples):
        same = [sample for sample in samples if sample[0] == name]
        lines += [f"# HELP torchvitals_{name} {same[0][2]}", f"# TYPE torchvitals_{name} {same[0][1]}"]
        lines += [f"torchvitals_{name}{_labels(labels)} {_number(value)}" for *_, labels, value in same]
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    def quoted(value: str) -> str:
        return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    inner = ",".join(f'{key}="{quoted(value)}"' for key, value in labels.items())
    return f"{{{inner}}}" if inner else ""


def _number(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return repr(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)
