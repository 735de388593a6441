"""Collectives that are called from Python: by hand, by FSDP, by optimizers that shard. Not DDP's, see `ddp`.

All of them end in methods of torch's ProcessGroup, and those that wait, in `Work.wait`; under every name that
`torch.distributed` has had. They are timed where the caller waits. On a GPU this is the time to enqueue.

Functional collectives, which DTensor is made of, pass all that by; they wait in one function of their own.
What the compiler has put into a graph is not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any

import torch
from torch import distributed

from monitor.probe import torch_compat
from monitor.probe.batches import add
from monitor.probe.clock import BEFORE, COMM
from monitor.probe.patches import Patches
from monitor.probe.recorder import COLLECTIVE_MB, Recorder
from monitor.tape.layout import LIVE_PHASE

Make = Callable[[Callable[..., Any]], Callable[..., Any]]

#: Methods of ProcessGroup whose tensors travel, by all names since torch 2.4; those missing are left out.
METHODS = (
    "_allgather_base", "_reduce_scatter_base", "all_gather_single", "all_gather_single_coalesced",
    "all_to_all_single", "allgather", "allgather_coalesced", "allgather_into_tensor_coalesced", "allreduce",
    "allreduce_coalesced", "alltoall", "alltoall_base", "barrier", "broadcast", "gather", "monitored_barrier",
    "recv", "recv_anysource", "reduce", "reduce_scatter", "reduce_scatter_single",
    "reduce_scatter_single_coalesced", "reduce_scatter_tensor_coalesced", "scatter", "send",
)  # fmt: skip


def install_collectives(recorder: Recorder, patches: Patches) -> None:
    """Time what waits for other ranks. Nothing where torch has no collectives."""
    if not distributed.is_available():
        return
    make = _timed(recorder)
    group, _ = torch_compat.owner(torch_compat.PROCESS_GROUP)
    for name in METHODS:
        patches.replace(group, name, make)
    patches.replace(*torch_compat.owner(torch_compat.WORK_WAIT), make)
    _follow_functional(recorder, patches, make)


def _follow_functional(recorder: Recorder, patches: Patches, make: Make) -> None:
    """Time their wait as well, from the moment on at which they are there."""

    def look() -> None:
        if torch_compat.loaded(torch_compat.WAIT_TENSOR) and look in recorder.watchers:
            recorder.watchers.remove(look)
            patches.replace(*torch_compat.owner(torch_compat.WAIT_TENSOR), _eager(recorder, make))

    recorder.watch(look, "comm")
    look()


def _eager(recorder: Recorder, make: Make) -> Make:
    """Timed; in code that is being compiled the original, of which a graph can be made."""
    compiling, values = torch.compiler.is_compiling, recorder.values

    def make_wait(original: Callable[..., Any]) -> Callable[..., Any]:
        timed = make(original)

        def wait_tensor(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if compiling():
                return original(tensor, *args, **kwargs)
            result = timed(tensor, *args, **kwargs)
            if recorder.here and type(tensor) is torch.Tensor:
                add(values, COLLECTIVE_MB, tensor.numel() * tensor.element_size() / 1e6)
            return result

        return wait_tensor

    return make_wait


def _timed(recorder: Recorder) -> Make:
    push, pop, training_thread_id = recorder.clock.push, recorder.clock.pop, recorder.training_thread_id
    live, values = recorder.tape.live, recorder.values

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def collective(group: Any, *args: Any, **kwargs: Any) -> Any:
            if get_ident() != training_thread_id[0] or live[LIVE_PHASE] == BEFORE:
                return original(group, *args, **kwargs)
            depth = push(COMM)
            try:
                return original(group, *args, **kwargs)
            finally:
                pop(depth)
                if args:
                    try:
                        if size := _size(args[0]):
                            add(values, COLLECTIVE_MB, size / 1e6)
                    except Exception as error:  # noqa: BLE001 - the training must not notice
                        recorder.signal_lost("comm", error)

        return collective

    return make


def _size(tensors: Any) -> int:
    """Bytes of a tensor, or of a list of tensors or of lists of them; 0 for anything else."""
    if isinstance(tensors, torch.Tensor):
        return int(tensors.numel() * tensors.element_size())
    if isinstance(tensors, Sequence) and not isinstance(tensors, str):
        return sum(map(_size, tensors))
    return 0
