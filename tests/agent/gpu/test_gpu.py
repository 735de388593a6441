"""The sampler as the agent uses it: which devices, and what is said where there are none."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from monitor.agent.gpu import GpuSampler

from .conftest import Ask, boards, but


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
    ("ranks", "shown"),
    [
        ([[[], None]], ["0", "1"]),
        ([[[], "1"]], ["1"]),
        ([[[], "0"], [[], "1"]], ["0", "1"]),
        ([[[], "GPU-111"]], ["1"]),
        ([[["111-stub"], "0"]], ["1"]),
        ([[[], ""]], []),
        ([[[], "1"], [[], None]], ["0", "1"]),
    ],
)
def test_only_the_run_s_devices_are_shown(ask: Ask, state: Path, ranks: list[Any], shown: list[str]) -> None:
    """Those on which a rank holds memory, else those its environment leaves; unknown shows all."""
    state.write_text(boards(2))
    ask("choose", [[[], None]])
    ask("choose", ranks)
    assert list(ask("sample")) == shown
    assert [fact["gpu"] for fact in ask("facts")] == shown


def test_others_on_the_device_are_named(ask: Ask, state: Path) -> None:
    """By pid, for a person to find them; nothing is said of whose they are where ours are not seen."""
    state.write_text(but(boards(1), u0_procs="41:2000000000,97:900000000"))
    ask("sample", [41])
    seen = ask("facts")[0]["others"]
    ask("sample", [40])
    assert ([other["pid"] for other in seen], ask("facts")[0]["others"]) == ([97], [])


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
