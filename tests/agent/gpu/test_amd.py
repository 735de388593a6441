"""AMD's devices in the same form, through a stand-in with amdsmi's names: its library is not here."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from monitor.agent.gpu import GpuSampler, amd
from monitor.schema import keys_of


class Smi(ModuleType):
    """amdsmi 7.0 as its own source answers: what it cannot tell is "N/A"."""

    AmdSmiTemperatureType = SimpleNamespace(HOTSPOT="hotspot")
    AmdSmiTemperatureMetric = SimpleNamespace(CURRENT="current")
    AmdSmiClkType = SimpleNamespace(GFX="gfx")

    def __init__(self) -> None:
        super().__init__("amdsmi")
        self.power: dict[str, Any] = {"current_socket_power": 412, "average_socket_power": "N/A"}

    def amdsmi_init(self) -> None: ...

    def amdsmi_get_processor_handles(self) -> list[int]:
        return [0, 1]

    def amdsmi_get_gpu_device_uuid(self, handle: int) -> str:
        return f"{handle}fff74a5-0000-1000"

    def amdsmi_get_gpu_asic_info(self, handle: int) -> dict[str, Any]:
        return {"market_name": "MI300X"}

    def amdsmi_get_gpu_activity(self, handle: int) -> dict[str, Any]:
        return {"gfx_activity": 91 if handle == 0 else "N/A", "umc_activity": 7, "mm_activity": 0}

    def amdsmi_get_gpu_vram_usage(self, handle: int) -> dict[str, Any]:
        return {"vram_total": 196_592, "vram_used": 1000}

    def amdsmi_get_power_info(self, handle: int) -> dict[str, Any]:
        return self.power

    def amdsmi_get_power_cap_info(self, handle: int) -> dict[str, Any]:
        return {"power_cap": 750_000_000}

    def amdsmi_get_temp_metric(self, handle: int, kind: Any, metric: Any) -> int:
        assert (kind, metric) == ("hotspot", "current")
        return 61

    def amdsmi_get_clock_info(self, handle: int, kind: Any) -> dict[str, Any]:
        assert kind == "gfx"
        return {"clk": 1300, "max_clk": 2100}

    def amdsmi_get_gpu_total_ecc_count(self, handle: int) -> dict[str, Any]:
        raise RuntimeError("AMDSMI_STATUS_NOT_SUPPORTED")

    def amdsmi_get_gpu_process_list(self, handle: int) -> list[dict[str, Any]]:
        return [
            {"pid": pid, "memory_usage": {"vram_mem": mb * 1_000_000}} for pid, mb in ((41, 900), (97, 30))
        ]


@pytest.fixture
def smi(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Smi:
    """A machine without NVIDIA's driver and with AMD's."""
    made = Smi()
    monkeypatch.setitem(sys.modules, "amdsmi", made)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setattr(amd, "DRIVER", str(tmp_path))
    return made


@pytest.fixture
def sampler(smi: Smi) -> GpuSampler:
    made = GpuSampler()
    made.start()
    return made


def test_a_row_in_the_same_form(sampler: GpuSampler) -> None:
    """What amdsmi tells, in MB, W, °C and MHz; what it has no counterpart for is NaN, not 0."""
    row = sampler.sample([41])["0"]
    assert set(row) == set(keys_of("gpu"))
    assert {key: value for key, value in row.items() if not math.isnan(value)} == {
        "gpu_util": 91,
        "gpu_memory_used_mb": pytest.approx(1048.576),
        "gpu_memory_total_mb": pytest.approx(206_141.65, rel=1e-4),
        "gpu_own_memory_mb": 900,
        "gpu_others_memory_mb": 30,
        "gpu_power_w": 412,
        "gpu_power_limit_w": 750,
        "gpu_temperature_c": 61,
        "gpu_sm_clock_mhz": 1300,
        "gpu_sm_clock_max_mhz": 2100,
    }


def test_what_cannot_be_told_is_nan(sampler: GpuSampler, smi: Smi) -> None:
    """ "N/A" is no number, and a call that fails is said once."""
    row = sampler.sample()["1"]
    sampler.sample()
    assert math.isnan(row["gpu_util"])
    assert [(event["gpu"], event["call"]) for event in sampler.events()] == [
        ("0", "memory errors"), ("1", "memory errors"),
    ]  # fmt: skip


def test_older_boards_tell_average_power(sampler: GpuSampler, smi: Smi) -> None:
    """Where there is no current one."""
    smi.power = {"current_socket_power": "N/A", "average_socket_power": 99}
    assert sampler.sample()["0"]["gpu_power_w"] == 99


def test_the_devices_are_named(sampler: GpuSampler) -> None:
    """As in any other run's facts."""
    sampler.sample([41])
    fact = sampler.facts()[0]
    assert (fact["gpu"], fact["name"]) == ("0", "MI300X")
    assert [other["pid"] for other in fact["others"]] == [97]


def test_without_the_package_it_is_said_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An AMD device that nobody can be asked about is not "no GPU" without a word."""
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setattr(amd, "DRIVER", str(tmp_path))
    sampler = GpuSampler()
    sampler.start()
    (event,) = sampler.events()
    assert event["kind"] == "no_gpu"
    assert "AMD GPU: amdsmi cannot be imported" in event["why"]


@pytest.mark.skipif(os.path.exists(amd.DRIVER), reason="this machine has AMD's driver")
def test_without_amd_s_driver_nothing_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package prints when its library is missing."""
    monkeypatch.delitem(sys.modules, "amdsmi", raising=False)
    GpuSampler().start()
    assert "amdsmi" not in sys.modules
