"""What a training on a CUDA device leaves in tape and journal; and that without one nothing is asked.

The device is a stand-in (tests/support/fakecuda.py): no machine that runs these tests has one. Loop, probe,
tape and journal are real.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fakecuda import FakeDevice, counters
from loops import BATCHES, learn, loader, net, sgd
from watching import Watch, alike, watching

from monitor.probe.cuda import ROW_NS, SLOW_ROW_NS
from monitor.probe.cuda.device import Torch
from monitor.schema import keys_of


class Ahead:
    """The process's own clock, which can be set forward."""

    def __init__(self) -> None:
        self.by_ns = 0

    def __call__(self) -> int:
        return time.perf_counter_ns() + self.by_ns

    def on(self, ns: int) -> None:
        self.by_ns += ns


def train(epochs: int = 1, between: Callable[[], None] = lambda: None) -> None:
    """A training loop; `between` is called after each step."""
    model = net()
    optimizer = sgd(model)
    for _ in range(epochs):
        for batch in loader():
            learn(model, optimizer, batch)
            between()


def timed(folder: Path, device: FakeDevice, between: Callable[[], None] = lambda: None) -> Watch:
    """Watched, with a row at the end of every step."""
    ahead = device.now = Ahead()
    with watching(folder, device=device) as watch:
        watch.probe.cuda._now = ahead
        watch.probe.cuda._timing._now = ahead

        def step() -> None:
            between()
            ahead.on(ROW_NS)

        train(between=step)
    return watch


def test_every_number_has_its_place_in_the_schema(tmp_path: Path) -> None:
    """So that store, page and detectors know it."""
    keys = {key for row in rows(timed(tmp_path, FakeDevice())) for key in row}
    assert {"cuda_steps", "cuda_syncs", "gpu_step_ms"} <= keys <= set(keys_of("cuda"))


def rows(watch: Watch) -> list[dict[str, float]]:
    """What the journal has of the device, row by row."""
    return [event["values"] for event in watch.kinds("cuda")]


# -- without a device


def test_without_a_device_nothing_is_asked(tmp_path: Path) -> None:
    """But whether the program uses one by now; and nothing is written of it."""
    device = FakeDevice(used=False)
    with watching(tmp_path, device=device) as watch:
        train(3)
    assert device.calls == []
    assert not watch.probe.cuda.on
    assert not watch.kinds("cuda")
    assert "cuda" not in watch.facts()


def test_without_a_device_no_step_does_anything_for_it(tmp_path: Path) -> None:
    """No function is called after a step, none at a change of phase, none with a batch."""
    with watching(tmp_path) as watch:
        train()
        assert watch.recorder.each == []
        assert watch.recorder.clock.trace == []
        assert watch.probe.loader_hooks.looks == []
    assert not torch.cuda.is_initialized()


def test_torch_without_cuda_is_only_asked_whether_it_is_in_use(tmp_path: Path) -> None:
    """Its other answers are exceptions here."""
    assert not Torch().initialized()
    with pytest.raises((RuntimeError, AssertionError)):
        Torch().stream()


# -- with one


def test_a_device_used_before_attach_is_watched_from_the_first_step(tmp_path: Path) -> None:
    """Nothing has to be said."""
    with watching(tmp_path, device=FakeDevice()) as watch:
        assert watch.probe.cuda.on
        train()
    assert watch.facts()["cuda"]["name"] == "NVIDIA Test"


def test_a_device_used_later_is_found(tmp_path: Path) -> None:
    """A model that is moved there after attach."""
    device = FakeDevice(used=False)
    with watching(tmp_path, device=device) as watch:
        device.used = False
        train()
        assert not watch.probe.cuda.on
        device.used = True
        train(2)
        assert watch.probe.cuda.on


