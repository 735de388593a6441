"""What a training process knows of its CUDA device. Begins by itself once the program uses one.

Until then, and on machines without a device, it asks `torch.cuda.is_initialized()` now and then and does
nothing else.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from monitor.probe.cuda import memory, oom
from monitor.probe.cuda.device import Device, Torch
from monitor.probe.cuda.timing import Timing
from monitor.probe.cuda.transfer import Batches, Transfers
from monitor.probe.cuda.waits import Waits
from monitor.probe.patches import Patches
from monitor.probe.recorder import Recorder

#: Time between two rows; and where the allocator's counters cost more to read.
ROW_NS, SLOW_ROW_NS = 1_000_000_000, 10_000_000_000
#: Blocks of memory beyond which no snapshot is taken: it would keep a dying process for seconds.
BLOCKS = 200_000


class Cuda:
    """One for each probe.

    Args:
        looks: what is called with batches that are looked at, and with their loader's number.
        transfers: the frameworks' functions that move a batch; asked once the device is in use.
        device: the device; tests hand in another one.
        now: nanoseconds; handed in, so that tests of time never sleep.

    Attributes:
        on: the program uses CUDA, and this watches.
    """

    def __init__(
        self,
        recorder: Recorder,
        patches: Patches,
        looks: list[Callable[[Any, int], None]],
        transfers: Callable[[], Iterable[tuple[str, str]]],
        device: Device | None = None,
        now: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.on = False
        self._looks = looks
        self._recorder, self._patches = recorder, patches
        self._functions = transfers
        self._device = device or Torch()
        self._now = now
        self._timing = Timing(self._device, recorder.clock.trace, now)
        self._waits = Waits(recorder)
        self._transfers = Transfers(recorder, patches)
        self._before: memory.Counters = {}
        self._row_steps = 0
        self._native = True
        self._facts_ns = 0
        self._said = False

    def look(self) -> None:
        """Begin once the program uses CUDA; from then on write the facts that changed."""
        if not self.on:
            if not self._device.initialized():
                return
            self._begin()
        if self._now() < self._facts_ns:
            return
        self._facts_ns = self._now() + ROW_NS
        self._transfers.install(self._functions())
        facts = {**self._device.facts(), "h2d_watched": self._transfers.seen}
        if self._waits.emptied_at is not None:
            facts["empty_cache_location"] = self._waits.emptied_at
        if self._timing.broken is not None:
            facts["not_timed"] = self._timing.broken
            self._say_once(f"the GPU's time for each phase is not measured: {self._timing.broken}")
            self._recorder.signal_lost("gpu_time", self._timing.broken)
        self._native = facts.get("backend", "native") == "native"
        self._recorder.fact("cuda", facts)
        waits = self._waits.facts()
        if waits is not None:
            self._recorder.fact("syncs", waits)

    def finish(self) -> None:
        """The training is over: the last row, and the facts as they stand."""
        if self.on and self._recorder.here:
            self._facts_ns = 0
            with contextlib.suppress(Exception):  # a device that failed answers nothing any more
                self._row()
                self.look()

    def failed(
        self,
        error: BaseException,
        location: str | None,
        modules: Iterable[nn.Module],
        optimizers: Iterable[torch.optim.Optimizer],
    ) -> None:
        """Where an exception that ends the program says that memory ran out: tell who holds it."""
        cause = oom.out_of_memory(error) if self.on else None
        if cause is None:
            return
        fields: dict[str, Any] = {"message": str(cause)[:500], "location": location, "caught": False}
        fields["requested_mb"] = oom.requested_mb(str(cause))
        with contextlib.suppress(Exception):
            fields["free_mb"] = self._device.free_mb()
        with contextlib.suppress(Exception):
            counters = self._device.memory()
            self._before = {**self._before, "num_ooms": memory.value(counters, ("num_ooms",)) or 0}
            fields.update(_standing(counters))
            if _blocks(counters) <= BLOCKS:
                holdings = [*oom.known(modules, optimizers), *oom.in_frames(cause)]
                fields.update(oom.summarise(self._device.segments(), holdings, self._device.index()))
        self._recorder.event("oom", device=self._device.index(), **fields)

    def _begin(self) -> None:
        recorder, timing, slow = self._recorder, self._timing, not self._device.quick
        every_ns = SLOW_ROW_NS if slow else ROW_NS
        self._before = self._device.memory()
        self._row_steps = recorder.steps
        row_ns = self._now() + every_ns

        def after(_: int) -> None:
            nonlocal row_ns
            try:
                at_ns = self._now()
                if timing.running or at_ns >= timing.due_ns:
                    timing.step(at_ns)
                if at_ns >= row_ns:
                    row_ns = at_ns + every_ns
                    self._row()
            except Exception as error:  # noqa: BLE001 - the training must not notice
                self._stop(after, f"{type(error).__name__}: {error}"[:200])
                recorder.signal_lost("cuda_memory", error)

        self.on = True
        self._waits.install(self._patches)
        self._looks.append(Batches(recorder).look)
        recorder.each.append(after)
        self._patches.on_undo(lambda: self._stop(after, "detached"))

    def _say_once(self, text: str) -> None:
        if not self._said:
            self._said = True
            self._recorder.event("warn", text=text)

    def _stop(self, after: Callable[[int], None], why: str) -> None:
        self._timing.stop(why)
        self._looks.clear()
        if after in self._recorder.each:
            self._recorder.each.remove(after)

    def _row(self) -> None:
        if self._device.capturing():
            return
        steps = self._recorder.steps - self._row_steps
        counters = self._device.memory()
        values = memory.row(counters, self._before, native=self._native)
        self._before, self._row_steps = counters, self._recorder.steps
        if not steps and not values.get("cuda_ooms"):
            return
        row = {"cuda_steps": float(steps), **values, **self._timing.take(), **self._waits.take()}
        self._recorder.event("cuda", values={key: round(value, 6) for key, value in row.items()})
        if values.get("cuda_ooms"):
            # The program caught it: the moment is over, and who held what with it.
            self._recorder.event("oom", device=self._device.index(), caught=True, **_standing(counters))


def _standing(counters: memory.Counters) -> dict[str, float]:
    """The allocator's figures as they stand, in the names of the event "oom"."""
    values = memory.row(counters, counters)
    names = ("allocated_mb", "reserved_mb", "split_mb", "peak_mb")
    return {name: values[f"cuda_{name}"] for name in names if f"cuda_{name}" in values}


def _blocks(counters: memory.Counters) -> float:
    paths = (("active", "all", "current"), ("inactive_split", "all", "current"))
    return sum(memory.value(counters, path) or 0 for path in paths)
