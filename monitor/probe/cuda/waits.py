"""Calls by which the program itself makes the host wait for the device, or empties the allocator's cache.

Only calls that say so by name: `synchronize`, of the device, a stream or an event, where the program's own
code calls it (FSDP waits for events of its own to hold the host back, and does well), and `empty_cache`.
`.item()`, `.cpu()` and printing wait as well and are not counted: replacing methods of `Tensor` changes
what its subclasses are told. Those show up in the stacks that the agent takes.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from threading import get_ident
from types import FrameType
from typing import Any

import torch

from monitor.probe import torch_compat
from monitor.probe.patches import Patches
from monitor.probe.recorder import Recorder
from monitor.probe.source_location import foreign, location, user_frame
from monitor.schema import SIGNALS

#: Places remembered, and told of.
PLACES, TOLD = 64, 8

_PUBLIC = os.path.dirname(torch.cuda.__file__) + os.sep


class Waits:
    """Counts them.

    Attributes:
        calls, ms: waits since the last `take`, and what they took of the host's time.
        emptied: calls of empty_cache since the last `take`.
        emptied_at: where empty_cache was first called.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.calls, self.ms, self.emptied = 0, 0.0, 0
        self.emptied_at: str | None = None
        self._recorder = recorder
        self._since = recorder.steps
        self._all, self._all_ms = 0, 0.0
        self._places: Counter[str] = Counter()
        self._place_ms: dict[str, float] = {}

    def install(self, patches: Patches) -> None:
        """Replace them below the public functions, which the compiler knows by identity."""
        self._recorder.hook("cuda_syncs", patches, self._install_syncs)
        self._recorder.hook("empty_cache", patches, self._install_empty_cache)

    def _install_syncs(self, patches: Patches) -> None:
        patches.replace(*torch_compat.owner(torch_compat.CUDA_SYNCHRONIZE), self._timed)
        patches.replace(torch.cuda.Stream, "synchronize", self._timed)
        patches.replace(torch.cuda.Event, "synchronize", self._timed)

    def _install_empty_cache(self, patches: Patches) -> None:
        patches.replace(*torch_compat.owner(torch_compat.CUDA_EMPTY_CACHE), self._counted)

    def take(self) -> dict[str, float]:
        """What came since the last call."""
        found = {"cuda_syncs": self.calls, "cuda_sync_ms": self.ms, "cuda_empty_cache": self.emptied}
        self.calls, self.ms, self.emptied = 0, 0.0, 0
        lost = {key for signal in self._recorder.lost for key in SIGNALS[signal]}
        return {key: float(value) for key, value in found.items() if key not in lost}

    def facts(self) -> dict[str, Any] | None:
        """The fact "syncs"; None where there was none: calls, ms, steps seen, and where most of them are."""
        if not self._all:
            return None
        places = [
            {"location": place, "count": count, "ms": round(self._place_ms[place], 3)}
            for place, count in self._places.most_common(TOLD)
        ]
        steps = self._recorder.steps - self._since
        return {"calls": self._all, "ms": round(self._all_ms, 3), "steps": steps, "locations": places}

    def _timed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        training_thread_id, now = self._recorder.training_thread_id, time.perf_counter_ns

        def synchronize(*args: Any, **kwargs: Any) -> Any:
            if get_ident() != training_thread_id[0]:
                return original(*args, **kwargs)
            began = now()
            try:
                return original(*args, **kwargs)
            finally:
                self._guarded("cuda_syncs", self._waited, (now() - began) / 1e6)

        return synchronize

    def _counted(self, original: Callable[..., Any]) -> Callable[..., Any]:
        training_thread_id = self._recorder.training_thread_id

        def empty_cache(*args: Any, **kwargs: Any) -> Any:
            if get_ident() == training_thread_id[0]:
                self._guarded("empty_cache", self._emptied)
            return original(*args, **kwargs)

        return empty_cache

    def _guarded(self, signal: str, note: Callable[..., None], *args: Any) -> None:
        try:
            note(*args)
        except Exception as error:  # noqa: BLE001 - the training must not notice
            self._recorder.signal_lost(signal, error)

    def _waited(self, took_ms: float) -> None:
        caller = _caller(sys._getframe(3))
        if caller is None or foreign(caller.f_code.co_filename):
            return
        self.calls, self.ms = self.calls + 1, self.ms + took_ms
        self._all, self._all_ms = self._all + 1, self._all_ms + took_ms
        place = location(caller)
        if place is not None and (place in self._places or len(self._places) < PLACES):
            self._places[place] += 1
            self._place_ms[place] = self._place_ms.get(place, 0.0) + took_ms

    def _emptied(self) -> None:
        self.emptied += 1
        if self.emptied_at is None:
            self.emptied_at = location(user_frame(4))


def _caller(frame: FrameType | None) -> FrameType | None:
    """Whoever called torch's public function."""
    while frame is not None and frame.f_code.co_filename.startswith(_PUBLIC):
        frame = frame.f_back
    return frame
