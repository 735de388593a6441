"""AMD's devices through amdsmi, in the same form. Not run on a real device yet: see docs/gpu-check.md."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from monitor.agent.gpu.device import Device
from monitor.agent.gpu.driver_calls import DriverCalls, Limits, within
from monitor.agent.gpu.processes import Held, named, occupancy

#: Bytes of a megabyte, and of the mebibytes that amdsmi counts video memory in.
MB, MIB = 1e6, 1024 * 1024 / 1e6
#: The driver's own file, which is there on a machine with AMD's compute driver only.
DRIVER = "/dev/kfd"

Read = Callable[[Any, Any], Sequence[Any]]


class NoLibraryError(Exception):
    """There is an AMD device, and no library to ask it with."""


def _activity(smi: Any, handle: Any) -> Sequence[Any]:
    return (smi.amdsmi_get_gpu_activity(handle)["gfx_activity"],)


def _memory(smi: Any, handle: Any) -> Sequence[Any]:
    usage = smi.amdsmi_get_gpu_vram_usage(handle)
    return usage["vram_used"] * MIB, usage["vram_total"] * MIB


def _power(smi: Any, handle: Any) -> Sequence[Any]:
    reply = smi.amdsmi_get_power_info(handle)
    now = reply["current_socket_power"]
    return (now if isinstance(now, int | float) and now else reply["average_socket_power"],)


def _limit(smi: Any, handle: Any) -> Sequence[Any]:
    return (smi.amdsmi_get_power_cap_info(handle)["power_cap"] / 1e6,)


def _temperature(smi: Any, handle: Any) -> Sequence[Any]:
    hottest, now = smi.AmdSmiTemperatureType.HOTSPOT, smi.AmdSmiTemperatureMetric.CURRENT
    return (smi.amdsmi_get_temp_metric(handle, hottest, now),)


def _clock(smi: Any, handle: Any) -> Sequence[Any]:
    reply = smi.amdsmi_get_clock_info(handle, smi.AmdSmiClkType.GFX)
    return reply["clk"], reply["max_clk"]


def _errors(smi: Any, handle: Any) -> Sequence[Any]:
    reply = smi.amdsmi_get_gpu_total_ecc_count(handle)
    return reply["correctable_count"], reply["uncorrectable_count"]


#: What is asked, what its values can be, and how.
READINGS: Sequence[tuple[str, Limits, Read]] = (
    ("utilisation", {"gpu_util": (0, 100)}, _activity),
    ("memory", {"gpu_memory_used_mb": (0, 1e7), "gpu_memory_total_mb": (1, 1e7)}, _memory),
    ("power", {"gpu_power_w": (0, 1e4)}, _power),
    ("power limit", {"gpu_power_limit_w": (1, 1e4)}, _limit),
    ("temperature", {"gpu_temperature_c": (-50, 200)}, _temperature),
    ("clock", {"gpu_sm_clock_mhz": (0, 1e5), "gpu_sm_clock_max_mhz": (1, 1e5)}, _clock),
    ("memory errors", {"gpu_ecc_corrected": (0, 1e15), "gpu_ecc_uncorrected": (0, 1e15)}, _errors),
)


class Amd:
    """The devices that amdsmi lists. What it has no counterpart for (Tensor Cores, throttle bits) is NaN."""

    def __init__(self, calls: DriverCalls) -> None:
        self._calls = calls
        self._smi: Any = None
        self._others: dict[str, list[dict[str, Any]]] = {}
        self.devices: list[Device] = []

    def open(self) -> None:
        """Find the devices.

        Raises:
            NoLibraryError: there is a device, and amdsmi is not installed.
            Exception: of any class: there is no driver, or it does not work.
        """
        if not os.path.exists(DRIVER):
            return
        try:
            import amdsmi
        except Exception as error:  # without its library the package raises a KeyError
            raise NoLibraryError(f"AMD GPU: amdsmi cannot be imported ({type(error).__name__})") from error
        amdsmi.amdsmi_init()
        self._smi = amdsmi
        for index, handle in enumerate(amdsmi.amdsmi_get_processor_handles()):
            key = str(index)
            uuid = self._calls.ask(key, "UUID", partial(amdsmi.amdsmi_get_gpu_device_uuid, handle))
            about = self._calls.ask(key, "name", partial(amdsmi.amdsmi_get_gpu_asic_info, handle)) or {}
            name = str(about.get("market_name") or "AMD GPU")
            self.devices.append(Device(key, index, str(uuid or ""), name, handle, handle))

    def row(self, device: Device, ours: Collection[int]) -> dict[str, float]:
        """One row of `gpu/NAME/KEY`."""
        row: dict[str, float] = {}
        for call, limits, read in READINGS:
            answer = self._calls.paced(device.key, call, partial(read, self._smi, device.handle))
            row |= within(limits, answer)
        held = self._calls.paced(device.key, "processes", partial(_held, self._smi, device.handle)) or []
        self._others[device.key] = named(held, ours)
        return row | occupancy(held, ours)

    def others(self, device: Device) -> list[dict[str, Any]]:
        """Pid and name of other processes on it, as of the last row."""
        return self._others.get(device.key, [])

    def fetch_errors(self, shown: Collection[int]) -> None:
        """Nothing: amdsmi is not asked for events."""


def _held(smi: Any, handle: Any) -> list[Held]:
    listed = smi.amdsmi_get_gpu_process_list(handle)
    return [Held(int(each["pid"]), each["memory_usage"]["vram_mem"] / MB) for each in listed]
