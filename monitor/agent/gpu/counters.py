"""Counters: numbers that only grow, told as what came since the last sample."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from monitor.agent.gpu.device import Device
from monitor.agent.gpu.driver_calls import DriverCalls, within

#: NVML's field ids: key -> (id, scope, bytes per count). All NVLinks together is scope 2³² − 1.
_ALL_LINKS = 0xFFFFFFFF
FIELDS: Mapping[str, tuple[int, int, int]] = {
    "gpu_pcie_out_mb_per_s": (197, 0, 1),
    "gpu_pcie_in_mb_per_s": (198, 0, 1),
    "gpu_nvlink_out_mb_per_s": (138, _ALL_LINKS, 1024),
    "gpu_nvlink_in_mb_per_s": (139, _ALL_LINKS, 1024),
}
#: NVML's counters of nvmlDeviceGetPcieThroughput, which answers in KB/s: sent, received by the GPU.
_PCIE = {"gpu_pcie_out_mb_per_s": 0, "gpu_pcie_in_mb_per_s": 1}
#: The most a rate can be, MB/s; and joules between two samples.
RATE, JOULES = 1e7, 1e7
#: How NVML says of what kind a field's value is -> the member of its union. 1 is the 32-bit one, which wraps.
_KINDS = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}
_WRAPS = 1

MB = 1e6


class Counters:
    """One device's counters.

    Args:
        nvml: the pynvml module.
        now: seconds; handed in, so that tests of time never sleep.
    """

    def __init__(
        self, nvml: Any, device: Device, calls: DriverCalls, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._nvml = nvml
        self._device = device
        self._calls = calls
        self._now = now
        self._before: dict[str, tuple[float, float]] = {}
        self._fields = dict(FIELDS)

    def row(self) -> dict[str, float]:
        """MB/s over PCIe and NVLink, and joules; NaN in the first sample and where they are not counted."""
        row = dict.fromkeys(FIELDS, math.nan) | self._rates()
        if all(math.isnan(row[key]) for key in _PCIE) and not set(_PCIE) & set(self._before):
            row |= self._pcie()
        millijoules = self._calls.paced(
            self._device.key,
            "energy",
            lambda: self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._device.handle),
        )
        joules = None if millijoules is None else self._grown("energy", millijoules / 1e3, self._now())
        return row | within({"gpu_energy_j": (0, JOULES)}, joules and (joules[0],))

    def _rates(self) -> dict[str, float]:
        wanted = [(number, scope) for number, scope, _ in self._fields.values()]
        answers = self._calls.paced(
            self._device.key,
            "traffic counters",
            lambda: list(self._nvml.nvmlDeviceGetFieldValues(self._device.handle, wanted)),
        )
        rates: dict[str, float] = {}
        for (key, (_, _, size)), answer in zip(self._fields.items(), answers or (), strict=False):
            rates |= within({key: (0, RATE)}, self._rate(key, answer, size))
        return rates

    def _rate(self, key: str, answer: Any, size: int) -> tuple[float] | None:
        """One field's rate; a field may fail alone."""
        kind = _KINDS.get(answer.valueType)
        if answer.nvmlReturn != 0 or kind is None:
            return None
        # The driver may answer with what it counted some time ago, and says when that was.
        at_s = answer.timestamp / 1e6 if answer.timestamp > 0 else self._now()
        count = float(getattr(answer.value, kind))
        grown = self._grown(key, count, at_s, 2.0**32 if answer.valueType == _WRAPS else None)
        return (grown[0] * size / MB / grown[1],) if grown and grown[1] > 0 else None

    def _grown(
        self, key: str, count: float, at_s: float, wrap: float | None = None
    ) -> tuple[float, float] | None:
        """Growth and seconds since the last answer; None for the first, and for one that was set back."""
        before = self._before.get(key)
        self._before[key] = count, at_s
        if before is None:
            return None
        more = count - before[0]
        if more < 0 and wrap:
            more += wrap
        return (more, at_s - before[1]) if more >= 0 else None

    def _pcie(self) -> dict[str, float]:
        """Where PCIe is not counted, what the driver measures in 20 ms; a slow call."""
        nvml, handle = self._nvml, self._device.handle
        answer = self._calls.paced(
            self._device.key,
            "PCIe throughput",
            lambda: [nvml.nvmlDeviceGetPcieThroughput(handle, which) * 1e3 / MB for which in _PCIE.values()],
        )
        return within(dict.fromkeys(_PCIE, (0, RATE)), answer)
