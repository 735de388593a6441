"""Processes: whose memory and work is on a device, told apart as this run's and others'."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from monitor.agent import proc
from monitor.agent.gpu.device import Device
from monitor.agent.gpu.driver_calls import DriverCalls

#: Other processes that are named at most.
NAMED = 8
MB = 1e6
#: What a device tells of its processes; NaN where that cannot be told.
UNKNOWN: Mapping[str, float] = dict.fromkeys(
    ("gpu_own_memory_mb", "gpu_others_memory_mb", "gpu_others_util"), math.nan
)


@dataclass(frozen=True)
class Held:
    """One process on a device.

    Attributes:
        pid: as the driver numbers processes, which inside a container may not be our numbers.
        mb: memory it holds, None where the driver does not tell.
        util: per cent of the device that it used lately, None where that is not told.
    """

    pid: int
    mb: float | None = None
    util: float | None = None


def occupancy(held: Sequence[Held], ours: Collection[int]) -> dict[str, float]:
    """A row of what belongs to this run and what to others, in MB and per cent.

    Where none of our processes is among them nobody can tell: inside a container the driver shows other
    numbers, or nothing, and a run that does not use the device is not harmed by others on it.
    """
    mine = [each for each in held if each.pid in ours]
    others = [each for each in held if each.pid not in ours]
    if not mine:
        return dict(UNKNOWN)
    used = [each.util for each in held]
    any_known = any(util is not None for util in used)
    return {
        "gpu_own_memory_mb": _sum(each.mb for each in mine),
        "gpu_others_memory_mb": _sum(each.mb for each in others),
        "gpu_others_util": _sum(each.util or 0.0 for each in others) if any_known else math.nan,
    }


def named(held: Sequence[Held], ours: Collection[int]) -> list[dict[str, Any]]:
    """Pid and name of the others, those that hold most first; none where nobody can tell."""
    if not any(each.pid in ours for each in held):
        return []
    others = sorted((each for each in held if each.pid not in ours), key=lambda each: -(each.mb or 0.0))
    return [{"pid": each.pid, "name": _name(each.pid)} for each in others[:NAMED]]


class Processes:
    """The processes on one device of NVML's.

    Args:
        nvml: the pynvml module.
    """

    def __init__(self, nvml: Any, device: Device, calls: DriverCalls) -> None:
        self._nvml = nvml
        self._device = device
        self._calls = calls
        self._seen_us = 0

    def held(self) -> list[Held]:
        """Who is on it now."""
        listed = self._calls.paced(self._device.key, "processes", self._list) or []
        used = self._used() if listed else {}
        return [Held(pid, mb, used.get(pid)) for pid, mb in listed]

    def _list(self) -> list[tuple[int, float | None]]:
        nvml, handle = self._nvml, self._device.handle
        try:
            found = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
        except Exception:  # noqa: BLE001 - drivers before R510 lack it, which pynvml says in a class of its own
            found = nvml.nvmlDeviceGetComputeRunningProcesses_v2(handle)
        held: dict[int, float | None] = {}
        for each in found:
            mb = None if each.usedGpuMemory is None else each.usedGpuMemory / MB
            held[int(each.pid)] = mb if mb is None or held.get(int(each.pid)) is None else mb + held[each.pid]
        return list(held.items())

    def _used(self) -> dict[int, float]:
        """Pid -> per cent of the multiprocessors, of the newest sample since the last call."""
        if self._device.part is not None:
            return {}
        nvml, handle = self._nvml, self._device.handle
        found = self._calls.paced(
            self._device.key,
            "use by process",
            lambda: list(nvml.nvmlDeviceGetProcessUtilization(handle, self._seen_us)),
            quiet=True,  # it is an error to have nothing new to tell
        )
        fresh = [each for each in found or () if each.timeStamp > self._seen_us and each.smUtil <= 100]
        if fresh:
            self._seen_us = max(each.timeStamp for each in fresh)
        return {int(each.pid): float(each.smUtil) for each in sorted(fresh, key=lambda one: one.timeStamp)}


def _name(pid: int) -> str:
    found = proc.stat(pid)
    return found.name if found is not None else ""


def _sum(values: Any) -> float:
    """Their sum; NaN where one is not known."""
    known = [math.nan if value is None else float(value) for value in values]
    return math.fsum(known)
