"""Samples of the GPUs through NVML. It never touches CUDA, which would take hundreds of megabytes.

Anything may fail here at any time, also with exceptions of classes that the library does not name:
a value that fails is NaN and is said once; the rest goes on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

MB = 1e6
#: What is read of a device: call -> {key: (least, greatest) the value can be}. What lies outside is
#: garbage (some integrated boards answer with it) and becomes NaN.
READINGS: dict[str, dict[str, tuple[float, float]]] = {
    "utilisation": {"gpu_util": (0, 100)},
    "memory": {"gpu_memory_used_mb": (0, 1e7), "gpu_memory_total_mb": (1, 1e7)},
    "power": {"gpu_power_w": (0, 1e4)},
    "power limit": {"gpu_power_limit_w": (1, 1e4)},
    "temperature": {"gpu_temperature_c": (-50, 200)},
    "clock": {"gpu_sm_clock_mhz": (0, 1e5)},
    "throttle reasons": {"gpu_throttle_bits": (0, 1 << 24)},
}
#: Events fetched from NVML in one sample at most.
MAX_EVENTS = 16


@dataclass(frozen=True)
class Device:
    """One GPU. `index` is NVML's, in order of PCI address."""

    index: int
    uuid: str
    name: str
    handle: Any


class GpuSampler:
    """Opens NVML at the first `start` and reads every device that the run may use."""

    def __init__(self) -> None:
        self.devices: list[Device] = []
        self._chosen: list[int] | None = None
        self._said: set[tuple[object, str]] = set()
        self._events: list[dict[str, Any]] = []
        self._nvml: Any = None
        self._event_set: Any = None

    def start(self) -> None:
        """Find the devices. Where there are none, `events` says why."""
        try:
            import pynvml

            pynvml.nvmlInit()
            self._nvml = pynvml
            count = pynvml.nvmlDeviceGetCount()
        except Exception as error:  # noqa: BLE001 - drivers raise classes of their own
            self._events.append({"kind": "no_gpu", "why": _reason(error)})
            return
        found = (self._device(index) for index in range(count))
        self.devices = [device for device in found if device is not None]
        if not self.devices:
            self._events.append({"kind": "no_gpu", "why": "the driver lists no device"})
        self._watch_errors()

    def events(self) -> list[dict[str, Any]]:
        """`no_gpu` and `gpu_error` events since the last call, without their time."""
        events, self._events = self._events, []
        return events

    def facts(self) -> list[dict[str, Any]]:
        """Index, UUID and name of the devices of this run."""
        return [{"index": d.index, "uuid": d.uuid, "name": d.name} for d in self._shown()]

    def choose(self, visible: Iterable[str | None]) -> None:
        """Keep to the devices that the ranks can see.

        Args:
            visible: CUDA_VISIBLE_DEVICES of each rank as far as known; None shows all devices.
        """
        indices: set[int] = set()
        for text in visible:
            seen = visible_indices(self.devices, text, self._mig_parent)
            if seen is None:
                self._chosen = None
                return
            indices.update(seen)
        self._chosen = sorted(indices)

    def sample(self) -> dict[int, dict[str, float]]:
        """Device index -> one row of `gpu/NAME/I`."""
        self._fetch_errors()
        return {device.index: self._row(device) for device in self._shown()}

    def _shown(self) -> list[Device]:
        if self._chosen is None:
            return self.devices
        return [device for device in self.devices if device.index in self._chosen]

    def _device(self, index: int) -> Device | None:
        nvml = self._nvml
        handle = self._try(index, "handle", lambda: nvml.nvmlDeviceGetHandleByIndex(index))
        if handle is None:
            return None
        uuid = self._try(index, "UUID", lambda: nvml.nvmlDeviceGetUUID(handle))
        name = self._try(index, "name", lambda: nvml.nvmlDeviceGetName(handle))
        return Device(index, _text(uuid), _text(name), handle)

    def _row(self, device: Device) -> dict[str, float]:
        row: dict[str, float] = {}
        for call, limits in READINGS.items():
            values = self._try(device.index, call, partial(_read, self._nvml, device.handle, call))
            known = values or [math.nan] * len(limits)
            for (key, (least, greatest)), value in zip(limits.items(), known, strict=True):
                row[key] = float(value) if least <= value <= greatest else math.nan
        return row

    def _watch_errors(self) -> None:
        """Have critical errors of the driver (Xid) reported, where it can."""
        nvml = self._nvml

        def register() -> Any:
            events = nvml.nvmlEventSetCreate()
            for device in self.devices:
                nvml.nvmlDeviceRegisterEvents(device.handle, nvml.nvmlEventTypeXidCriticalError, events)
            return events

        if self.devices:
            self._event_set = self._try("all", "critical errors", register)

    def _fetch_errors(self) -> None:
        nvml = self._nvml
        for _ in range(MAX_EVENTS):
            if self._event_set is None:
                return
            try:
                data = nvml.nvmlEventSetWait(self._event_set, 0)
            except Exception:  # noqa: BLE001 - a timeout: no event
                return
            xid = int(data.eventData)
            self._events.append(
                {"kind": "gpu_error", "gpu": self._index_of(data.device), "xid": xid, "error": f"Xid {xid}"}
            )

    def _index_of(self, handle: Any) -> int | None:
        index = self._try("all", "index", lambda: self._nvml.nvmlDeviceGetIndex(handle))
        return index if isinstance(index, int) else None

    def _mig_parent(self, uuid: str) -> int | None:
        nvml = self._nvml

        def find() -> Any:
            part = nvml.nvmlDeviceGetHandleByUUID(uuid)
            return nvml.nvmlDeviceGetIndex(nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(part))

        index = self._try(uuid, "MIG device", find)
        return index if isinstance(index, int) else None

    def _try(self, gpu: object, call: str, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except Exception as error:  # noqa: BLE001 - drivers raise classes of their own
            if (gpu, call) not in self._said:
                self._said.add((gpu, call))
                self._events.append({"kind": "gpu_error", "gpu": gpu, "call": call, "error": _reason(error)})
            return None


def visible_indices(
    devices: list[Device], visible: str | None, mig_parent: Callable[[str], int | None]
) -> list[int] | None:
    """Devices that CUDA_VISIBLE_DEVICES leaves; None when all, or when nobody can tell.

    As CUDA does: indices or the beginnings of UUIDs, and nothing behind the first that names none.
    """
    if visible is None:
        return None
    found: list[int] = []
    for part in (part.strip() for part in visible.split(",")):
        if part.isdigit():
            match = int(part) if any(device.index == int(part) for device in devices) else None
        elif part.startswith("MIG-"):
            match = mig_parent(part)
            if match is None:
                return None
        else:
            named = [d.index for d in devices if part.startswith("GPU-") and d.uuid.startswith(part)]
            match = named[0] if len(named) == 1 else None
        if match is None:
            break
        found.append(match)
    return found


def visible_of(facts: Mapping[str, Any], environment: Mapping[str, str] | None) -> str | None:
    """A rank's CUDA_VISIBLE_DEVICES: as the probe saw it, else as the process was started with."""
    env = facts.get("env")
    told = env.get("cuda_visible_devices") if isinstance(env, dict) else None
    return told if isinstance(told, str) else (environment or {}).get("CUDA_VISIBLE_DEVICES")


def _read(nvml: Any, handle: Any, call: str) -> list[float]:
    if call == "utilisation":
        return [nvml.nvmlDeviceGetUtilizationRates(handle).gpu]
    if call == "memory":
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        return [memory.used / MB, memory.total / MB]
    if call == "power":
        return [nvml.nvmlDeviceGetPowerUsage(handle) / 1e3]
    if call == "power limit":
        return [nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1e3]
    if call == "temperature":
        return [nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)]
    if call == "clock":
        return [nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)]
    return [_throttle_bits(nvml, handle)]


def _throttle_bits(nvml: Any, handle: Any) -> int:
    try:
        return int(nvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    except Exception:  # noqa: BLE001 - older drivers and bindings know it by its former name only
        return int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]
