"""Who holds the device's memory when there is none left: by kind, by name, and how torn it is."""

from __future__ import annotations

import itertools
import re
import traceback
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from monitor.probe import torch_compat
from monitor.probe.source_location import names_in, short

#: Tensors asked for their place at most, and frames and names looked through: it takes well under a second.
TENSORS, FRAMES, NAMES = 20_000, 200, 200
#: Holders told of, the largest.
HOLDERS = 20
MB = 1e6
#: Kinds of holders; a block that several point at belongs to the first of these. The rest is `other`:
#: activations kept for the backward pass, temporaries, tensors of the program's own.
KINDS = ("parameters", "gradients", "optimizer", "other")

_REQUESTED = re.compile(r"Tried to allocate ([\d.]+) ?(bytes|KiB|MiB|GiB)")
_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


@dataclass(frozen=True)
class Holding:
    """A tensor's storage.

    Attributes:
        kind: one of KINDS.
        what: a name for a person; those of the same name are added up.
        address: where it begins on the device.
        location: `train.py:31`, where the tensor is known by this name; None for a parameter.
    """

    kind: str
    what: str
    address: int
    location: str | None = None


def out_of_memory(error: BaseException | None) -> BaseException | None:
    """The device's out-of-memory error among an exception and its causes; None where there is none."""
    kind: type[BaseException] | None = getattr(torch.cuda, "OutOfMemoryError", None)
    for _ in range(8):
        if error is None or kind is None or isinstance(error, kind):
            return error if kind else None
        error = error.__cause__ or error.__context__
    return None


def requested_mb(message: str) -> float | None:
    """What was asked for, in MB (1e6), as torch's message says."""
    found = _REQUESTED.search(message)
    return float(found[1]) * _UNITS[found[2]] / MB if found else None


def summarise(
    segments: Iterable[Mapping[str, Any]], holdings: Iterable[Holding], device: int
) -> dict[str, Any]:
    """A snapshot in few numbers, all in MB (1e6). Pure.

    Args:
        segments: of `torch.cuda.memory_snapshot`.
        holdings: whose storages are known.
        device: the device; segments of others are left out.

    Returns:
        reserved_mb, allocated_mb, split_mb (free pieces of segments that are in use, which no other
        allocation of another size may fill), reserved_cached_mb (whole free segments), largest_free_mb,
        segments, categories {kind: MB}, holders [{what, mb, location}].
    """
    mine = [segment for segment in segments if segment.get("device", device) == device]
    used = sorted((at, size) for at, size, state in _blocks(mine) if state == "active_allocated")
    allocated = sum(size for _, size in used)
    free = [(size, whole) for at, size, state, whole in _with_rest(mine) if state == "inactive"]
    sizes, holders = _claims(used, holdings)
    categories = {kind: sizes[kind] / MB for kind in KINDS[:-1]}
    return {
        "reserved_mb": sum(segment["total_size"] for segment in mine) / MB,
        "allocated_mb": allocated / MB,
        "split_mb": sum(size for size, whole in free if not whole) / MB,
        "reserved_cached_mb": sum(size for size, whole in free if whole) / MB,
        "largest_free_mb": max((size for size, _ in free), default=0) / MB,
        "segments": len(mine),
        "categories": {**categories, "other": allocated / MB - sum(categories.values())},
        "holders": holders,
    }


def _with_rest(segments: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, int, str, bool]]:
    """Address, size and state of every block, and whether it is the whole of its segment."""
    for segment in segments:
        at = segment["address"]
        for block in segment["blocks"]:
            yield at, block["size"], block["state"], len(segment["blocks"]) == 1
            at += block["size"]


def _blocks(segments: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, int, str]]:
    return ((at, size, state) for at, size, state, _ in _with_rest(segments))


def _claims(
    used: Sequence[tuple[int, int]], holdings: Iterable[Holding]
) -> tuple[Counter[str], list[dict[str, Any]]]:
    """Bytes of each kind, and the largest holders. Each block in use is counted once."""
    starts = [at for at, _ in used]
    owners: dict[int, Holding] = {}
    for holding in sorted(holdings, key=lambda one: KINDS.index(one.kind)):
        index = bisect_right(starts, holding.address) - 1
        if index >= 0 and holding.address < starts[index] + used[index][1]:
            owners.setdefault(index, holding)
    kinds: Counter[str] = Counter()
    named: Counter[tuple[str, str | None]] = Counter()
    unnamed: Counter[int] = Counter()
    for index, (_, size) in enumerate(used):
        owner = owners.get(index)
        if owner is None:
            unnamed[size] += 1
        else:
            kinds[owner.kind] += size
            named[owner.what, owner.location] += size
    for size, count in unnamed.items():
        named[f"{count} × {size / MB:.1f} MB without a name", None] += size * count
    largest = named.most_common(HOLDERS)
    return kinds, [
        {"what": what, "mb": round(size / MB, 3), "location": place} for (what, place), size in largest
    ]


def known(modules: Iterable[nn.Module], optimizers: Iterable[torch.optim.Optimizer]) -> list[Holding]:
    """Parameters, gradients and optimizer state that lie on a device."""
    found: list[Holding] = []
    with torch_compat.plain_tensors():
        for kind, what, tensor in itertools.islice(_tensors(modules, optimizers), TENSORS):
            address = _address(tensor)
            if address:
                found.append(Holding(kind, what, address))
    return found


def _tensors(
    modules: Iterable[nn.Module], optimizers: Iterable[torch.optim.Optimizer]
) -> Iterator[tuple[str, str, Any]]:
    for module in modules:
        for name, parameter in module.named_parameters():
            yield "parameters", name, parameter
            yield "gradients", f"gradient of {name}", parameter.grad
        for name, buffer in module.named_buffers():
            yield "parameters", name, buffer
    for optimizer in optimizers:
        for state in list(optimizer.state.values()):
            for key, value in state.items() if isinstance(state, dict) else ():
                yield "optimizer", f"{type(optimizer).__name__}: {key}", value
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                yield "parameters", "parameters of an optimizer", parameter
                yield "gradients", "gradients of an optimizer", parameter.grad


def in_frames(error: BaseException) -> list[Holding]:
    """Tensors that the functions through which the exception came know by name."""
    found: list[Holding] = []
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][-FRAMES:]
    with torch_compat.plain_tensors():
        for frame in reversed(frames):
            place = f"{short(frame.f_code.co_filename)}:{frame.f_lineno}"
            for name, value in list(names_in(frame).items())[:NAMES]:
                address = _address(value)
                if address:
                    shape = "×".join(map(str, value.shape))
                    what = f"{name} [{shape}] {str(value.dtype).removeprefix('torch.')}"
                    found.append(Holding("other", what, address, place))
    return found


def _local(tensor: Any) -> Any:
    """A distributed tensor's part on this device; any other tensor itself."""
    try:
        return torch_compat.reader(torch_compat.DTENSOR_LOCAL)(tensor)
    except (LookupError, AttributeError):
        return tensor


def _address(tensor: Any) -> int:
    """Where a tensor's storage begins on its device; 0 for anything else."""
    try:
        local = _local(tensor) if isinstance(tensor, torch.Tensor) else None
        return int(local.untyped_storage().data_ptr()) if local is not None and local.is_cuda else 0
    except Exception:  # noqa: BLE001 - tensors without storage say so in many ways
        return 0
