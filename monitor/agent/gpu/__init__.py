"""Samples of the GPUs: NVIDIA's through NVML, AMD's through amdsmi. CUDA is never touched.

Anything may fail here at any time, also with exceptions of classes that the library does not name:
a value that fails is NaN and is said once; the rest goes on.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Any, Protocol

from monitor.agent.gpu.amd import Amd
from monitor.agent.gpu.device import Device, Wanted, chosen, wanted
from monitor.agent.gpu.driver_calls import DriverCalls, reason
from monitor.agent.gpu.nvidia import Nvidia
from monitor.schema import keys_of

__all__ = ["GpuSampler", "Wanted", "wanted"]

_KEYS = keys_of("gpu")


class Maker(Protocol):
    """One maker's devices."""

    devices: list[Device]

    def open(self) -> None:
        """Find the devices. Raises anything."""

    def row(self, device: Device, ours: Collection[int]) -> dict[str, float]:
        """What one device says now."""

    def others(self, device: Device) -> list[dict[str, Any]]:
        """Other processes on it."""

    def fetch_errors(self, shown: Collection[int]) -> None:
        """Note errors the driver reported."""


class GpuSampler:
    """Opens the drivers at `start` and reads every device that the run may use."""

    def __init__(self) -> None:
        self._calls = DriverCalls()
        self._maker: Maker | None = None
        self._shown: list[Device] = []
        self._events: list[dict[str, Any]] = []

    def start(self) -> None:
        """Find the devices. Where there are none, `events` says why."""
        why = []
        for maker in (Nvidia(self._calls), Amd(self._calls)):
            try:
                maker.open()
            except Exception as error:  # noqa: BLE001 - drivers raise classes of their own
                why.append(reason(error))
            if maker.devices:
                self._maker, self._shown = maker, list(maker.devices)
                return
        self._events.append({"kind": "no_gpu", "why": "; ".join(why) or "the driver lists no device"})

    def events(self) -> list[dict[str, Any]]:
        """`no_gpu`, `gpu_unread` and `gpu_error` events since the last call, without their time."""
        pending, self._events = self._events, []
        return pending + self._calls.events()

    def facts(self) -> list[dict[str, Any]]:
        """The devices of this run: `gpu` (as in the stream's name), index, uuid, name, and others on it."""
        return [
            {
                "gpu": device.key,
                "index": device.index,
                "uuid": device.uuid,
                "name": device.name,
                "part": device.part is not None,
                "others": self._maker.others(device) if self._maker else [],
            }
            for device in self._shown
        ]

    def choose(self, ranks: Iterable[Wanted]) -> None:
        """Keep to the devices that the ranks use, as far as that is known."""
        if self._maker is not None:
            self._shown = chosen(self._maker.devices, ranks)

    def sample(self, ours: Collection[int] = ()) -> dict[str, dict[str, float]]:
        """Device key -> one row of `gpu/NAME/KEY`.

        Args:
            ours: pids of this run, to tell its share of a device from others'.
        """
        if self._maker is None:
            return {}
        self._maker.fetch_errors({device.index for device in self._shown})
        return {device.key: self._row(self._maker, device, ours) for device in self._shown}

    def _row(self, maker: Maker, device: Device, ours: Collection[int]) -> dict[str, float]:
        row = self._calls.ask(device.key, "sample", lambda: maker.row(device, ours)) or {}
        return {key: row.get(key, math.nan) for key in _KEYS}
