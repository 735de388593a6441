"""What is in a batch: samples, tokens, elements. Shapes only; no value is read."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from monitor.probe import torch_compat
from monitor.probe.recorder import ELEMENTS, SAMPLES, TOKENS

#: How deep a batch is searched for tensors, and how many are looked at.
DEPTH = 4
TENSORS = 64


def count(batch: Any, values: list[Any]) -> None:
    """Add the batch's samples, tokens and elements to the step's values.

    Samples are the first tensor's first dimension, or the number of samples where they were not stacked.
    Tokens are counted where the field's convention names them: a tensor called `input_ids`. A batch with
    no tensor in a plain container is not counted.
    """
    if type(batch) is list and len(batch) == 2 and type(batch[0]) is type(batch[1]) is torch.Tensor:
        # What default_collate makes of most datasets; the rest would find the same, more slowly.
        inputs, targets = batch
        shape = inputs.shape
        if shape:
            add(values, SAMPLES, shape[0])
            add(values, ELEMENTS, inputs.numel() + targets.numel())
        return
    # A shape asked of a tensor's subclass would run the subclass's own code, and cost 30 µs a batch.
    with torch_compat.plain_tensors():
        _count(batch, values)


def _count(batch: Any, values: list[Any]) -> None:
    tensors: list[torch.Tensor] = []
    collect(batch, tensors, DEPTH)
    if not tensors or not tensors[0].dim():
        return
    loose = isinstance(batch, list | tuple) and isinstance(batch[0], list | tuple | dict)
    add(values, SAMPLES, (loose and _unstacked(batch, tensors)) or tensors[0].shape[0])
    elements = 0
    for tensor in tensors:
        elements += tensor.numel()
    add(values, ELEMENTS, elements)
    ids = _inside(batch).get("input_ids") if isinstance(batch, dict | UserDict) else None
    if isinstance(ids, torch.Tensor):
        add(values, TOKENS, ids.numel())


def add(values: list[Any], index: int, more: float) -> None:
    """Add to a value that may not be measured yet."""
    before = values[index]
    values[index] = more if before != before else before + more


def _unstacked(batch: Sequence[Any], tensors: list[torch.Tensor]) -> int:
    """Samples of a list of samples, or of a tuple of columns as `zip(*samples)` makes it; else 0."""
    if len({tensor.shape[:1] for tensor in tensors}) == 1:
        return 0
    if isinstance(batch, list):
        return len(batch)
    lengths = {len(column) for column in batch if isinstance(column, list | tuple)}
    return lengths.pop() if len(lengths) == 1 else 0


def collect(batch: Any, tensors: list[torch.Tensor], depth: int) -> None:
    """Append the tensors of a batch to `tensors`: at most TENSORS or so, and no deeper than `depth`."""
    if isinstance(batch, torch.Tensor):
        tensors.append(batch)
        return
    if not depth or len(tensors) >= TENSORS:
        return
    # Only what is known to hold its values already: other mappings may load or decode them on demand.
    items: Iterable[Any]
    if isinstance(batch, list | tuple):
        items = batch[:TENSORS]
    elif isinstance(batch, dict | UserDict):
        items = _inside(batch).values()
    else:
        return
    for item in items:
        collect(item, tensors, depth - 1)


def _inside(batch: dict[Any, Any] | UserDict[Any, Any]) -> dict[Any, Any]:
    return batch.data if isinstance(batch, UserDict) else batch
