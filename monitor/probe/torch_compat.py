"""The one door to names of torch's that are not promised to stay.

TABLE says of each where it is, since and until which version, which signal it carries (see
`monitor.schema.SIGNALS`) and what stands in for it. One that is absent, or is called in another way than
here, raises `NotInTorchError`: whoever asks then loses that signal, and nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import operator
import sys
from collections.abc import Callable
from typing import Any, NamedTuple


class NotInTorchError(LookupError):
    """This torch lacks a name, or it takes other arguments. The message says which."""


class TorchName(NamedTuple):
    """One private or undocumented name of torch's.

    Attributes:
        module: the module that has it; it is imported with torch unless `optional`.
        path: the name in it, through its class.
        signal: the signal that is lost without it.
        since, until: first and last version known to have it; None: it was there in 2.4, it is there still.
        stand_in: what is done instead, with nothing lost; "" where nothing can be.
        arguments: how many positional arguments our calls hand it; None where that is not to be checked.
        of_object: objects have it, and not their class: it is found missing when it is read.
        optional: torch loads the module when a program needs it, and we never do.
    """

    module: str
    path: str
    signal: str
    since: str | None = None
    until: str | None = None
    stand_in: str = ""
    arguments: int | None = None
    of_object: bool = False
    optional: bool = False

    @property
    def key(self) -> str:
        """Its full name."""
        return f"{self.module}.{self.path}"


_LOADER, _OPTIMIZER, _DDP = (
    "torch.utils.data.dataloader",
    "torch.optim.optimizer",
    "torch.nn.parallel.distributed",
)
_DYNAMO, _FRAMES, _SCALER = "torch._dynamo.utils", "torch._C._dynamo.eval_frame", "torch.amp.grad_scaler"

LOADER_NEXT = TorchName(
    _LOADER, "_BaseDataLoaderIter.__next__", "data", arguments=1,
    stand_in="the class of the first iterator that a DataLoader gives",
)  # fmt: skip
BACKWARD = TorchName("torch.autograd", "backward", "backward", arguments=1)
OPTIMIZER_WRAPPER = TorchName(
    _OPTIMIZER, "Optimizer.profile_hook_step", "optimizer",
    stand_in="an optimizer that steps before another one's step has ended runs inside it",
)  # fmt: skip
COMPILED_CALL = TorchName("torch.nn", "Module._compiled_call_impl", "forward")
MODULE_CALL = TorchName("torch.nn", "Module._call_impl", "forward", arguments=2)
REPLICATE = TorchName("torch.nn", "Module._replicate_for_data_parallel", "forward", arguments=1)
SCRIPT_IGNORED = TorchName(
    "torch.jit._recursive", "ignored_attributes", "forward",
    stand_in="TorchScript notes our attribute as one that it cannot use",
)  # fmt: skip
DYNAMO_COMPILING = TorchName(
    "torch.compiler", "is_dynamo_compiling", "compile", stand_in="torch.compiler.is_compiling"
)
SKIP_CODE = TorchName(_FRAMES, "skip_code", "compile", until="2.6", arguments=1)
EXEC_STRATEGY = TorchName(_FRAMES, "set_code_exec_strategy", "compile", since="2.7")
FRAME_ACTION = TorchName(_FRAMES, "_FrameAction", "compile", since="2.7")
FRAME_EXEC_STRATEGY = TorchName(_FRAMES, "_FrameExecStrategy", "compile", since="2.7")
DYNAMO_COUNTERS = TorchName(_DYNAMO, "counters", "compile", optional=True)
COMPILATION_METRICS = TorchName(_DYNAMO, "get_compilation_metrics", "compile", arguments=0, optional=True)
GRAPH_BREAK_REASONS = TorchName(
    _DYNAMO, "graph_break_reasons", "compile", optional=True, stand_in="counters, which know no lines"
)
GUARD_FAILURES = TorchName(
    _DYNAMO, "guard_failures", "compile", optional=True,
    stand_in="since torch 2.5 the reason stands in the record of each compilation",
)  # fmt: skip
COMPILED_BACKENDS = TorchName(
    "torch._dynamo.eval_frame", "cached_backends", "compile", optional=True,
    stand_in="where dynamo is loaded, something is taken to be compiled",
)  # fmt: skip
TENSOR_VERSION = TorchName("torch", "Tensor._version", "steps")
DDP_POST_FORWARD = TorchName(_DDP, "DistributedDataParallel._post_forward", "comm", arguments=2)
DDP_SYNC_BUFFERS = TorchName(_DDP, "DistributedDataParallel._sync_buffers", "comm", arguments=1)
DDP_LOG = TorchName(_DDP, "DistributedDataParallel._get_ddp_logging_data", "ddp", arguments=1)
DDP_LOGGER = TorchName("torch._C._distributed_c10d", "Logger._get_ddp_logging_data", "comm", optional=True)
DDP_BACKWARD_STATS = TorchName(
    "torch._C._distributed_c10d", "Reducer.get_backward_stats", "comm", optional=True
)
DDP_SAMPLE_RATE = TorchName(
    "torch._C._distributed_c10d", "Reducer._set_ddp_runtime_logging_sample_rate", "comm", optional=True
)
DDP_PARAMETERS = TorchName(_DDP, "DistributedDataParallel._module_parameters", "comm", of_object=True)
DDP_JOIN = TorchName(_DDP, "DistributedDataParallel._join_config", "ddp", of_object=True)
PROCESS_GROUP = TorchName("torch.distributed", "ProcessGroup.allreduce", "comm", optional=True)
WORK_WAIT = TorchName("torch.distributed", "Work.wait", "comm", optional=True)
WAIT_TENSOR = TorchName(
    "torch.distributed._functional_collectives", "wait_tensor", "comm", arguments=1, optional=True
)
AUTOCAST_ENTER = TorchName("torch.amp.autocast_mode", "autocast.__enter__", "precision", arguments=1)
AUTOCAST_ENABLED = TorchName("torch.amp.autocast_mode", "autocast._enabled", "precision", of_object=True)
AUTOCAST_DTYPE = TorchName("torch.amp.autocast_mode", "autocast.fast_dtype", "precision", of_object=True)
AUTOCAST_DEVICE = TorchName("torch.amp.autocast_mode", "autocast.device", "precision", of_object=True)
SCALER_SCALE = TorchName(_SCALER, "GradScaler._scale", "loss_scale", of_object=True)
SCALER_INIT = TorchName(
    _SCALER, "GradScaler._init_scale", "loss_scale", of_object=True, stand_in="the scale of the first loss"
)
SCALER_DEVICE = TorchName(_SCALER, "GradScaler._device", "amp_skipped", of_object=True)
SCALER_STATES = TorchName(_SCALER, "GradScaler._per_optimizer_states", "amp_skipped", of_object=True)
FUSED_SCALING = TorchName(
    _OPTIMIZER, "Optimizer._step_supports_amp_scaling", "amp_skipped", of_object=True,
    stand_in="the optimizer's option `fused`",
)  # fmt: skip
CUDA_MEMORY = TorchName("torch._C", "_cuda_memoryStats", "cuda_memory", stand_in="torch.cuda.memory_stats")
CUDA_SYNCHRONIZE = TorchName("torch._C", "_cuda_synchronize", "cuda_syncs")
CUDA_EMPTY_CACHE = TorchName("torch._C", "_cuda_emptyCache", "empty_cache")
PLAIN_TENSORS = TorchName(
    "torch._C", "DisableTorchFunctionSubclass", "samples",
    stand_in="a tensor's subclass runs its own code when it is asked for its shape",
)  # fmt: skip
CPU_CAPABILITY = TorchName("torch.backends.cpu", "get_cpu_capability", "environment", arguments=0)

DTENSOR_LOCAL = TorchName(
    "torch.distributed.tensor", "DTensor._local_tensor", "cuda_memory", of_object=True, optional=True,
    stand_in="who holds the memory of a distributed tensor is not told",
)  # fmt: skip

#: Every name, by its key.
TABLE = {entry.key: entry for entry in tuple(globals().values()) if isinstance(entry, TorchName)}
#: Keys that count as absent: for tests of what is lost without them.
hidden: set[str] = set()


def owner(entry: TorchName) -> tuple[Any, str]:
    """The object that has it, and its name there: for a patch.

    Raises:
        NotInTorchError: it is absent, or takes other arguments.
    """
    *parents, name = entry.path.split(".")
    found: Any = _module(entry)
    for parent in parents:
        found = getattr(found, parent, None)
    if entry.key in hidden or not hasattr(found, name):
        raise absent(entry)
    if entry.arguments is not None and not _takes(getattr(found, name), entry.arguments):
        raise NotInTorchError(f"{entry.key} of torch {_version()} takes other arguments")
    return found, name


def value(entry: TorchName) -> Any:
    """What stands there now.

    Raises:
        NotInTorchError: it is absent, or takes other arguments.
    """
    found, name = owner(entry)
    return getattr(found, name)


def value_or(entry: TorchName, stand_in: Any) -> Any:
    """What stands there now; `stand_in` where it is absent, or takes other arguments."""
    try:
        return value(entry)
    except NotInTorchError:
        return stand_in


def loaded(entry: TorchName) -> bool:
    """Whether the program has loaded the module that has it."""
    return entry.module in sys.modules


def has(entry: TorchName) -> bool:
    """Whether this torch has it."""
    try:
        owner(entry)
    except NotInTorchError:
        return False
    return True


def reader(entry: TorchName) -> Callable[[Any], Any]:
    """A function that reads it from an object; LookupError or AttributeError where it is absent."""
    if entry.key not in hidden:
        return operator.attrgetter(entry.path.rpartition(".")[2])

    def refuse(_: Any) -> Any:
        raise absent(entry)

    return refuse


def plain_tensors() -> contextlib.AbstractContextManager[Any]:
    """Inside it a tensor's subclass answers like a plain tensor, without running its own code."""
    block: contextlib.AbstractContextManager[Any] = _plain_tensors()()
    return block


@functools.cache
def _plain_tensors() -> Callable[[], Any]:
    found: Callable[[], Any] = value_or(PLAIN_TENSORS, contextlib.nullcontext)
    return found


def is_dynamo_compiling() -> Callable[[], bool]:
    """The function that says whether torch's compiler is reading the caller's code."""
    found: Callable[[], bool] = value_or(DYNAMO_COMPILING, sys.modules["torch"].compiler.is_compiling)
    return found


def _version() -> str:
    return str(sys.modules["torch"].__version__)


def absent(entry: TorchName) -> NotInTorchError:
    """What is raised where it is not there."""
    return NotInTorchError(f"torch {_version()} has no {entry.key}")


def _module(entry: TorchName) -> Any:
    """The module; None where it is not there, or nobody has loaded it."""
    if entry.optional:
        return sys.modules.get(entry.module)
    try:
        return importlib.import_module(entry.module)
    except ImportError:
        # a part of an extension module may be reachable as an attribute alone
        parent, _, name = entry.module.rpartition(".")
        return getattr(sys.modules.get(parent), name, None)


def _takes(value: Any, count: int) -> bool:
    """Whether it can be called with so many positional arguments; True where it does not tell."""
    try:
        inspect.signature(value).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        return True
    return True
