"""METRICS: every number we know, declared once.

The tape's slots, the store's columns and the live rows derive from this table, and the table travels with the
run (`describe()`), so that a newer page can read an older run. `panels.py` has the charts of them.

A *stream* is a table of rows in time order, one row a step or a sample, each with its time `t_s`
(seconds since the run began) and metric columns. Streams are named after what they watch:

| stream | one row is | metrics of origin |
| --- | --- | --- |
| `rank/R` | one training step of rank R; the row number is the step number, from 0 | `step` |
| `proc/R` | one sample of rank R's process and its children | `proc` |
| `host/NAME` | one sample of a host | `host` |
| `gpu/NAME/I` | one sample of GPU I on host NAME | `gpu` |
| `cuda/R` | about one second of rank R on its CUDA device, told by the probe | `cuda` |
| `brief/NAME` | in runs of many ranks, about a second of one rank on host NAME: means of a step | `brief` |
| `user/R` | numbers of the user's own, logged by rank R; each run has its own names | `user` |
| `run` | about one second of the whole run, all ranks together; made by the pipeline | `run` |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

SCHEMA_VERSION = 1

Origin = Literal["step", "proc", "host", "gpu", "cuda", "brief", "run", "user"]
Combine = Literal["mean", "sum", "max", "min", "last"]
Tape = Literal["ns", "f64"]


@dataclass(frozen=True)
class Metric:
    """One number.

    Attributes:
        key: column name; the unit is in it.
        unit: as printed beside the number; "" for a plain count or ratio.
        title: a few words for a chart's legend.
        origin: what kind of stream carries it.
        ranks: how the values of several ranks, hosts or devices become one; see `combine`.
        buckets: how the values of several rows become one point.
        tape: how the tape holds it; "ns" is written in whole nanoseconds and read in milliseconds.
            None when it does not pass through the tape.
    """

    key: str
    unit: str
    title: str
    origin: Origin
    ranks: Combine = "mean"
    buckets: Combine = "mean"
    tape: Tape | None = None


#: A brief's step number is held in two columns, since float32 counts to 16.7 million only.
BRIEF_STEP_BASE = 65_536

#: Phases a training step is made of, in the order in which they are stacked. Every nanosecond
#: between two step ends belongs to exactly one of them; what nothing claims is `other`.
PHASES = ("data", "h2d", "forward", "backward", "optimizer", "comm", "checkpoint", "eval", "other")

_PHASE_METRICS = tuple(Metric(f"{phase}_ms", "ms", phase, "step", "mean", "mean", "ns") for phase in PHASES)

METRICS: tuple[Metric, ...] = (
    # step: written by the probe, one value a step
    *_PHASE_METRICS,
    Metric("samples", "", "samples", "step", "sum", "sum", "f64"),
    Metric("tokens", "", "tokens", "step", "sum", "sum", "f64"),
    Metric("loss", "", "loss", "step", "mean", "mean", "f64"),
    Metric("backward_calls", "", "backward passes", "step", "mean", "mean", "f64"),
    Metric("optimizer_steps", "", "optimizer steps", "step", "mean", "sum", "f64"),
    Metric("amp_skipped", "", "optimizer steps skipped by the scaler", "step", "max", "sum", "f64"),
    Metric("loss_scale", "", "loss scale", "step", "min", "min", "f64"),
    Metric("gc_ms", "ms", "garbage collection", "step", "mean", "sum", "ns"),
    Metric("epoch", "", "epoch", "step", "max", "max", "f64"),
    Metric("data_cpu_ms", "ms", "CPU time while fetching data", "step", "mean", "mean", "f64"),
    Metric("batch_elements", "", "elements of the batch", "step", "mean", "mean", "f64"),
    Metric("syncs", "", "gradient exchanges", "step", "max", "sum", "f64"),
    Metric("collective_ms", "ms", "communication, hidden or not", "step", "mean", "mean", "f64"),
    Metric("collective_mb", "MB", "exchanged by a rank", "step", "mean", "sum", "f64"),
    Metric("micro_batches", "", "micro-batches of a step", "step", "mean", "mean", "f64"),
    Metric("step_ms", "ms", "step time", "step", "mean", "mean"),
    # proc: sampled by the agent, per rank
    Metric("rss_mb", "MB", "memory, main process", "proc", "sum", "max"),
    Metric("tree_pss_mb", "MB", "memory, process tree", "proc", "sum", "max"),
    Metric("workers", "", "loader workers", "proc", "sum", "max"),
    Metric("main_cpu", "cores", "CPU, main process", "proc", "sum", "mean"),
    Metric("workers_cpu", "cores", "CPU, workers", "proc", "sum", "mean"),
    Metric("runq_share", "", "main thread waited for a CPU", "proc", "max", "mean"),
    Metric("io_wait_share", "", "main thread waited for a block device", "proc", "max", "mean"),
    Metric("threads", "", "threads", "proc", "sum", "max"),
    # host: sampled by the agent
    Metric("cpu_used", "cores", "CPU, all processes", "host", "sum", "mean"),
    Metric("cpu_usable", "cores", "usable CPUs", "host", "sum", "min"),
    Metric("host_memory_used_mb", "MB", "host memory in use", "host", "sum", "max"),
    Metric("host_memory_total_mb", "MB", "host memory", "host", "sum", "min"),
    Metric("memory_limit_mb", "MB", "memory limit (cgroup or host)", "host", "sum", "min"),
    Metric("cgroup_memory_mb", "MB", "memory charged to the cgroup", "host", "sum", "max"),
    Metric("shm_used_mb", "MB", "/dev/shm in use", "host", "sum", "max"),
    Metric("shm_total_mb", "MB", "/dev/shm", "host", "sum", "min"),
    Metric("swap_used_mb", "MB", "swap in use", "host", "sum", "max"),
    # gpu: sampled by the agent through the driver; absent where there is no GPU
    Metric("gpu_util", "%", "GPU utilisation", "gpu", "mean", "mean"),
    Metric("gpu_sm_activity", "%", "multiprocessors busy", "gpu", "mean", "mean"),
    Metric("gpu_tensor_activity", "%", "Tensor Cores busy", "gpu", "mean", "mean"),
    Metric("gpu_dram_activity", "%", "memory bandwidth used", "gpu", "mean", "mean"),
    Metric("gpu_memory_used_mb", "MB", "GPU memory in use", "gpu", "max", "max"),
    Metric("gpu_memory_total_mb", "MB", "GPU memory", "gpu", "min", "min"),
    Metric("gpu_own_memory_mb", "MB", "GPU memory of this run's processes", "gpu", "max", "max"),
    Metric("gpu_others_memory_mb", "MB", "GPU memory of other processes", "gpu", "max", "max"),
    Metric("gpu_others_util", "%", "GPU used by other processes", "gpu", "mean", "mean"),
    Metric("gpu_power_w", "W", "GPU power", "gpu", "sum", "mean"),
    Metric("gpu_power_limit_w", "W", "GPU power limit", "gpu", "sum", "min"),
    Metric("gpu_energy_j", "J", "energy since the last sample", "gpu", "sum", "sum"),
    Metric("gpu_temperature_c", "°C", "GPU temperature", "gpu", "max", "max"),
    Metric("gpu_sm_clock_mhz", "MHz", "GPU clock", "gpu", "min", "mean"),
    Metric("gpu_sm_clock_max_mhz", "MHz", "highest GPU clock", "gpu", "max", "max"),
    Metric("gpu_throttle_bits", "", "GPU throttle reasons", "gpu", "max", "max"),
    Metric("gpu_pcie_in_mb_per_s", "MB/s", "PCIe, to the GPU", "gpu", "sum", "mean"),
    Metric("gpu_pcie_out_mb_per_s", "MB/s", "PCIe, from the GPU", "gpu", "sum", "mean"),
    Metric("gpu_nvlink_in_mb_per_s", "MB/s", "NVLink, to the GPU", "gpu", "sum", "mean"),
    Metric("gpu_nvlink_out_mb_per_s", "MB/s", "NVLink, from the GPU", "gpu", "sum", "mean"),
    Metric("gpu_ecc_corrected", "", "memory errors corrected", "gpu", "sum", "max"),
    Metric("gpu_ecc_uncorrected", "", "memory errors not corrected", "gpu", "sum", "max"),
    # cuda: told by the probe about once a second; counts are since the row before
    Metric("cuda_steps", "", "steps in this row", "cuda", "max", "sum"),
    Metric("cuda_allocated_mb", "MB", "allocated by torch", "cuda", "sum", "max"),
    Metric("cuda_reserved_mb", "MB", "reserved by torch", "cuda", "sum", "max"),
    Metric("cuda_split_mb", "MB", "free, in split blocks", "cuda", "sum", "max"),
    Metric("cuda_peak_mb", "MB", "most allocated by torch", "cuda", "sum", "max"),
    Metric("cuda_segments", "", "segments reserved", "cuda", "sum", "max"),
    Metric("cuda_retries", "", "allocations retried after emptying the cache", "cuda", "sum", "sum"),
    Metric("cuda_ooms", "", "out-of-memory errors", "cuda", "sum", "sum"),
    Metric("cuda_device_allocs", "", "segments fetched from the driver", "cuda", "sum", "sum"),
    Metric("cuda_device_frees", "", "segments given back to the driver", "cuda", "sum", "sum"),
    Metric("cuda_allocs", "", "allocations", "cuda", "sum", "sum"),
    Metric("cuda_small_allocs", "", "allocations below 1 MB", "cuda", "sum", "sum"),
    Metric("cuda_empty_cache", "", "calls of empty_cache", "cuda", "sum", "sum"),
    Metric("cuda_syncs", "", "explicit synchronisations", "cuda", "sum", "sum"),
    Metric("cuda_sync_ms", "ms", "waited in them", "cuda", "mean", "sum"),
    Metric("gpu_timed", "", "steps timed on the GPU", "cuda", "sum", "sum"),
    Metric("gpu_untimed", "", "steps whose timing was given up", "cuda", "sum", "sum"),
    Metric("gpu_step_ms", "ms", "a step, on the GPU", "cuda", "mean", "mean"),
    *(Metric(f"gpu_{phase}_ms", "ms", f"{phase}, on the GPU", "cuda") for phase in PHASES),
    Metric("gpu_idle_ms", "ms", "GPU idle while a batch is fetched", "cuda", "mean", "mean"),
    Metric("gpu_gap_ms", "ms", "from the last kernel of a step to the next forward", "cuda", "mean", "mean"),
    Metric("gpu_starved_ms", "ms", "phases at whose end the GPU was done", "cuda", "mean", "mean"),
    Metric("gpu_caught_up", "", "share of steps the GPU was done with", "cuda", "max", "mean"),
    # brief: made by the agent in runs of many ranks, beside means of step, proc and cuda metrics
    Metric("rank", "", "rank", "brief", "last", "last"),
    Metric("steps", "", "steps in this row", "brief", "sum", "sum"),
    Metric("end_high", "", "steps taken so far, in BRIEF_STEP_BASE", "brief", "max", "max"),
    Metric("end_low", "", "steps taken so far, the rest", "brief", "max", "max"),
    Metric("ago_s", "s", "since the last of these steps ended", "brief", "max", "max"),
    Metric("phase", "", "phase it is in, by its place among the phases", "brief", "last", "last"),
    Metric("phase_for_s", "s", "since it entered that phase", "brief", "max", "max"),
    Metric("longest_step_ms", "ms", "longest step", "brief", "max", "max"),
    Metric("least_comm_ms", "ms", "least exposed communication of a step", "brief", "min", "min"),
    Metric("all_samples", "", "samples in this row", "brief", "sum", "sum"),
    Metric("all_tokens", "", "tokens in this row", "brief", "sum", "sum"),
    # run: made by the pipeline, about one row a second
    Metric("steps_per_s", "1/s", "steps per second", "run", "mean", "mean"),
    Metric("samples_per_s", "1/s", "samples per second", "run", "sum", "mean"),
    Metric("tokens_per_s", "1/s", "tokens per second", "run", "sum", "mean"),
    Metric("data_share", "", "share of time waiting for data", "run", "mean", "mean"),
    Metric("step_p50_ms", "ms", "step time p50", "run", "mean", "mean"),
    Metric("step_p95_ms", "ms", "step time p95", "run", "mean", "max"),
    Metric("step_p99_ms", "ms", "step time p99", "run", "mean", "max"),
    *(Metric(f"run_{phase}_ms", "ms", phase, "run", "mean", "mean") for phase in PHASES),
    Metric("run_loss", "", "loss", "run", "mean", "mean"),
)

#: Signal -> the columns that nobody can know where what measures it is lost (see `probe/torch_compat.py`).
#: A lost phase is null in the tape and the report; its time is then part of `other`.
SIGNALS: dict[str, tuple[str, ...]] = {
    "data": ("data_ms", "samples", "tokens", "data_cpu_ms", "batch_elements"),
    "samples": ("samples", "tokens", "batch_elements"),
    "h2d": ("h2d_ms",),
    "forward": ("forward_ms",),
    "backward": ("backward_ms", "loss", "backward_calls"),
    "loss": ("loss",),
    "optimizer": ("optimizer_ms", "optimizer_steps"),
    "comm": ("comm_ms", "syncs", "collective_ms", "collective_mb"),
    "checkpoint": ("checkpoint_ms",),
    "loss_scale": ("loss_scale",),
    "amp_skipped": ("amp_skipped",),
    "cuda_memory": (),
    "cuda_syncs": ("cuda_syncs", "cuda_sync_ms"),
    "empty_cache": ("cuda_empty_cache",),
    "gpu_time": (),
    "cuda": (),
    "steps": (),
    "compile": (),
    "precision": (),
    "ddp": (),
    "model": (),
    "loader": (),
    "environment": (),
    "facts": (),
}

BY_KEY = {metric.key: metric for metric in METRICS}

#: Metrics that the tape carries, in the order of its slots.
TAPE_METRICS = tuple(metric for metric in METRICS if metric.tape is not None)


def keys_of(origin: Origin) -> tuple[str, ...]:
    """Keys of all metrics of one origin, in table order."""
    return tuple(metric.key for metric in METRICS if metric.origin == origin)


def combine(key: str, values: Iterable[float | None]) -> float:
    """What several ranks, hosts or devices make together, by the rule `Metric.ranks`. Decided here alone.

    Args:
        key: a metric's; one that is not in the table (the user's own) becomes the mean.
        values: one of each; None and NaN are not known, and left out.

    Returns:
        NaN where nothing is known.
    """
    known = [value for value in values if value is not None and value == value]
    if not known:
        return math.nan
    rule = BY_KEY[key].ranks if key in BY_KEY else "mean"
    return _COMBINE[rule](known)


_COMBINE: Mapping[Combine, Callable[[Sequence[float]], float]] = {
    "mean": lambda known: sum(known) / len(known),
    "sum": sum,
    "max": max,
    "min": min,
    "last": lambda known: known[-1],
}


def describe() -> dict[str, Any]:
    """The table as plain data, as it is stored with a run: `{"version": 1, "metrics": [...]}`."""
    return {"version": SCHEMA_VERSION, "metrics": [asdict(metric) for metric in METRICS]}
