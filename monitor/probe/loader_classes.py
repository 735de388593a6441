"""Which classes give batches: torch's DataLoader and its iterators, and torchdata's where that is loaded."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from torch.utils.data import DataLoader

from monitor.probe import torch_compat
from monitor.probe.patches import Patches

Make = Callable[[Callable[[Any], Any]], Callable[[Any], Any]]


def hook_loaders(patches: Patches, make_iter: Make, make_next: Make) -> Callable[[Any], None]:
    """Replace the loaders' `__iter__` and their iterators' `__next__`.

    Returns:
        What is to be called with each iterator that a loader gave: where torch's base of all iterators is
        not known, it replaces the `__next__` that this one uses.
    """
    patches.replace(DataLoader, "__iter__", make_iter)
    stateful = sys.modules.get("torchdata.stateful_dataloader.stateful_dataloader")
    for name, method, make in (
        ("StatefulDataLoader", "__iter__", make_iter),
        ("_StatefulBase", "__next__", make_next),
    ):
        owner = getattr(stateful, name, None)
        if owner is not None and method in vars(owner):
            patches.replace(owner, method, make)
    if torch_compat.has(torch_compat.LOADER_NEXT):
        patches.replace(*torch_compat.owner(torch_compat.LOADER_NEXT), make_next)
        return lambda iterator: None

    def see(iterator: Any) -> None:
        kind: Any = type(iterator)
        if not hasattr(kind.__next__, "__wrapped__"):
            owner = next(base for base in kind.__mro__ if "__next__" in vars(base))
            patches.replace(owner, "__next__", make_next)

    return see
