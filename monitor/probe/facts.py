"""Configuration as it is seen at run time: machine, library, model, compiler."""

from __future__ import annotations

import collections
import itertools
import os
import platform
from typing import Any

import torch
from torch import nn
from torch.utils.data import IterableDataset

from monitor.probe import torch_compat
from monitor.probe.call_hook import COMPILED_CALL_ATTR, OURS
from monitor.probe.compiler import Compiler
from monitor.probe.loader_state import LoaderState
from monitor.probe.patches import compiler_sees_hooks
from monitor.probe.recorder import Recorder

#: Modules of a model that are looked at.
MODULES = 20_000
#: Layers described one by one, the largest.
MATMULS = 200
UNITS = 8  # half-precision matrix units want multiples of this (torch's own rule)


def environment() -> dict[str, Any]:
    """Versions, threads, CPUs and what the hardware is good at. Touches no GPU."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        # platform.platform() would run `uname -p` in the training process
        "platform": f"{platform.system()}-{platform.release()}-{platform.machine()}",
        "cpu_capability": _cpu_capability(),
        "cpu_capabilities": _cpu_flags(),
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "usable_cpus": usable_cpus(),
        "omp_num_threads": os.environ.get("OMP_NUM_THREADS"),
        "cuda_visible_devices": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "rank": os.environ.get("RANK"),
        "local_world_size": os.environ.get("LOCAL_WORLD_SIZE"),
        "launcher_pid": _whole(os.environ.get("MONITOR_LAUNCHER_PID")) or os.getppid(),
        "restarts": _whole(os.environ.get("TORCHELASTIC_RESTART_COUNT")),
        "restarts_allowed": _whole(os.environ.get("TORCHELASTIC_MAX_RESTARTS")),
    }


def _cpu_capability() -> str | None:
    """The widest vector instructions that torch uses, "AVX512"; None where it does not tell."""
    ask = torch_compat.value_or(torch_compat.CPU_CAPABILITY, None)
    return None if ask is None else str(ask())


def _whole(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0


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
    trained: collections.Counter[str] = collections.Counter()
    for parameter in model.parameters():
        name = str(parameter.dtype).removeprefix("torch.")
        dtypes[name] += _elements(parameter)
        trained[name] += _elements(parameter) if parameter.requires_grad else 0
    modules = list(itertools.islice(model.named_modules(), MODULES))
    kinds = collections.Counter(type(module).__name__ for _, module in modules)
    unaligned = [
        [name, module.in_features, module.out_features]
        for name, module in modules
        if isinstance(module, nn.Linear) and (module.in_features % UNITS or module.out_features % UNITS)
    ]
    convolutions = [module for _, module in modules if isinstance(module, nn.Conv2d | nn.Conv3d)]
    return {
        "class": type(model).__name__,
        "parameters": sum(dtypes.values()),
        "trainable": sum(trained.values()),
        "dtypes": dict(dtypes),
        "trainable_dtypes": {name: count for name, count in trained.items() if count},
        "modules": dict(kinds.most_common(24)),
        "matmuls": _matmuls(modules),
        "conv_layers": len(convolutions),
        "conv_channels_last": sum(_channels_last(module.weight) for module in convolutions),
        "unaligned": unaligned[:16],
        "unaligned_count": len(unaligned),
        "data_parallel": kinds.get("DataParallel", 0) > 0,
        "distributed_data_parallel": kinds.get("DistributedDataParallel", 0) > 0,
        "device": next((str(p.device) for p in model.parameters()), None),
        "compiled": type(model).__name__ == "OptimizedModule" or _compiled_in_place(model),
    }


def _matmuls(modules: list[tuple[str, nn.Module]]) -> list[dict[str, Any]]:
    """Layers that multiply matrices, largest first: name, kind, shape [in, out], elements of the weight.

    `rows`, how many rows of input they meet in one call, is not known: None.
    """
    found: list[dict[str, Any]] = []
    for name, module in modules:
        if isinstance(module, nn.Linear):
            kind, shape = "linear", [module.in_features, module.out_features]
        elif isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d):
            kind, shape = "conv", [module.in_channels // module.groups, module.out_channels]
        else:
            continue
        elements = _elements(module.weight)
        found.append({"name": name, "kind": kind, "shape": shape, "elements": elements, "rows": None})
    return sorted(found, key=lambda one: -one["elements"])[:MATMULS]


def _elements(parameter: torch.Tensor) -> int:
    """Elements of a parameter; 0 for a lazy module's that has no shape yet."""
    return 0 if _shapeless(parameter) else int(parameter.numel())


