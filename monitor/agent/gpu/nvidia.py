"""NVIDIA's devices through NVML. It never touches CUDA, which would take hundreds of megabytes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from monitor.agent.gpu.counters import Counters
from monitor.agent.gpu.device import Device
from monitor.agent.gpu.driver_calls import DriverCalls, within
from monitor.agent.gpu.gpm import Gpm
from monitor.agent.gpu.processes import Held, Processes, named, occupancy
from monitor.agent.gpu.readings import READINGS, Reading

#: Events fetched from NVML in one sample at most.
MAX_EVENTS = 16
#: Parts that a board can have at most (NVML: 7).
MAX_PARTS = 16


class Nvidia:
    """The devices that NVML lists.

    Args:
        asking: takes what fails.

    Attributes:
        devices: boards in order of PCI address; in place of one that is cut up by MIG, its parts.
    """

    def __init__(self, calls: DriverCalls) -> None:
        self._calls = calls
        self._nvml: Any = None
        self._event_set: Any = None
        self._counters: dict[str, Counters] = {}
        self._gpm: dict[str, Gpm] = {}
        self._processes: dict[str, Processes] = {}
        self._others: dict[str, list[dict[str, Any]]] = {}
        self.devices: list[Device] = []

    def open(self) -> None:
        """Find the devices; none may be there.

        Raises:
            Exception: of any class: there is no library, no driver, or it does not work.
        """
        import pynvml

        pynvml.nvmlInit()
        self._nvml = pynvml
        for index in range(pynvml.nvmlDeviceGetCount()):
            self.devices += self._devices(index)
        for device in self.devices:
            self._processes[device.key] = Processes(pynvml, device, self._calls)
            self._gpm[device.key] = Gpm(pynvml, device, self._calls)
            if device.part is None:
                self._counters[device.key] = Counters(pynvml, device, self._calls)
        self._watch_errors()

    def row(self, device: Device, ours: Collection[int]) -> dict[str, float]:
        """One row of `gpu/NAME/KEY`; NaN where something cannot be told.

        Args:
            ours: pids of this run.
        """
        row: dict[str, float] = {}
        for reading in READINGS:
            row |= self._read(device, reading)
        held: list[Held] = self._processes[device.key].held()
        self._others[device.key] = named(held, ours)
        counters = self._counters.get(device.key)
        return (
            row | self._gpm[device.key].row() | occupancy(held, ours) | (counters.row() if counters else {})
        )

    def others(self, device: Device) -> list[dict[str, Any]]:
        """Pid and name of other processes on it, as of the last row."""
        return self._others.get(device.key, [])

    def fetch_errors(self, shown: Collection[int]) -> None:
        """Note what the driver reported (Xid) of the boards whose indices are `shown`."""
        nvml = self._nvml
        for _ in range(MAX_EVENTS):
            if self._event_set is None:
                return
            try:
                data = nvml.nvmlEventSetWait(self._event_set, 0)
            except Exception:  # noqa: BLE001 - a timeout: no event
                return
            index = self._calls.ask("all", "index", partial(nvml.nvmlDeviceGetIndex, data.device))
            if index is None or index in shown:
                xid = int(data.eventData)
                gpu = None if index is None else str(index)
                self._calls.note({"kind": "gpu_error", "gpu": gpu, "xid": xid, "error": f"Xid {xid}"})

    def _read(self, device: Device, reading: Reading) -> dict[str, float]:
        if reading.of == "whole" and device.part is not None:
            return within(reading.limits, None)
        handle = device.board if reading.of == "board" else device.handle
        answer = self._calls.paced(
            device.key,
            reading.call,
            partial(reading.read, self._nvml, handle),
            quiet=reading.expendable,
            rare=reading.rare,
        )
        return within(reading.limits, answer)

    def _devices(self, index: int) -> list[Device]:
        """A board, or the MIG parts it is cut into."""
        nvml, key = self._nvml, str(index)
        board = self._calls.ask(key, "handle", partial(nvml.nvmlDeviceGetHandleByIndex, index))
        if board is None:
            return []
        mode = self._calls.ask(key, "MIG mode", lambda: nvml.nvmlDeviceGetMigMode(board)[0], quiet=True)
        parts = self._parts(index, board) if mode else []
        return parts or [self._described(Device(key, index, "", "", board, board))]

    def _parts(self, index: int, board: Any) -> list[Device]:
        nvml, found = self._nvml, []
        count = self._calls.ask(str(index), "MIG parts", partial(nvml.nvmlDeviceGetMaxMigDeviceCount, board))
        for number in range(min(count or 0, MAX_PARTS)):
            key = f"{index}.{number}"
            # Numbers without a part are errors, and there are up to seven.
            handle = self._calls.ask(
                key, "part", partial(nvml.nvmlDeviceGetMigDeviceHandleByIndex, board, number), quiet=True
            )
            if handle is None:
                continue
            part = self._calls.ask(key, "instance", partial(nvml.nvmlDeviceGetGpuInstanceId, handle))
            known = -1 if part is None else int(part)
            found.append(self._described(Device(key, index, "", "", handle, board, known)))
        return found

    def _described(self, device: Device) -> Device:
        def text(call: str, read: Callable[[Any], Any]) -> str:
            value = self._calls.ask(device.key, call, partial(read, device.handle))
            return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")

        nvml = self._nvml
        uuid, name = text("UUID", nvml.nvmlDeviceGetUUID), text("name", nvml.nvmlDeviceGetName)
        return Device(device.key, device.index, uuid, name, device.handle, device.board, device.part)

    def _watch_errors(self) -> None:
        """Have critical errors of the driver (Xid) reported, where it can."""
        nvml = self._nvml

        def register() -> Any:
            events = nvml.nvmlEventSetCreate()
            for device in {device.index: device for device in self.devices}.values():
                nvml.nvmlDeviceRegisterEvents(device.board, nvml.nvmlEventTypeXidCriticalError, events)
            return events

        if self.devices:
            self._event_set = self._calls.ask("all", "critical errors", register)