def test_results_are_the_same(tmp_path: Path) -> None:
    """Losses and weights, bit for bit, with a device that is timed in some steps and not in others."""

    def loop(see: Any) -> Any:
        model = net()
        optimizer = sgd(model)
        see(model)
        return [learn(model, optimizer, batch) for _ in range(3) for batch in loader()], model

    torch.manual_seed(0)
    bare = loop(lambda *_: None)
    torch.manual_seed(0)
    with watching(tmp_path, device=FakeDevice()) as watch:
        watched = loop(watch.see)
    assert watched[0] == bare[0]
    for ours, theirs in zip(watched[1].parameters(), bare[1].parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert alike(loop, tmp_path).steps == 3 * BATCHES


def test_a_row_a_second(tmp_path: Path) -> None:
    """With the steps that are in it; together they are all of the run's."""
    watch = timed(tmp_path, FakeDevice())
    assert sum(row["cuda_steps"] for row in rows(watch)) == BATCHES
    assert len(rows(watch)) >= BATCHES - 2
    assert all(row["cuda_allocated_mb"] == 6500 for row in rows(watch))


def test_a_short_run_leaves_a_row(tmp_path: Path) -> None:
    """Written at its end."""
    with watching(tmp_path, device=FakeDevice()) as watch:
        train()
    (row,) = rows(watch)
    assert row["cuda_steps"] == BATCHES
    assert row["gpu_timed"] == 1


def test_counts_are_since_the_row_before(tmp_path: Path) -> None:
    """So that they add up to those of the run."""
    device, made = FakeDevice(), 100
    device.counters = counters(allocations=made)

    def between() -> None:
        nonlocal made
        made += 7
        device.counters = counters(allocations=made)

    watch = timed(tmp_path, device, between)
    assert sum(row["cuda_allocs"] for row in rows(watch)) == 7 * BATCHES


def test_an_allocator_that_is_slow_to_ask_is_asked_less(tmp_path: Path) -> None:
    """Where torch has the public function only, every ten seconds."""
    device = FakeDevice()
    device.quick = False
    watch = timed(tmp_path, device)
    assert len(rows(watch)) <= BATCHES * ROW_NS / SLOW_ROW_NS + 1


def test_another_allocator_tells_less(tmp_path: Path) -> None:
    """What it reports as zero is left out, not shown as none."""
    device = FakeDevice()
    device.about["backend"] = "cudaMallocAsync"
    watch = timed(tmp_path, device)
    assert "cuda_split_mb" not in rows(watch)[0]
    assert rows(watch)[0]["cuda_allocated_mb"] == 6500


def test_a_memory_error_that_the_program_caught_is_told(tmp_path: Path) -> None:
    """With the figures that stood at that row; who held the memory is not known any more."""
    device = FakeDevice()

    def between() -> None:
        device.counters = counters(num_ooms=1)

    watch = timed(tmp_path, device, between)
    (result,) = watch.kinds("oom")
    assert result["caught"] is True
    assert (result["allocated_mb"], result["split_mb"]) == (6500, 6400)
    assert "holders" not in result


def test_a_device_that_fails_ends_nothing_but_its_rows(tmp_path: Path) -> None:
    """The steps go on being recorded, and the training gets no exception."""
    device = FakeDevice()

    def between() -> None:
        device.broken = True

    watch = timed(tmp_path, device, between)
    assert watch.steps == BATCHES
    assert not watch.kinds("warn")
    assert watch.recorder.each == []


def test_why_nothing_is_timed_is_said(tmp_path: Path) -> None:
    """In the facts, and once to whoever looks at the page."""
    device = FakeDevice()
    with watching(tmp_path, device=device) as watch:
        watch.probe.cuda._timing.stop("RuntimeError: two devices")
        train()
    assert watch.facts()["cuda"]["not_timed"] == "RuntimeError: two devices"
    assert [event["text"] for event in watch.kinds("warn")] == [
        "the GPU's time for each phase is not measured: RuntimeError: two devices"
    ]


def test_everything_is_put_back(tmp_path: Path) -> None:
    """After detach no step, phase or batch is looked at."""
    with watching(tmp_path, device=FakeDevice()) as watch:
        train()
    assert watch.recorder.each == watch.recorder.clock.trace == watch.probe.loader_hooks.looks == []


def test_batches_are_described(tmp_path: Path) -> None:
    """Where they lie, how large they are, pinned or not: for the loader that trains."""
    with watching(tmp_path, device=FakeDevice()) as watch:
        train(2)
    found = watch.facts()["batch/1"]
    assert (found["device"], found["pinned"], found["tensors"]) == ("cpu", False, 2)
    assert found["mb"] == found["pageable_mb"] == pytest.approx(8 * 7 * 4 / 1e6)


def test_a_step_is_timed_phase_by_phase(tmp_path: Path) -> None:
    """Real hooks lead to the device's time of each phase."""
    watch = timed(tmp_path, FakeDevice())
    row = next(row for row in rows(watch) if row.get("gpu_timed"))
    assert {"gpu_forward_ms", "gpu_backward_ms", "gpu_optimizer_ms", "gpu_data_ms"} <= set(row)
    assert row["gpu_caught_up"] == 1  # nothing was launched, so the stand-in had nothing to do
    assert row["gpu_step_ms"] > 0


@pytest.mark.filterwarnings("ignore:Guards may run slower:RuntimeWarning")  # Python 3.13.0 has a bug
def test_a_compiled_model_stays_whole(tmp_path: Path) -> None:
    """Events at the borders of its phases break no graph, and make nothing compile anew."""
    from torch._dynamo.testing import CompileCounter

    made = CompileCounter()
    model = net()
    optimizer = sgd(model)
    run = torch.compile(model, backend=made, fullgraph=True)
    device = FakeDevice()
    ahead = device.now = Ahead()
    with watching(tmp_path, device=device) as watch:
        watch.probe.cuda._now = watch.probe.cuda._timing._now = ahead
        for batch in loader():
            learn(run, optimizer, batch)
            ahead.on(ROW_NS)
    assert made.frame_count == 1
    assert sum(row.get("gpu_timed", 0) for row in rows(watch)) >= 2


# -- the exception that ends a run


def fail(watch: Watch, message: str) -> dict[str, Any]:
    """A program that dies of this error, and what was told of it."""
    try:
        raise torch.cuda.OutOfMemoryError(message)
    except torch.cuda.OutOfMemoryError as error:
        watch.probe.failed(type(error), error)
    watch.finish()
    return (watch.kinds("oom") or [{}])[0]


MESSAGE = "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 23.68 GiB."


def test_an_error_that_ends_the_run_is_explained(tmp_path: Path) -> None:
    """What was asked for, what there was, and where in the program."""
    watch = Watch(tmp_path, device=FakeDevice())
    result = fail(watch, MESSAGE)
    assert result["requested_mb"] == pytest.approx(2.5 * 2**30 / 1e6)
    assert (result["caught"], result["device"], result["free_mb"]) == (False, 0, 12.5)
    assert result["location"].startswith("tests/probe/test_cuda.py:")
    assert result["categories"]["other"] == 0
    assert [event["kind"] for event in watch.events if event["kind"] in ("exception", "oom")] == [
        "exception",
        "oom",
    ]


def test_an_error_is_told_once(tmp_path: Path) -> None:
    """The row at the end does not take it for one that was caught."""
    device = FakeDevice()
    watch = Watch(tmp_path, device=device)
    device.counters = counters(num_ooms=1)
    fail(watch, MESSAGE)
    assert len(watch.kinds("oom")) == 1


def test_other_errors_are_no_business_of_the_device(tmp_path: Path) -> None:
    """No snapshot is taken."""
    device = FakeDevice()
    watch = Watch(tmp_path, device=device)
    watch.probe.failed(ValueError, ValueError("wrong"))
    watch.finish()
    assert "segments" not in device.calls
    assert watch.kinds("exception")
    assert not watch.kinds("oom")


def test_a_device_that_answers_nothing_is_told_of_all_the_same(tmp_path: Path) -> None:
    """The message is known in any case; nothing is raised while a program dies."""
    device = FakeDevice()
    watch = Watch(tmp_path, device=device)
    device.broken = True
    result = fail(watch, MESSAGE)
    assert result["message"] == MESSAGE
    assert "categories" not in result


def test_a_snapshot_of_very_many_blocks_is_not_taken(tmp_path: Path) -> None:
    """It would keep a dying process for seconds; the totals are told."""
    device = FakeDevice()
    watch = Watch(tmp_path, device=device)
    many: dict[str, Any] = {**counters(), "active": {"all": {"current": 1_000_000}}}
    device.counters = many
    result = fail(watch, MESSAGE)
    assert "segments" not in device.calls
    assert result["allocated_mb"] == 6500


def test_patches_are_the_probes(tmp_path: Path) -> None:
    """What the device's watch replaced goes back with the rest."""
    before = torch.cuda.Stream.synchronize
    with watching(tmp_path, device=FakeDevice()) as watch:
        assert watch.probe.cuda.on
        assert torch.cuda.Stream.synchronize is not before
    assert torch.cuda.Stream.synchronize is before
