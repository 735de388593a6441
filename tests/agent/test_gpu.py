"""The real pynvml over a library of ours in the driver's place, in processes that start with it."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.agent.gpu import Device, GpuSampler, visible_indices, visible_of
from monitor.schema import keys_of

SOURCE = Path(__file__).with_name("nvml_stub.c")

#: Obeys one JSON list [method, *arguments] a line and answers with JSON.
SERVANT = """
import json, sys
from monitor.agent.gpu import GpuSampler
sampler = GpuSampler()
for line in sys.stdin:
    method, *arguments = json.loads(line)
    print(json.dumps(getattr(sampler, method)(*arguments)), flush=True)
    if "torch" in sys.modules: raise SystemExit("torch was imported")
"""

ONE = """
count 1
0.util 87
0.used 12000000000
0.total 24000000000
0.power 250000
0.limit 350000
0.temp 66
0.clock 1740
0.throttle 4
"""
TWO = ONE + "\n".join(line.replace("0.", "1.", 1) for line in ONE.splitlines() if line[:2] == "0.")
TWO = TWO.replace("count 1", "count 2") + "\n"

Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    folder = tmp_path_factory.mktemp("nvml")
    target = folder / "libnvidia-ml.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", target, SOURCE], check=True)
    return folder


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state"
    path.write_text(ONE)
    return path


@pytest.fixture
def ask(library: Path, state: Path) -> Iterator[Ask]:
    """`ask(method, *arguments)` calls a started sampler in a process that has the stub."""
    env = {**os.environ, "LD_LIBRARY_PATH": str(library), "NVML_STUB_STATE": str(state)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    servant = subprocess.Popen([sys.executable, "-c", SERVANT], text=True, env=env, **pipes)  # type: ignore[call-overload]
    started = False

    def call(method: str, *arguments: Any) -> Any:
        nonlocal started
        if not started and method != "start":
            started = True
            call("start")
        servant.stdin.write(json.dumps([method, *arguments]) + "\n")
        servant.stdin.flush()
        return json.loads(servant.stdout.readline())

    yield call
    servant.communicate()
    assert servant.returncode == 0


def test_a_row_has_the_schema_s_columns_and_units(ask: Ask) -> None:
    """MB, W, °C, MHz and per cent, as the driver says."""
    (row,) = ask("sample").values()
    assert set(row) == set(keys_of("gpu"))
    assert row == {
        "gpu_util": 87,
        "gpu_memory_used_mb": 12000,
        "gpu_memory_total_mb": 24000,
        "gpu_power_w": 250,
        "gpu_power_limit_w": 350,
        "gpu_temperature_c": 66,
        "gpu_sm_clock_mhz": 1740,
        "gpu_throttle_bits": 4,
    }


def test_each_sample_is_read_anew(ask: Ask, state: Path) -> None:
    """No value is remembered from one sample to the next."""
    before = ask("sample")["0"]["gpu_util"]
    state.write_text(ONE.replace("0.util 87", "0.util 3"))
    assert (before, ask("sample")["0"]["gpu_util"]) == (87, 3)


def test_a_value_that_fails_is_nan_and_the_rest_goes_on(ask: Ask, state: Path) -> None:
    """One call that fails alone costs its value, and is said once."""
    state.write_text(ONE + "fail.nvmlDeviceGetPowerUsage 3\n")
    row = ask("sample")["0"]
    ask("sample")
    (event,) = ask("events")
    assert math.isnan(row["gpu_power_w"])
    assert row["gpu_util"] == 87
    assert (event["kind"], event["gpu"], event["call"]) == ("gpu_error", 0, "power")
    assert "NVMLError" in event["error"]


def test_a_lost_gpu_is_told(ask: Ask, state: Path) -> None:
    """Every value of a device that fell off the bus is NaN, and the reason is the driver's."""
    ask("sample")
    calls = ("UtilizationRates", "MemoryInfo", "PowerUsage", "EnforcedPowerLimit", "Temperature", "ClockInfo")
    lost = [f"fail.nvmlDeviceGet{call} 15" for call in (*calls, "CurrentClocksThrottleReasons")]
    state.write_text(ONE + "\n".join(lost) + "\n")
    row = ask("sample")["0"]
    assert all(math.isnan(value) for value in row.values())
    assert {event["error"] for event in ask("events")} == {"NVMLError_GpuIsLost: GPU is lost"}


