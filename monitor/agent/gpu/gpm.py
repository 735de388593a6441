"""GPM: how busy the parts of a GPU were between two samples, from Hopper on. Utilisation alone says only
that some kernel ran: 85 % of it with 19 % of the Tensor Cores busy was recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monitor.agent.gpu.device import Device
from monitor.agent.gpu.driver_calls import DriverCalls, within

#: Key -> NVML's number of the metric: multiprocessors, any tensor operation, memory bandwidth; per cent.
METRICS: Mapping[str, int] = {"gpu_sm_activity": 2, "gpu_tensor_activity": 5, "gpu_dram_activity": 10}
LIMITS = dict.fromkeys(METRICS, (0.0, 100.0))
_VERSION = 1


class Gpm:
    """One device's activity. Two samples are kept, and taken anew in turn."""

    def __init__(self, nvml: Any, device: Device, calls: DriverCalls) -> None:
        self._nvml = nvml
        self._device = device
        self._calls = calls
        self._samples: list[Any] = []
        self._taken = False
        self._question: Any = None
        calls.ask(device.key, "activity", self._open)

    def row(self) -> dict[str, float]:
        """Percentages since the last call; NaN in the first one and where the GPU cannot tell."""
        if self._question is None:
            return within(LIMITS, None)
        return within(LIMITS, self._calls.paced(self._device.key, "activity", self._measure))

    def _open(self) -> None:
        nvml = self._nvml
        if not nvml.nvmlGpmQueryDeviceSupport(self._device.board).isSupportedDevice:
            return
        self._samples = [nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()]
        question = nvml.c_nvmlGpmMetricsGet_t()
        question.version, question.numMetrics = _VERSION, len(METRICS)
        for index, number in enumerate(METRICS.values()):
            question.metrics[index].metricId = number
        self._question = question

    def _measure(self) -> list[float | None]:
        before, now = self._samples
        self._take(now)
        self._samples = [now, before]
        if not self._taken:
            self._taken = True
            return []
        question = self._question
        question.sample1, question.sample2 = before, now
        self._nvml.nvmlGpmMetricsGet(question)
        answers = [question.metrics[index] for index in range(len(METRICS))]
        return [answer.value if answer.nvmlReturn == 0 else None for answer in answers]

    def _take(self, sample: Any) -> None:
        device = self._device
        try:
            if device.part is None:
                self._nvml.nvmlGpmSampleGet(device.handle, sample)
            else:
                self._nvml.nvmlGpmMigSampleGet(device.board, device.part, sample)
        except Exception:
            self._taken = False  # what is in the sample now is anybody's guess
            raise
