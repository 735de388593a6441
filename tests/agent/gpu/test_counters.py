"""Counters become rates: over the time that passed, across a wrap, and never out of nothing."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from monitor.agent.gpu.counters import FIELDS, Counters
from monitor.agent.gpu.device import Device
from monitor.agent.gpu.driver_calls import DriverCalls

OUT, IN = "gpu_pcie_out_mb_per_s", "gpu_pcie_in_mb_per_s"


class Nvml:
    """Answers like pynvml with what stands in `counts`: field id -> (count, kind, code, time in µs)."""

    def __init__(self) -> None:
        self.counts: dict[int, tuple[float, int, int, int]] = {}
        self.millijoules: float | None = None
        self.measured = 0

    def nvmlDeviceGetFieldValues(self, handle: Any, wanted: list[tuple[int, int]]) -> list[Any]:
        assert wanted == [(number, scope) for number, scope, _ in FIELDS.values()]
        return [self._field(number) for number, _ in wanted]

    def _field(self, number: int) -> Any:
        count, kind, code, time_us = self.counts.get(number, (0, 3, 3, 0))
        names = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
        value = SimpleNamespace(**dict.fromkeys(names, -1) | {dict(enumerate(names)).get(kind, "x"): count})
        return SimpleNamespace(nvmlReturn=code, valueType=kind, timestamp=time_us, value=value)

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Any) -> float:
        if self.millijoules is None:
            raise OSError("not supported")
        return self.millijoules

    def nvmlDeviceGetPcieThroughput(self, handle: Any, which: int) -> int:
        self.measured += 1
        return 1500 * (which + 1)


class Bench:
    """A device's counters on a clock that passes only when told."""

    def __init__(self) -> None:
        self.now_s, self.nvml = 10.0, Nvml()
        self.calls = DriverCalls(lambda: self.now_s)
        self.counters = Counters(self.nvml, Device("0", 0, "", ""), self.calls, lambda: self.now_s)

    def row(self, after_s: float = 1.0, **counts: Any) -> dict[str, float]:
        self.now_s += after_s
        self.nvml.counts.update({int(key.removeprefix("f")): value for key, value in counts.items()})
        return self.counters.row()


def test_a_rate_is_growth_over_time() -> None:
    """MB a second; the first sample has none."""
    bench = Bench()
    assert math.isnan(bench.row(f197=(7e6, 3, 0, 0))[OUT])
    assert bench.row(2.0, f197=(17e6, 3, 0, 0))[OUT] == pytest.approx(5)


def test_nvlink_is_counted_in_kib() -> None:
    """All links together."""
    bench = Bench()
    bench.row(f138=(0, 3, 0, 0))
    assert bench.row(f138=(1000, 3, 0, 0))["gpu_nvlink_out_mb_per_s"] == pytest.approx(1.024)


def test_the_driver_s_own_time_counts() -> None:
    """What it counted until then, not until we asked."""
    bench = Bench()
    bench.row(f198=(0, 3, 0, 1_000_000))
    assert bench.row(9.0, f198=(4e6, 3, 0, 3_000_000))[IN] == pytest.approx(2)
    assert math.isnan(bench.row(9.0, f198=(4e6, 3, 0, 3_000_000))[IN]), "the same answer again is no rate"


def test_a_32_bit_counter_wraps() -> None:
    """A 64-bit one that falls was set back, and tells nothing."""
    bench = Bench()
    bench.row(f197=(2**32 - 1e6, 1, 0, 0), f198=(9e9, 3, 0, 0))
    row = bench.row(f197=(1e6, 1, 0, 0), f198=(1e6, 3, 0, 0))
    assert row[OUT] == pytest.approx(2)
    assert math.isnan(row[IN])


def test_one_field_may_fail_alone() -> None:
    """Its rate is NaN, the others are there; a kind of value nobody knows is no value."""
    bench = Bench()
    bench.row(f197=(0, 3, 0, 0), f198=(0, 3, 3, 0), f138=(0, 99, 0, 0))
    row = bench.row(f197=(1e6, 3, 0, 0), f198=(1e6, 3, 3, 0), f138=(5, 99, 0, 0))
    assert (row[OUT], math.isnan(row[IN]), math.isnan(row["gpu_nvlink_out_mb_per_s"])) == (1, True, True)


def test_without_counters_pcie_is_measured() -> None:
    """The slow call is made only where no counter answers."""
    bench = Bench()
    assert (bench.row()[OUT], bench.row()[IN]) == (1.5, 3)
    counted = Bench()
    counted.row(f197=(0, 3, 0, 0))
    counted.row(f197=(1e6, 3, 0, 0))
    assert counted.nvml.measured == 0


def test_energy_is_told_between_samples() -> None:
    """Joules since the last one; NaN where it is not counted, said once."""
    bench = Bench()
    assert math.isnan(bench.row()["gpu_energy_j"])
    assert [event["call"] for event in bench.calls.events()] == ["energy"]
    bench.nvml.millijoules = 5_000.0
    bench.row()
    bench.nvml.millijoules = 305_000.0
    assert bench.row()["gpu_energy_j"] == 300
