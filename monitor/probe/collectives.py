"""Collectives that are called from Python: by hand, by FSDP, by optimizers that shard. Not DDP's, see `ddp`.

All of them end in methods of torch's ProcessGroup, and those that wait, in `Work.wait`; under every name that
`torch.distributed` has had. They are timed where the caller waits. On a GPU this is the time to enqueue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any

import torch
from torch import distributed

from monitor.probe.batches import add
from monitor.probe.clock import BEFORE, COMM
from monitor.probe.patches import Patches
from monitor.probe.recorder import COLLECTIVE_MB, Recorder
from monitor.tape.layout import LIVE_PHASE

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
    for name in METHODS:
        patches.replace(distributed.ProcessGroup, name, make)
    patches.replace(distributed.Work, "wait", make)


def _timed(recorder: Recorder) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    push, pop, gate = recorder.clock.push, recorder.clock.pop, recorder.gate
    live, values = recorder.tape.live, recorder.values

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def collective(group: Any, *args: Any, **kwargs: Any) -> Any:
            if get_ident() != gate[0] or live[LIVE_PHASE] == BEFORE:
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
                        recorder.fail(error)

        return collective

    return make


def _size(tensors: Any) -> int:
    """Bytes of a tensor, or of a list of tensors or of lists of them; 0 for anything else."""
    if isinstance(tensors, torch.Tensor):
        return int(tensors.numel() * tensors.element_size())
    if isinstance(tensors, Sequence) and not isinstance(tensors, str):
        return sum(map(_size, tensors))
    return 0
