"""Copies to the device: a framework's are the phase h2d, a loop's own are left alone; and batches."""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from fakecuda import FakeDevice
from loops import BATCHES, data, error, loader, net, sgd
from torch.utils.data import DataLoader
from watching import watching

from monitor.probe.adapters import transfers
from monitor.probe.cuda.transfer import FIRST_LOOKS, LOOK_EVERY, Batches, described


class Slow:
    """A part of a batch that takes its time to be moved."""

    def __init__(self, ms: float) -> None:
        self._ms = ms

    def clone(self) -> torch.Tensor:
        """Moved."""
        time.sleep(self._ms / 1e3)
        return torch.zeros(2, 1)


class Facts:
    """A recorder that keeps what it is told."""

    def __init__(self) -> None:
        self.written: list[tuple[str, Any]] = []

    def fact(self, name: str, value: Any) -> None:
        """One fact."""
        self.written.append((name, value))


@pytest.fixture
def framework(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A framework that moves batches in a function of its own."""
    module = ModuleType("framework_of_the_test")
    module.move = lambda batch: [tensor.clone() for tensor in batch]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr("monitor.probe.probe.transfers", lambda: [(module.__name__, "move")])
    return module


def train(framework: ModuleType, *, evaluate_ms: float = 0) -> None:
    """A loop that has its batches moved; in the evaluation after it a move takes so long."""
    model = net()
    optimizer = sgd(model)
    for batch in loader():
        optimizer.zero_grad()
        error(model, framework.move(batch)).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for _ in loader() if evaluate_ms else ():
            error(model, framework.move([torch.zeros(2, 6), Slow(evaluate_ms)]))


def test_a_frameworks_transfer_is_a_phase(tmp_path: Path, framework: ModuleType) -> None:
    """In every step, once the device is in use; and it is said that it was watched."""
    with watching(tmp_path, device=FakeDevice()) as watch:
        train(framework)
    assert all(ms > 0 for ms in watch.column("h2d_ms"))
    assert watch.facts()["cuda"]["h2d_watched"] is True


def test_without_a_device_there_is_none(tmp_path: Path, framework: ModuleType) -> None:
    """Moving a batch from the host to the host is no copy to a device."""
    before = framework.move
    with watching(tmp_path, device=FakeDevice(used=False)) as watch:
        train(framework)
        assert framework.move is before
    assert watch.total("h2d") == 0


def test_an_evaluations_transfers_are_evaluation(tmp_path: Path, framework: ModuleType) -> None:
    """They are none of the training's."""
    with watching(tmp_path, device=FakeDevice()) as watch:
        train(framework, evaluate_ms=20)
        train(framework)
    assert watch.total("h2d") < 20 * BATCHES <= watch.total("eval")


def test_a_transfer_that_fails_fails_as_before(
    tmp_path: Path, framework: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the framework's exception, and the clock goes on."""

    def fails(batch: Any) -> Any:
        raise RuntimeError("no such device")

    monkeypatch.setattr(framework, "move", fails)
    with watching(tmp_path, device=FakeDevice()) as watch:
        with pytest.raises(RuntimeError, match="no such device"):
            framework.move([])
        assert watch.recorder.training_thread_id[0]
    assert framework.move is fails


def test_tensors_keep_their_methods(tmp_path: Path) -> None:
    """`Tensor.to` stays torch's: what subclasses are handed as `func` must be what they know it as."""
    before = torch.Tensor.to, torch.Tensor.cuda
    with watching(tmp_path, device=FakeDevice()):
        assert (torch.Tensor.to, torch.Tensor.cuda) == before


def test_a_replaced_method_is_what_subclasses_are_told() -> None:
    """Why it stays: torch looks the method up by its name, and a table of theirs would not find it."""
    result = []

    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, *args: Any, **kwargs: Any) -> Any:
            result.append(func)
            return super().__torch_function__(func, *args, **kwargs)

    original = torch.Tensor.to
    try:
        torch.Tensor.to = lambda *args, **kwargs: original(*args, **kwargs)  # type: ignore[method-assign,assignment]
        torch.zeros(2).as_subclass(Sub).to(torch.float64)
    finally:
        torch.Tensor.to = original  # type: ignore[method-assign]
    assert original not in result


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("place", transfers(), ids="{0[0]}:{0[1]}".format)
def test_what_frameworks_call_it(place: tuple[str, str]) -> None:
    """Each name is there, in the versions that are installed."""
    package = place[0].partition(".")[0]
    pytest.importorskip(package, reason=f"{package} is not installed")
    try:
        found: Any = importlib.import_module(place[0])
    except ImportError as error:
        pytest.skip(f"{place[0]} cannot be imported here: {error}")
    for name in place[1].split("."):
        found = getattr(found, name)
    assert callable(found)


@pytest.mark.filterwarnings("ignore")
def test_accelerate(tmp_path: Path) -> None:
    """Its loader moves each batch that it hands out; that is no waiting for data any more."""
    accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed")
    accelerator = accelerate.Accelerator(cpu=True)
    model = net()
    model, optimizer, batches = accelerator.prepare(model, sgd(model), loader())
    with watching(tmp_path, device=FakeDevice()) as watch:
        for batch in batches:
            optimizer.zero_grad()
            accelerator.backward(error(model, batch))
            optimizer.step()
    assert watch.steps == BATCHES
    assert all(ms > 0 for ms in watch.column("h2d_ms")[:-1])
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    accelerate.state.GradientState._reset_state()


# -- batches


def test_a_batch_is_described() -> None:
    """Bytes of all its tensors, and where the largest lies."""
    batch = {"input": torch.zeros(100, 100), "target": [torch.zeros(100, dtype=torch.int64)]}
    found = described(batch)
    assert found == {
        "mb": 0.0408,
        "tensors": 2,
        "device": "cpu",
        "pinned": False,
        "pageable_mb": 0.0408,
    }


@pytest.mark.parametrize("batch", [None, [], "text", [1, 2.0], {"a": None}])
def test_a_batch_without_tensors_is_none(batch: Any) -> None:
    """Nothing is known of it."""
    assert described(batch) is None


def test_a_batch_that_is_made_elsewhere_is_not_pageable() -> None:
    """A loader that gives tensors of a device copies nothing; `meta` stands for one here."""
    found = described([torch.zeros(10, device="meta")])
    assert found is not None
    assert (found["device"], found["pinned"], found["pageable_mb"]) == ("meta", False, 0)


def test_few_batches_are_looked_at() -> None:
    """The first ones, then one in many."""
    facts, looked = Facts(), []
    batches = Batches(facts)  # type: ignore[arg-type]
    for number in range(3 * LOOK_EVERY):
        before = len(facts.written)
        batches.look([torch.zeros(number + 1)], 1)
        if len(facts.written) > before:
            looked.append(number + 1)
    assert looked == [*range(1, FIRST_LOOKS + 1), LOOK_EVERY, 2 * LOOK_EVERY, 3 * LOOK_EVERY]


def test_the_largest_batch_speaks_for_all() -> None:
    """The last of an epoch is a smaller one, and changes nothing."""
    facts = Facts()
    batches = Batches(facts)  # type: ignore[arg-type]
    for rows in (8, 3, 8):
        batches.look([torch.zeros(rows, 1000)], 1)
    ((name, value),) = facts.written
    assert (name, value["mb"]) == ("batch/1", 0.032)


def test_a_strange_batch_harms_nothing() -> None:
    """One whose tensors refuse to tell their size."""

    class Odd(torch.Tensor):
        @property
        def is_cpu(self) -> bool:
            raise RuntimeError("no")

    facts = Facts()
    Batches(facts).look([torch.zeros(3).as_subclass(Odd)], 1)  # type: ignore[arg-type]
    assert facts.written == []


def test_loaders_are_told_apart(tmp_path: Path) -> None:
    """By the number that the fact of the loader has as well."""
    model = net()
    optimizer = sgd(model)
    with watching(tmp_path, device=FakeDevice()) as watch:
        for batches in [DataLoader(data(), batch_size=size) for size in (4, 16)]:
            for _ in range(5):
                for batch in batches:
                    optimizer.zero_grad()
                    error(model, batch).backward()
                    optimizer.step()
    facts = watch.facts()
    assert facts["batch/2"]["mb"] == pytest.approx(4 * facts["batch/1"]["mb"])
