"""NVIDIA's devices: every value through the real pynvml, whatever the driver does."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitor.agent.gpu.driver_calls import COST, RARE_S
from monitor.schema import keys_of

from .conftest import ONE, Ask, Servant, boards, but

MIG = but(
    boards(2), u1_mig=1, u1_0_gi=7, u1_2_gi=9, u1_2_used=3_000_000_000, u1_2_total=5_000_000_000,
    u1_2_gpm_2=44, u1_2_util=0,
)  # fmt: skip
CALLS = (
    "UtilizationRates", "MemoryInfo", "PowerUsage", "EnforcedPowerLimit", "Temperature", "ClockInfo",
    "MaxClockInfo", "CurrentClocksEventReasons", "TotalEccErrors", "TotalEnergyConsumption", "FieldValues",
    "PcieThroughput", "ComputeRunningProcesses_v3", "ProcessUtilization", "MigMode", "UUID", "Name", "Index",
    "HandleByIndex_v2", "Count_v2", "MaxMigDeviceCount", "MigDeviceHandleByIndex", "GpuInstanceId",
)  # fmt: skip
FUNCTIONS = tuple(f"nvmlDeviceGet{call}" for call in CALLS) + (
    "nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleGet", "nvmlGpmMigSampleGet",
    "nvmlGpmMetricsGet", "nvmlEventSetCreate", "nvmlDeviceRegisterEvents", "nvmlEventSetWait_v2",
    "nvmlInitWithFlags",
)  # fmt: skip


def test_a_row_has_the_schema_s_columns_and_units(ask: Ask, state: Path) -> None:
    """MB, W, °C, MHz, J and per cent, as the driver says; rates and activity come with the second row."""
    ask("sample")
    state.write_text(but(ONE, u0_field_197=5_000_000, u0_field_139=3_000, u0_energy=251_000))
    row = ask("sample")["0"]
    assert set(row) == set(keys_of("gpu"))
    told = {key: value for key, value in row.items() if not math.isnan(value)}
    rates = {key for key in told if key.endswith("_per_s")}
    assert rates == {f"gpu_{link}_{way}_mb_per_s" for link in ("pcie", "nvlink") for way in ("in", "out")}
    assert told["gpu_pcie_out_mb_per_s"] > 0
    assert told["gpu_nvlink_in_mb_per_s"] > 0
    assert {key: told[key] for key in told if key not in rates} == {
        "gpu_util": 87,
        "gpu_sm_activity": 60,
        "gpu_tensor_activity": 19,
        "gpu_dram_activity": 30,
        "gpu_memory_used_mb": 12000,
        "gpu_memory_total_mb": 24000,
        "gpu_power_w": 250,
        "gpu_power_limit_w": 350,
        "gpu_energy_j": 250,
        "gpu_temperature_c": 66,
        "gpu_sm_clock_mhz": 1740,
        "gpu_sm_clock_max_mhz": 1980,
        "gpu_throttle_bits": 4,
        "gpu_ecc_corrected": 3,
        "gpu_ecc_uncorrected": 0,
    }


def test_each_sample_is_read_anew(ask: Ask, state: Path) -> None:
    """No value is remembered from one sample to the next."""
    before = ask("sample")["0"]["gpu_util"]
    state.write_text(but(ONE, u0_util=3))
    assert (before, ask("sample")["0"]["gpu_util"]) == (87, 3)


def test_a_value_that_fails_is_nan_and_the_rest_goes_on(ask: Ask, state: Path) -> None:
    """One call that fails alone costs its value, and is said once; that is no error of the device's."""
    state.write_text(ONE + "fail.nvmlDeviceGetPowerUsage 3\n")
    row = ask("sample")["0"]
    ask("sample")
    (event,) = ask("events")
    assert math.isnan(row["gpu_power_w"])
    assert row["gpu_util"] == 87
    assert (event["kind"], event["gpu"], event["call"]) == ("gpu_unread", "0", "power")
    assert "NVMLError" in event["error"]


@pytest.mark.parametrize("call", [call for call in CALLS if call not in ("Count_v2", "HandleByIndex_v2")])
def test_each_call_may_fail_alone(ask: Ask, state: Path, call: str) -> None:
    """Whichever it is, there is a row and its other values are there."""
    state.write_text(ONE + f"fail.nvmlDeviceGet{call} 999\n")
    ask("sample")
    known = [value for value in ask("sample")["0"].values() if not math.isnan(value)]
    assert len(known) >= 15


