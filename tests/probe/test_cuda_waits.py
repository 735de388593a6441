"""Calls that wait for the device are counted, with their line; what they do and return is unchanged."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
import torch
from fakecuda import FakeDevice
from loops import learn, loader, net, sgd
from watching import Watch, watching


@pytest.fixture(autouse=True)
def device_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions that a torch with CUDA has, at the edge where this one has none."""
    calls: list[str] = []

    def synchronize() -> str:
        calls.append("synchronize")
        time.sleep(0.001)
        return "done"

    monkeypatch.setattr(torch._C, "_cuda_synchronize", synchronize, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_emptyCache", lambda: calls.append("emptyCache"), raising=False)
    monkeypatch.setattr(torch.cuda.Event, "synchronize", lambda self: synchronize())
    monkeypatch.setattr(torch.cuda.Stream, "synchronize", lambda self: synchronize())
    return calls


def call(name: str) -> object:
    """As torch's public functions call it."""
    return getattr(torch._C, name)()


def train(watch: Watch, name: str) -> None:
    """Two epochs, with the call in every step."""
    model = net()
    optimizer = sgd(model)
    for _ in range(2):
        for batch in loader():
            learn(model, optimizer, batch)
            call(name)


def test_waits_are_counted(tmp_path: Path, device_calls: list[str]) -> None:
    """All of them, in the rows, with the time they took."""
    with watching(tmp_path, device=FakeDevice()) as watch:
        train(watch, "_cuda_synchronize")
    rows = [event["values"] for event in watch.kinds("cuda")]
    assert sum(row["cuda_syncs"] for row in rows) == len(device_calls) == 12
    assert sum(row["cuda_sync_ms"] for row in rows) >= 12


def test_waits_are_placed(tmp_path: Path) -> None:
    """In the user's own code, however deep in torch they lie."""
    with watching(tmp_path, device=FakeDevice()) as watch:
        train(watch, "_cuda_synchronize")
    found = watch.facts()["syncs"]
    (place,) = found["locations"]
    assert place["location"].startswith("tests/probe/test_cuda_waits.py:")
    assert (found["calls"], found["steps"], place["count"]) == (12, 12, 12)


def test_emptying_the_cache_is_counted(tmp_path: Path) -> None:
    """With the place of the first call."""
    with watching(tmp_path, device=FakeDevice()) as watch:
        train(watch, "_cuda_emptyCache")
    rows = [event["values"] for event in watch.kinds("cuda")]
    assert sum(row["cuda_empty_cache"] for row in rows) == 12
    assert watch.facts()["cuda"]["empty_cache_location"].startswith("tests/probe/test_cuda_waits.py:")
    assert "syncs" not in watch.facts()


def test_events_and_streams(tmp_path: Path) -> None:
    """Waiting for one of them is waiting."""
    with watching(tmp_path, device=FakeDevice()) as watch:
        torch.cuda.Event.synchronize(object())  # type: ignore[arg-type]
        torch.cuda.Stream.synchronize(object())  # type: ignore[arg-type]
        assert watch.probe.cuda._waits.calls == 2


def test_what_is_returned_and_raised_is_torchs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that failed says so at the next wait."""

    def fails() -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    with watching(tmp_path, device=FakeDevice()):
        assert call("_cuda_synchronize") == "done"
    monkeypatch.setattr(torch._C, "_cuda_synchronize", fails)
    with watching(tmp_path, device=FakeDevice()) as watch:
        with pytest.raises(RuntimeError, match="illegal memory access"):
            call("_cuda_synchronize")
        assert watch.recorder.training_thread_id[0]


@pytest.mark.parametrize(
    ("caller", "counted"), [("site-packages/lib/a.py", 0), (f"{torch.cuda.__path__[0]}/streams.py", 1)]
)
def test_a_librarys_own_waits_are_its_own(tmp_path: Path, caller: str, counted: int) -> None:
    """Nobody could leave them out; only torch's public functions stand between a program and its wait."""
    scope = {"torch": torch}
    exec(compile("def wait(): torch._C._cuda_synchronize()", caller, "exec"), scope)
    with watching(tmp_path, device=FakeDevice()) as watch:
        scope["wait"]()  # type: ignore[operator]
        assert watch.probe.cuda._waits.calls == counted


def test_other_threads_wait_on_their_own_account(tmp_path: Path) -> None:
    """A thread that copies batches is not the one that trains."""
    with watching(tmp_path, device=FakeDevice()) as watch:
        thread = threading.Thread(target=call, args=("_cuda_synchronize",))
        thread.start()
        thread.join()
        assert watch.probe.cuda._waits.calls == 0


def test_many_places_are_bounded(tmp_path: Path) -> None:
    """Code that is made at run time has a new place each time."""
    with watching(tmp_path, device=FakeDevice()) as watch:
        for number in range(71):
            made = compile("torch._C._cuda_synchronize()", f"/tmp/made-{number}.py", "exec")
            exec(made, {"torch": torch})
        assert len(watch.probe.cuda._waits._places) == 64
        assert watch.probe.cuda._waits.calls == 71


def test_without_a_device_nothing_is_replaced(tmp_path: Path) -> None:
    """And with one it is put back."""
    before = torch._C._cuda_synchronize
    with watching(tmp_path, device=FakeDevice(used=False)):
        assert torch._C._cuda_synchronize is before
    with watching(tmp_path, device=FakeDevice()):
        assert torch._C._cuda_synchronize is not before
    assert torch._C._cuda_synchronize is before