def test_garbage_is_not_shown(ask: Ask, state: Path) -> None:
    """Values that no device can have, as some boards answer, are NaN."""
    state.write_text(ONE.replace("0.util 87", "0.util 4294967295").replace("0.temp 66", "0.temp 65535"))
    row = ask("sample")["0"]
    assert math.isnan(row["gpu_util"])
    assert math.isnan(row["gpu_temperature_c"])


def test_critical_errors_of_the_driver_are_events(ask: Ask, state: Path) -> None:
    """An Xid is told once, with its device."""
    state.write_text(TWO)
    ask("sample")
    state.write_text(TWO + "xid 1:79\n")
    ask("sample")
    ask("sample")
    assert ask("events") == [{"kind": "gpu_error", "gpu": 1, "xid": 79, "error": "Xid 79"}]


def test_one_device_of_two_may_fail(ask: Ask, state: Path) -> None:
    """A device that cannot even be opened is left out; the other is sampled."""
    state.write_text(TWO + "0.fail.nvmlDeviceGetHandleByIndex_v2 15\n")
    assert list(ask("sample")) == ["1"]
    assert ask("events")[0]["gpu"] == 0


def test_a_driver_without_devices(ask: Ask, state: Path) -> None:
    """No device: said, and no row."""
    state.write_text("count 0\n")
    assert ask("sample") == {}
    assert ask("events") == [{"kind": "no_gpu", "why": "the driver lists no device"}]


def test_a_driver_that_is_not_loaded(ask: Ask, state: Path) -> None:
    """The library is there and the driver is not: said in the driver's words."""
    state.write_text("fail.nvmlInitWithFlags 9\n")
    assert ask("sample") == {}
    assert ask("events") == [{"kind": "no_gpu", "why": "NVMLError_DriverNotLoaded: Driver Not Loaded"}]


@pytest.mark.parametrize(
    ("visible", "shown"),
    [
        ([None], ["0", "1"]),
        (["1"], ["1"]),
        (["0", "1"], ["0", "1"]),
        (["GPU-111"], ["1"]),
        (["MIG-1"], ["1"]),
        ([""], []),
        (["1", None], ["0", "1"]),
    ],
)
def test_only_the_run_s_devices_are_shown(
    ask: Ask, state: Path, visible: list[str | None], shown: list[str]
) -> None:
    """CUDA_VISIBLE_DEVICES of all ranks together, by index, UUID or MIG part; unknown shows all."""
    state.write_text(TWO)
    ask("choose", [None])
    ask("choose", visible)
    assert list(ask("sample")) == shown
    assert [str(fact["index"]) for fact in ask("facts")] == shown


def test_a_machine_without_the_library() -> None:
    """No driver: one event with the reason, no devices, no number."""
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine has a driver")
    sampler = GpuSampler()
    sampler.start()
    (event,) = sampler.events()
    assert (event["kind"], sampler.sample()) == ("no_gpu", {})
    assert event["why"].startswith("NVMLError_LibraryNotFound")


def test_errors_of_a_class_nobody_knows_are_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drivers and bindings raise exceptions of their own; none ends the sampling."""

    class SecondErrorClass(Exception):
        pass

    class Broken:
        def __getattr__(self, name: str) -> Any:
            raise SecondErrorClass(name)

    monkeypatch.setitem(sys.modules, "pynvml", Broken())  # type: ignore[arg-type]
    sampler = GpuSampler()
    sampler.start()
    assert sampler.events() == [{"kind": "no_gpu", "why": "SecondErrorClass: nvmlInit"}]


DEVICES = [Device(index, f"GPU-{index}a-bc", "", None) for index in range(4)]


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, None),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("2,0", [2, 0]),
        ("1,9,2", [1]),
        (" 3 , 1", [3, 1]),
        ("GPU-2a", [2]),
        ("GPU-", []),
        ("MIG-GPU-x", None),
    ],
)
def test_the_variable_is_read_as_cuda_reads_it(visible: str | None, expected: list[int] | None) -> None:
    """In order, up to the first entry that names no device; an ambiguous UUID names none."""
    assert visible_indices(DEVICES, visible, lambda uuid: None) == expected


def test_the_probe_knows_better_than_the_environment_at_start() -> None:
    """A script may set the variable itself, which only its own process sees."""
    assert visible_of({"env": {"cuda_visible_devices": "1"}}, {"CUDA_VISIBLE_DEVICES": "0"}) == "1"
    assert visible_of({"env": {"cuda_visible_devices": None}}, {"CUDA_VISIBLE_DEVICES": "0"}) == "0"
    assert visible_of({"env": 7}, None) is None
