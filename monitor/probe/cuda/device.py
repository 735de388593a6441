"""The one place that asks torch for its CUDA device. It never initialises CUDA, and never waits for it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch

from monitor.probe import torch_compat
from monitor.probe.precision import matmul_precision

#: Environment variables that set up the allocator, newest name first.
ALLOCATOR_VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")


class Stream(Protocol):
    """A queue of the device's."""

    def query(self) -> bool:
        """Whether everything in it is done: the device has run dry."""


class Event(Protocol):
    """A moment in a stream."""

    def record(self, stream: Any) -> None:
        """Put it behind everything that the stream holds."""

    def query(self) -> bool:
        """Whether the device has come past it."""

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds from this moment to a later one. Raises unless both are past."""


class Device(Protocol):
    """What the rest of this room knows of a device; tests hand in another one.

    Attributes:
        quick: the allocator's counters can be read without flattening them first, which costs 63 µs.
    """

    quick: bool

    def initialized(self) -> bool:
        """Whether the program uses CUDA. Nothing else here is called before it does."""

    def capturing(self) -> bool:
        """Whether the current stream is being captured into a graph, where nothing may be asked."""

    def event(self) -> Event:
        """A new event that keeps time."""

    def stream(self) -> Stream:
        """The current stream of the current device."""

    def memory(self) -> Mapping[str, Any]:
        """The allocator's counters of the current device, nested or flat; see `torch.cuda.memory_stats`."""

    def segments(self) -> Sequence[Mapping[str, Any]]:
        """The allocator's segments of all devices without their history; see `memory_snapshot`."""

    def index(self) -> int:
        """The current device."""

    def free_mb(self) -> float:
        """Megabytes (1e6) that the driver can still give."""

    def facts(self) -> dict[str, Any]:
        """What the device is and how torch is set up for it; what cannot be read is left out."""


class Torch:
    """The real one, through `torch.cuda`."""

    def __init__(self) -> None:
        self.initialized: Callable[[], bool] = torch.cuda.is_initialized
        self.capturing: Callable[[], bool] = torch.cuda.is_current_stream_capturing
        self.stream: Callable[[], Any] = torch.cuda.current_stream
        self.index: Callable[[], int] = torch.cuda.current_device
        self._counters = torch_compat.value_or(torch_compat.CUDA_MEMORY, None)
        self.quick = self._counters is not None

    def event(self) -> Any:
        """As the protocol says."""
        return torch.cuda.Event(enable_timing=True)

    def memory(self) -> Mapping[str, Any]:
        """As the protocol says."""
        if self._counters is None:
            flat: Mapping[str, Any] = torch.cuda.memory_stats()
            return flat
        counters: Mapping[str, Any] = self._counters(self.index())
        return counters

    def segments(self) -> Sequence[Mapping[str, Any]]:
        """As the protocol says."""
        try:
            found: Sequence[Mapping[str, Any]] = torch.cuda.memory_snapshot(include_traces=False)
        except TypeError:  # before torch 2.9 the light form has no name; traces are empty unless asked for
            found = torch.cuda.memory_snapshot()
        return found

    def free_mb(self) -> float:
        """As the protocol says."""
        return float(torch.cuda.mem_get_info()[0]) / 1e6

    def facts(self) -> dict[str, Any]:
        """As the protocol says."""
        found: dict[str, Any] = {}
        for name, ask in _QUESTIONS.items():
            # Old versions lack a name, and torch refuses some questions where two settings contradict.
            with contextlib.suppress(Exception):
                found[name] = ask()
        with contextlib.suppress(Exception):
            found.update(describe(torch.cuda.get_device_properties(self.index())))
        with contextlib.suppress(Exception):
            found["uuids"] = self._uuids()
        conf = found.get("conf") or ""
        return {**found, "expandable_segments": "expandable_segments:true" in conf.replace(" ", "").lower()}

    def _uuids(self) -> list[str]:
        """UUIDs of the devices on which this process holds memory, its current one first."""
        mine = self.index()
        others = [index for index in range(torch.cuda.device_count()) if index != mine]
        held = [mine, *(index for index in others if self._reserved(index))]
        found = [describe(torch.cuda.get_device_properties(index))["uuid"] for index in held]
        return [uuid for uuid in found if uuid]

    def _reserved(self, index: int) -> int:
        if self._counters is None:
            return int(torch.cuda.memory_reserved(index))
        return int(self._counters(index)["reserved_bytes"]["all"]["current"])


def _allocator_setting() -> str | None:
    return next((os.environ[name] for name in ALLOCATOR_VARIABLES if name in os.environ), None)


_QUESTIONS: dict[str, Callable[[], Any]] = {
    "device": lambda: torch.cuda.current_device(),
    "devices": lambda: torch.cuda.device_count(),
    "cuda": lambda: torch.version.cuda,
    "hip": lambda: torch.version.hip,
    "conf": _allocator_setting,
    "backend": lambda: torch.cuda.get_allocator_backend(),
    "matmul_precision": matmul_precision,
    "cudnn_tf32": lambda: torch.backends.cudnn.allow_tf32,
    "cudnn_benchmark": lambda: torch.backends.cudnn.benchmark,
    "deterministic": torch.are_deterministic_algorithms_enabled,
}


def describe(properties: Any) -> dict[str, Any]:
    """Name, compute capability, memory in MB (1e6), multiprocessors and UUID as the driver writes it."""
    uuid = getattr(properties, "uuid", None)
    return {
        "name": properties.name,
        "capability": [properties.major, properties.minor],
        "total_mb": round(properties.total_memory / 1e6, 1),
        "sm_count": properties.multi_processor_count,
        "uuid": uuid and (str(uuid) if str(uuid).startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"),
    }
