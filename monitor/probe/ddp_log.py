"""What torch notes of a DistributedDataParallel module, and how often it does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from monitor.probe import torch_compat


def exposed_ns(log: Mapping[str, int]) -> int:
    """Nanoseconds from the end of a backward pass's arithmetic to the end of its last all-reduce."""
    return max(log.get("backward_comm_time", 0) - log.get("backward_compute_comm_overlap_time", 0), 0)


def first_bucket(module: DistributedDataParallel, log: Mapping[str, str]) -> list[int] | None:
    """Which gradients travel first, by the reducer's numbers; None where that is not known.

    Once buckets are rebuilt in the order in which gradients get ready, torch's log says it. Before that the
    first one has the last parameters.
    """
    if indices := log.get("rebuilt_per_bucket_param_indices"):
        return [int(number) for number in indices.split(",")[0].split()]
    size, found, parameters = int((log.get("bucket_sizes") or "0").split(",")[0]), [], list(sent(module))
    for number in reversed(range(len(parameters))):
        if size <= 0:
            break
        size -= parameters[number].nbytes
        found.append(number)
    return found if found and not size else None


def sent(module: DistributedDataParallel) -> Iterator[nn.Parameter]:
    """Parameters whose gradients are exchanged, in the reducer's order."""
    known = torch_compat.reader(torch_compat.DDP_PARAMETERS)(module)
    return (parameter for parameter in known if parameter.requires_grad)


def measure_every(module: DistributedDataParallel, iterations: int) -> None:
    """Have torch measure one in so many iterations."""
    torch_compat.value(torch_compat.DDP_SAMPLE_RATE)(module.reducer, iterations)
