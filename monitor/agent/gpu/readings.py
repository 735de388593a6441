"""Readings: what NVML is asked about a device in each sample, and what its answers can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from monitor.agent.gpu.driver_calls import Limits

MB = 1e6
#: NVML's constants, which are part of its interface: memory errors since the driver was loaded.
CORRECTED, UNCORRECTED, SINCE_LOADED = 0, 1, 0


@dataclass(frozen=True)
class Reading:
    """One call.

    Attributes:
        call: what it is called in events.
        limits: key -> (least, greatest) its values can be, in the order of `read`'s answer.
        read: (pynvml, handle) -> the values.
        of: whom it can be asked of: any "device", the "board" a MIG part belongs to and shares it with,
            or a "whole" board only, so that a part has no such value.
        expendable: many devices do not have it, which is not worth a word.
        rare: it hardly changes, and is asked for now and then only.
    """

    call: str
    limits: Limits
    read: Callable[[Any, Any], Sequence[float]]
    of: Literal["device", "board", "whole"] = "whole"
    expendable: bool = False
    rare: bool = False


def _memory(nvml: Any, handle: Any) -> Sequence[float]:
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    return memory.used / MB, memory.total / MB


def _throttle_bits(nvml: Any, handle: Any) -> Sequence[float]:
    try:
        return (int(nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)),)
    except nvml.NVMLError_FunctionNotFound:  # older drivers know it by its former name only
        return (int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)),)


def _ecc(kind: int) -> Callable[[Any, Any], Sequence[float]]:
    return lambda nvml, handle: (nvml.nvmlDeviceGetTotalEccErrors(handle, kind, SINCE_LOADED),)


READINGS: tuple[Reading, ...] = (
    Reading("memory", {"gpu_memory_used_mb": (0, 1e7), "gpu_memory_total_mb": (1, 1e7)}, _memory, "device"),
    Reading(
        "utilisation",
        {"gpu_util": (0, 100)},
        lambda nvml, handle: (nvml.nvmlDeviceGetUtilizationRates(handle).gpu,),
    ),
    Reading(
        "power",
        {"gpu_power_w": (0, 1e4)},
        lambda nvml, handle: (nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,),
    ),
    Reading(
        "power limit",
        {"gpu_power_limit_w": (1, 1e4)},
        lambda nvml, handle: (nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1e3,),
        rare=True,
    ),
    Reading(
        "temperature",
        {"gpu_temperature_c": (-50, 200)},
        lambda nvml, handle: (nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),),
        "board",
    ),
    Reading(
        "clock",
        {"gpu_sm_clock_mhz": (0, 1e5)},
        lambda nvml, handle: (nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),),
        "board",
    ),
    Reading(
        "highest clock",
        {"gpu_sm_clock_max_mhz": (1, 1e5)},
        lambda nvml, handle: (nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM),),
        "board",
        rare=True,
    ),
    Reading("throttle reasons", {"gpu_throttle_bits": (0, 1 << 24)}, _throttle_bits, "board"),
    Reading(
        "corrected memory errors",
        {"gpu_ecc_corrected": (0, 1e15)},
        _ecc(CORRECTED),
        expendable=True,
        rare=True,
    ),
    Reading(
        "uncorrected memory errors",
        {"gpu_ecc_uncorrected": (0, 1e15)},
        _ecc(UNCORRECTED),
        expendable=True,
        rare=True,
    ),
)
