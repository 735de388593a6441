"""Configuration as it is seen at run time: machine, library, model, compiler."""

from __future__ import annotations

import collections
import os
import platform
import sys
from typing import Any

import torch
from torch import nn
from torch.utils.data import IterableDataset

from monitor.probe.forward import OURS, SEAM
from monitor.probe.recorder import Recorder

#: Modules of a model that are looked at.
MODULES = 20_000
#: Reasons kept of the compiler's counters.
REASONS = 12
UNITS = 8  # half-precision matrix units want multiples of this (torch's own rule)


def environment() -> dict[str, Any]:
    """Versions, threads, CPUs and what the hardware is good at. Touches no GPU."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "platform": platform.platform(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cpu_capabilities": _cpu_flags(),
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "usable_cpus": usable_cpus(),
        "omp_num_threads": os.environ.get("OMP_NUM_THREADS"),
        "cuda_visible_devices": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "rank": os.environ.get("RANK"),
        "local_world_size": os.environ.get("LOCAL_WORLD_SIZE"),
    }


def usable_cpus() -> int:
    """CPUs this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _cpu_flags() -> list[str]:
    """Which of the low-precision units the CPU has, as /proc/cpuinfo names them; empty where unknown."""
    wanted = {"amx_bf16", "avx512_bf16", "amx_fp16", "avx512_fp16", "bf16"}
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith(("flags", "Features")):
                    return sorted(wanted & set(line.split()))
    except OSError:
        pass
    return []


def model_facts(model: nn.Module) -> dict[str, Any]:
    """What a model is made of."""
    dtypes: collections.Counter[str] = collections.Counter()
    trainable = 0
    for parameter in model.parameters():
        dtypes[str(parameter.dtype).removeprefix("torch.")] += parameter.numel()
        trainable += parameter.numel() if parameter.requires_grad else 0
    kinds: collections.Counter[str] = collections.Counter()
    convolutions, last, unaligned = 0, 0, []
    for name, module in list(model.named_modules())[:MODULES]:
        kinds[type(module).__name__] += 1
        weight = getattr(module, "weight", None)
        if isinstance(module, nn.Conv2d | nn.Conv3d) and isinstance(weight, torch.Tensor):
            convolutions += 1
            last += _channels_last(weight)
        if isinstance(module, nn.Linear) and (module.in_features % UNITS or module.out_features % UNITS):
            unaligned.append([name, module.in_features, module.out_features])
    return {
        "class": type(model).__name__,
        "parameters": sum(dtypes.values()),
        "trainable": trainable,
        "dtypes": dict(dtypes),
        "modules": dict(kinds.most_common(24)),
        "conv_layers": convolutions,
        "conv_channels_last": last,
        "unaligned": unaligned[:16],
        "unaligned_count": len(unaligned),
        "data_parallel": kinds.get("DataParallel", 0) > 0,
        "distributed_data_parallel": kinds.get("DistributedDataParallel", 0) > 0,
        "device": next((str(p.device) for p in model.parameters()), None),
        "compiled": type(model).__name__ == "OptimizedModule" or _compiled_in_place(model),
    }


def _compiled_in_place(model: nn.Module) -> bool:
    call = getattr(model, SEAM, None)
    return bool(getattr(call, OURS, call is not None))


def _channels_last(weight: torch.Tensor) -> bool:
    if weight.dim() != 4 or weight.shape[1] == 1 or tuple(weight.shape[2:]) == (1, 1):
        return False
    return weight.is_contiguous(memory_format=torch.channels_last) and not weight.is_contiguous()


def compile_facts() -> dict[str, Any] | None:
    """The compiler's own counters; None where torch.compile was never used. Imports nothing."""
    utils = sys.modules.get("torch._dynamo.utils")
    if utils is None:
        return None
    counters = utils.counters
    graphs = counters.get("stats", {}).get("unique_graphs", 0)
    if not graphs and not counters.get("graph_break") and not counters.get("frames"):
        return None
    breaks = collections.Counter(counters.get("graph_break", {}))
    return {
        "used": True,
        "unique_graphs": graphs,
        "frames": dict(counters.get("frames", {})),
        "graph_breaks": [
            {"reason": str(reason)[:600], "count": count} for reason, count in breaks.most_common(REASONS)
        ],
        "compilations": len(getattr(utils, "compilation_time_metrics", {}).get("_compile.compile_inner", ())),
    }


def watch(recorder: Recorder) -> None:
    """Facts that change while the training runs."""

    def look() -> None:
        recorder.fact("anomaly_mode", {"on": torch.is_anomaly_enabled()})
        recorder.fact("threads", {"threads": torch.get_num_threads(), "usable_cpus": usable_cpus()})
        compiled = compile_facts()
        if compiled is not None:
            recorder.fact("compile", compiled)

    recorder.watchers.append(look)


def loader_facts(loader: Any) -> dict[str, Any]:
    """A DataLoader's arguments, as plain data; None for those that another kind of loader has not."""
    sampler = type(loader.sampler).__name__ if hasattr(loader, "sampler") else None
    context = getattr(loader, "multiprocessing_context", None)
    plain = "num_workers batch_size prefetch_factor persistent_workers pin_memory drop_last timeout".split()
    return {
        **{name: getattr(loader, name, None) for name in plain},
        "multiprocessing_context": getattr(context, "_name", None) or (context and str(context)),
        "dataset": type(getattr(loader, "dataset", loader)).__name__,
        "sampler": sampler,
        "shuffle": sampler == "RandomSampler",
        "collate_fn": getattr(getattr(loader, "collate_fn", None), "__name__", None),
        "worker_init_fn": getattr(getattr(loader, "worker_init_fn", None), "__name__", None),
        "length": _length(loader),
    }


def _length(loader: Any) -> int | None:
    # Asked for its length, a loader over an IterableDataset notes that, and later warns of a wrong one.
    if isinstance(getattr(loader, "dataset", None), IterableDataset):
        return None
    try:
        return len(loader)
    except Exception:  # noqa: BLE001 - a sampler or dataset that does not know its length
        return None
