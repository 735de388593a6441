"""A CUDA device that is none: one stream that works off what was launched, on a clock of the test's.

It stands at the process's edge, where a real device would be, because the machines that run these tests
have none. It is as strict as the real one: an event that is not past gives no time, and while a graph is
captured every question is a mistake.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

MS = 1_000_000

# A build of torch without CUDA lacks these; the device that is stood in for has them.
for _name in ("_cuda_synchronize", "_cuda_emptyCache"):
    if not hasattr(torch._C, _name):
        setattr(torch._C, _name, lambda *_: None)


class Hands:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.ns = 1_000 * MS

    def __call__(self) -> int:
        """Nanoseconds."""
        return self.ns

    def on(self, ms: float) -> None:
        """So many milliseconds pass on the host."""
        self.ns += int(ms * MS)


class FakeEvent:
    """A moment in the one stream."""

    def __init__(self, device: FakeDevice) -> None:
        self._device = device
        self._on: int | None = None
        self.at_ns: int | None = None

    def record(self, stream: Any) -> None:
        """Behind all that was launched."""
        assert stream is self._device
        self._device.called("record")
        self._on = self._device.current if self._on is None else self._on
        assert self._on == self._device.current, "an event of another device"
        self.at_ns = max(self._device.free_ns, self._device.now())

    def query(self) -> bool:
        """Whether it is past."""
        self._device.called("event.query")
        return self.at_ns is not None and self.at_ns <= self._device.now()

    def elapsed_time(self, end: FakeEvent) -> float:
        """As the real one, it raises where one of the two is not past."""
        self._device.called("elapsed_time")
        for event in (self, end):
            if event.at_ns is None or event.at_ns > self._device.now():
                raise RuntimeError("CUDA error: device not ready")
        assert self.at_ns is not None
        assert end.at_ns is not None
        return (end.at_ns - self.at_ns) / MS


class FakeDevice:
    """See `monitor.probe.cuda.device.Device`.

    Attributes:
        calls: every question in the order in which it was asked.
        free_ns: when the stream will have run dry.
        captures: a graph is being captured.
        costs_ms: what each question takes of the host's time; needs `Hands`.
        made: events made.
        used: the program uses the device.
        current: which device is the current one.
    """

    def __init__(self, now: Callable[[], int] = time.perf_counter_ns, *, used: bool = True) -> None:
        self.now = now
        self.used = used
        self.current = 0
        self.quick = True
        self.free_ns = 0
        self.captures = False
        self.costs_ms = 0.0
        self.made = 0
        self.calls: list[str] = []
        self.counters: Mapping[str, Any] = counters()
        self.pieces: Sequence[Mapping[str, Any]] = ()
        self.about: dict[str, Any] = {"name": "NVIDIA Test", "capability": [8, 0], "backend": "native"}
        self.broken = False

    def called(self, name: str) -> None:
        """Take a question."""
        assert not self.captures, f"{name} while a graph is captured"
        self.calls.append(name)
        if self.broken:
            raise RuntimeError("CUDA error: device-side assert triggered")
        if isinstance(self.now, Hands):
            self.now.on(self.costs_ms)

    def launch(self, ms: float) -> None:
        """Work for the device, behind what it has already."""
        self.free_ns = max(self.free_ns, self.now()) + int(ms * MS)

    def initialized(self) -> bool:
        """As the protocol says."""
        return self.used

    def capturing(self) -> bool:
        """As the protocol says."""
        return self.captures

    def event(self) -> FakeEvent:
        """As the protocol says."""
        self.called("event")
        self.made += 1
        return FakeEvent(self)

    def stream(self) -> FakeDevice:
        """The one stream is the device itself."""
        self.called("stream")
        return self

    def query(self) -> bool:
        """Whether the stream has run dry."""
        self.called("query")
        return self.free_ns <= self.now()

    def memory(self) -> Mapping[str, Any]:
        """As the protocol says."""
        self.called("memory")
        return self.counters

    def segments(self) -> Sequence[Mapping[str, Any]]:
        """As the protocol says."""
        self.called("segments")
        return self.pieces

    def index(self) -> int:
        """As the protocol says."""
        return self.current

    def free_mb(self) -> float:
        """As the protocol says."""
        self.called("free_mb")
        return 12.5

    def facts(self) -> dict[str, Any]:
        """As the protocol says."""
        self.called("facts")
        return dict(self.about)


def counters(
    *,
    allocated: int = 6_500_000_000,
    reserved: int = 24_000_000_000,
    split: int = 6_400_000_000,
    peak: int = 20_000_000_000,
    **counts: int,
) -> dict[str, Any]:
    """The allocator's counters in the nested form that torch 2.13 documents; bytes, and counts by name.

    Counts: num_alloc_retries, num_ooms, num_device_alloc, num_device_free, allocations, small.
    """

    def stat(current: int, peak: int = 0, total: int = 0) -> dict[str, int]:
        return {"current": current, "peak": peak or current, "allocated": total, "freed": total - current}

    def pools(whole: dict[str, int], small: dict[str, int] | None = None) -> dict[str, Any]:
        return {"all": whole, "small_pool": small or stat(0), "large_pool": stat(0)}

    plain = ("num_alloc_retries", "num_ooms", "num_device_alloc", "num_device_free", "num_sync_all_streams")
    return {
        **{name: counts.get(name, 0) for name in plain},
        "allocated_bytes": pools(stat(allocated, peak)),
        "reserved_bytes": pools(stat(reserved)),
        "active_bytes": pools(stat(allocated)),
        "inactive_split_bytes": pools(stat(split)),
        "requested_bytes": pools(stat(allocated)),
        "allocation": pools(
            stat(10, 20, counts.get("allocations", 100)), stat(5, 10, counts.get("small", 60))
        ),
        "segment": pools(stat(234)),
        "active": pools(stat(90)),
        "inactive_split": pools(stat(30)),
        "oversize_allocations": stat(0),
        "oversize_segments": stat(0),
        "max_split_size": -1,
    }