def test_a_lost_gpu_is_told(ask: Ask, state: Path) -> None:
    """Every value of a device that fell off the bus is NaN, and it is one error, in the driver's words."""
    ask("sample")
    state.write_text(ONE + "".join(f"fail.nvmlDeviceGet{call} 15\n" for call in CALLS))
    row = ask("sample")["0"]
    assert [key for key, value in row.items() if not math.isnan(value) and "activity" not in key] == []
    assert ask("events") == [
        {"kind": "gpu_error", "gpu": "0", "lost": True, "error": "NVMLError_GpuIsLost: GPU is lost"}
    ]


def test_garbage_is_not_shown(ask: Ask, state: Path) -> None:
    """Values that no device can have, as some integrated boards answer, are NaN."""
    state.write_text(but(ONE, u0_util=4294967295, u0_temp=65535, u0_gpm_5=4000))
    ask("sample")
    row = ask("sample")["0"]
    assert [math.isnan(row[f"gpu_{key}"]) for key in ("util", "temperature_c", "tensor_activity")] == [
        True
    ] * 3


def test_a_board_that_knows_little(ask: Ask, state: Path) -> None:
    """An integrated board or WSL supports next to nothing: what it does support is shown, the rest is NaN."""
    supported = ("UtilizationRates", "Name", "UUID", "Index", "HandleByIndex_v2", "Count_v2")
    refused = [f"fail.{name} 3\n" for name in FUNCTIONS if not name.endswith((*supported, "Init", "Flags"))]
    state.write_text(ONE + "".join(refused))
    ask("sample")
    row = ask("sample")["0"]
    assert {key: value for key, value in row.items() if not math.isnan(value)} == {"gpu_util": 87}
    assert {event["kind"] for event in ask("events")} == {"gpu_unread"}


def test_an_old_driver(ask_old: Ask, state: Path) -> None:
    """Functions that came later are missing: older ones take their place, or the value is NaN."""
    state.write_text(but(ONE, u0_procs="41:2000000000", u0_pcie_0=4000, u0_pcie_1=9000))
    ask_old("sample", [41])
    row = ask_old("sample", [41])["0"]
    assert (row["gpu_throttle_bits"], row["gpu_own_memory_mb"]) == (4, 2000)
    assert (row["gpu_pcie_out_mb_per_s"], row["gpu_pcie_in_mb_per_s"]) == (4, 9)
    assert math.isnan(row["gpu_sm_activity"])
    errors = [event["error"] for event in ask_old("events")]
    assert errors
    assert all("FunctionNotFound" in error for error in errors)


def test_critical_errors_of_the_driver_are_events(ask: Ask, state: Path) -> None:
    """An Xid is told once, with its device."""
    state.write_text(boards(2))
    ask("sample")
    state.write_text(boards(2) + "xid 1:79\n")
    ask("sample")
    ask("sample")
    assert ask("events") == [{"kind": "gpu_error", "gpu": "1", "xid": 79, "error": "Xid 79"}]


def test_errors_of_devices_that_are_not_ours_are_not_told(ask: Ask, state: Path) -> None:
    """Somebody else's GPU may fail."""
    state.write_text(boards(2))
    ask("choose", [[[], "0"]])
    state.write_text(boards(2) + "xid 1:31\n")
    ask("sample")
    assert ask("events") == []


def test_one_device_of_two_may_fail(ask: Ask, state: Path) -> None:
    """A device that cannot even be opened is left out; the other is sampled."""
    state.write_text(boards(2) + "0.fail.nvmlDeviceGetHandleByIndex_v2 15\n")
    assert list(ask("sample")) == ["1"]
    assert ask("events")[0]["gpu"] == "0"


def test_eight_boards(ask: Ask, state: Path) -> None:
    """Each has its row and its own counters."""
    state.write_text(boards(8))
    ask("sample")
    state.write_text(but(boards(8), u5_energy=8000))
    rows = ask("sample")
    assert list(rows) == [str(index) for index in range(8)]
    assert [rows[key]["gpu_energy_j"] for key in ("4", "5")] == [0, 7]


