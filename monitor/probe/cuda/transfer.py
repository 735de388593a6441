"""Copies of batches to the device: timed where a framework makes them, looked at where the loader gives them.

Frameworks move a batch in a function of their own, and its time on the host is the phase `h2d`. A loop
written by hand calls `.to(device)`, whose time stays `other`: a replaced `Tensor.to` would be what
`__torch_function__` of every tensor subclass is handed, and those that look it up in a table (torchvision's
do) would return something else than before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from threading import get_ident
from typing import Any

import torch

from monitor.probe import torch_compat
from monitor.probe.batches import DEPTH, collect
from monitor.probe.clock import EVAL, H2D
from monitor.probe.patches import Patches
from monitor.probe.recorder import Recorder

#: Looks at the batches of one loader: so many first, then one in so many (a look is every eighth step).
FIRST_LOOKS, LOOK_EVERY = 3, 32


class Transfers:
    """The frameworks' own functions that move a batch.

    Attributes:
        seen: one of them was called.
    """

    def __init__(self, recorder: Recorder, patches: Patches) -> None:
        self.seen = False
        self._recorder = recorder
        self._patches = patches
        self._known: set[tuple[str, str]] = set()

    def install(self, functions: Iterable[tuple[str, str]]) -> None:
        """Time these, as far as their modules are loaded by now.

        Args:
            functions: ("package.module", "Class.method" or "function").
        """
        for place in functions:
            owner: Any = sys.modules.get(place[0])
            *parents, name = place[1].split(".")
            for parent in parents:
                owner = getattr(owner, parent, None)
            if owner is not None and place not in self._known:
                self._known.add(place)
                self._patches.replace(owner, name, self._timed)

    def _timed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        training_thread_id, clock = self._recorder.training_thread_id, self._recorder.clock

        def transfer(*args: Any, **kwargs: Any) -> Any:
            if get_ident() != training_thread_id[0] or clock.base_phase[0] == EVAL:
                return original(*args, **kwargs)
            self.seen, depth = True, clock.push(H2D)
            try:
                return original(*args, **kwargs)
            finally:
                clock.pop(depth)

        return transfer


class Batches:
    """What training batches are as the loader gives them: how large, where they lie, pinned or not."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._fetches: dict[int, int] = {}
        self._largest: dict[int, float] = {}

    def look(self, batch: Any, number: int) -> None:
        """Look at a batch of loader `number` if it is time to; writes the fact "batch/N". Raises nothing."""
        fetches = self._fetches[number] = self._fetches.get(number, 0) + 1
        if fetches > FIRST_LOOKS and fetches % LOOK_EVERY:
            return
        try:
            found = described(batch)
        except Exception:  # noqa: BLE001 - a batch of a kind of its own: not described
            return
        # The largest one speaks for all: the last of an epoch is often a smaller one.
        if found is not None and found["mb"] > self._largest.get(number, -1.0):
            self._largest[number] = found["mb"]
            self._recorder.fact(f"batch/{number}", found)


def described(batch: Any) -> dict[str, Any] | None:
    """Megabytes (1e6) and number of a batch's tensors, the device of the largest, and whether that is pinned.

    `pageable_mb` is what lies on the host in memory that is not pinned. None for a batch without tensors.
    """
    with torch_compat.plain_tensors():
        tensors: list[torch.Tensor] = []
        collect(batch, tensors, DEPTH)
        if not tensors:
            return None
        sizes = [tensor.numel() * tensor.element_size() / 1e6 for tensor in tensors]
        largest = tensors[sizes.index(max(sizes))]
        hosted = sum(size for tensor, size in zip(tensors, sizes, strict=True) if tensor.is_cpu)
        # One question to the driver a batch: whoever pins one tensor pins them all.
        pinned = largest.is_cpu and largest.is_pinned()
        return {
            "mb": round(sum(sizes), 6),
            "tensors": len(tensors),
            "device": str(largest.device),
            "pinned": pinned,
            "pageable_mb": 0.0 if pinned else round(hosted, 6),
        }