def _shapeless(parameter: torch.Tensor) -> bool:
    """Whether it is a lazy module's, whose shape the first batch will tell."""
    return isinstance(parameter, nn.UninitializedParameter)


def _compiled_in_place(model: nn.Module) -> bool:
    call = getattr(model, COMPILED_CALL_ATTR, None)
    return bool(getattr(call, OURS, call is not None))


def _channels_last(weight: torch.Tensor) -> bool:
    if _shapeless(weight) or weight.dim() != 4 or weight.shape[1] == 1 or tuple(weight.shape[2:]) == (1, 1):
        return False
    return weight.is_contiguous(memory_format=torch.channels_last) and not weight.is_contiguous()


def ddp_facts(model: nn.Module) -> dict[str, Any] | None:
    """How DistributedDataParallel was set up, and what it found; None for any other module.

    From its own log of the last iteration, which costs some microseconds and waits for no device.
    """
    if not isinstance(model, nn.parallel.DistributedDataParallel):
        return None
    log = torch_compat.value(torch_compat.DDP_LOG)(model)
    # torch 2.13 says 0 where it did not search, 2.4 says nothing
    searched = model.find_unused_parameters or model.static_graph
    return {
        "find_unused_parameters": bool(model.find_unused_parameters),
        "static_graph": bool(model.static_graph),
        "gradient_as_bucket_view": bool(model.gradient_as_bucket_view),
        "bucket_cap_mb": log.get("bucket_cap_bytes", 0) / 2**20,
        "bucket_bytes": log.get("bucket_sizes"),
        "unused_parameter_size": log.get("unused_parameter_size") if searched else None,
        "iterations": log.get("iteration"),
        "has_sync_bn": bool(log.get("has_sync_bn")),
        "backend": log.get("backend_name"),
        # only this says that training runs inside `Join`, where ranks may have unequal numbers of batches
        "join": bool(getattr(torch_compat.reader(torch_compat.DDP_JOIN)(model), "enable", False)),
    }


def watch(recorder: Recorder) -> None:
    """Facts that change while the training runs."""
    compiler = Compiler()

    def look() -> None:
        recorder.fact("anomaly_mode", {"on": torch.is_anomaly_enabled()})
        recorder.fact("threads", {"threads": torch.get_num_threads(), "usable_cpus": usable_cpus()})

    def look_at_compiler() -> None:
        compiled = compiler.facts(recorder.steps)
        if compiled is not None:
            if compiler_sees_hooks:
                raise compiler_sees_hooks[0]
            recorder.fact("compile", compiled)

    if not torch_compat.has(torch_compat.CPU_CAPABILITY):
        recorder.signal_lost("environment", torch_compat.absent(torch_compat.CPU_CAPABILITY))
    recorder.watch(look, "facts")
    recorder.watch(look_at_compiler, "compile")


def describe_loader(recorder: Recorder, loader: Any, state: LoaderState) -> None:
    """Write what is known of a loader as a fact, and again when its role is known."""
    facts = {**loader_facts(loader), "location": state.place, "call": state.call}
    name = f"loader/{state.number}"
    recorder.fact(name, {**facts, "role": None})
    recorder.watch(lambda: recorder.fact(name, {**facts, "role": state.role}), "loader")


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