def test_a_board_in_parts(ask: Ask, state: Path) -> None:
    """MIG: each part is a device with its own memory and activity; what only the board has is NaN, not 0."""
    state.write_text(MIG)
    ask("sample")
    rows = ask("sample")
    part = rows["1.2"]
    assert list(rows) == ["0", "1.0", "1.2"]
    assert (part["gpu_memory_used_mb"], part["gpu_memory_total_mb"]) == (3000, 5000)
    assert (part["gpu_sm_activity"], part["gpu_temperature_c"]) == (44, 66)
    assert all(math.isnan(part[f"gpu_{key}"]) for key in ("util", "power_w", "energy_j", "ecc_corrected"))
    assert [(fact["gpu"], fact["uuid"], fact["part"]) for fact in ask("facts")] == [
        ("0", "GPU-000-stub", False),
        ("1.0", "MIG-100-stub", True),
        ("1.2", "MIG-122-stub", True),
    ]


def test_a_part_is_chosen_by_its_uuid(ask: Ask, state: Path) -> None:
    """As CUDA_VISIBLE_DEVICES names it, or as torch does."""
    state.write_text(MIG)
    ask("choose", [[[], "MIG-122"]])
    visible = list(ask("sample"))
    ask("choose", [[["122-stub"]]])
    assert (visible, list(ask("sample"))) == (["1.2"], ["1.2"])


def test_a_slow_call_gets_a_rhythm_of_its_own(ask: Ask, state: Path) -> None:
    """PCIe's throughput takes 20 ms: after two such answers the last one stands for a while."""
    slow = but(boards(1), u0_pcie_0=1000, u0_pcie_1=1000) + "slow.nvmlDeviceGetPcieThroughput 20\n"
    slow = "\n".join(line for line in slow.splitlines() if "field" not in line) + "\n"
    told = []
    ask("pace", COST, 0.0)
    for rate in (1000, 2000, 3000, 4000):
        state.write_text(but(slow, u0_pcie_0=rate))
        told.append(ask("sample")["0"]["gpu_pcie_out_mb_per_s"])
    ask("pace", 1e9, 0.0)
    assert told == [1, 2, 2, 2]


def test_a_sample_takes_few_calls(ask: Ask, state: Path) -> None:
    """Thirteen for a board that can do everything, and what hardly changes comes now and then only."""
    state.write_text(but(ONE, u0_procs="41:2000000000", u0_procutil="41:60:10"))
    ask("pace", 1e9, RARE_S)
    ask("sample", [41])
    ask("sample", [41])
    ask("calls")
    row = ask("sample", [41])["0"]
    assert len(ask("calls")) <= 13
    ask("pace", 1e9, 0.0)
    assert (row["gpu_power_limit_w"], row["gpu_ecc_corrected"]) == (350, 3)


@pytest.fixture
def fuzzed(servant: Servant, shared_state: Path) -> Any:
    return servant, shared_state


codes = st.dictionaries(st.sampled_from(FUNCTIONS), st.sampled_from([*range(1, 31), 999]), max_size=12)
numbers = st.dictionaries(
    st.sampled_from([line.split()[0] for line in MIG.splitlines() if "." in line]),
    st.integers(0, 2**64 - 1) | st.integers(0, 100),
    max_size=20,
)


@given(before=codes, after=codes, garbage=numbers, base=st.sampled_from([ONE, MIG, boards(3)]))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nothing_that_a_driver_answers_ends_the_sampling(
    fuzzed: tuple[Servant, Path], before: dict[str, int], after: dict[str, int],
    garbage: dict[str, int], base: str,
) -> None:  # fmt: skip
    """Any code from any function, at the start or later, and any number: rows have numbers or NaN."""
    servant, state = fuzzed
    for moment, (failing, values) in enumerate([(before, {}), (after, garbage), ({}, garbage)]):
        lines = [f"{key} {value}" for key, value in values.items()]
        lines += [f"fail.{name} {code}" for name, code in failing.items()]
        state.write_text("\n".join([*lines, base]))  # the first line of a key counts
        if moment == 0:
            servant("fresh")
        for row in servant("sample", [1, 2]).values():
            assert set(row) == set(keys_of("gpu"))
            assert all(math.isnan(value) or -50 <= value < 1e16 for value in row.values())
    assert {event["kind"] for event in servant("events")} <= {"gpu_error", "gpu_unread", "no_gpu"}
