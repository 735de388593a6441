"""All hooks together: put in and taken out without a trace, and harmless whatever happens to them."""

from __future__ import annotations

import contextlib
import gc
import inspect
import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from loops import BATCHES, error, learn, loader, net, sgd
from torch import nn
from torch.amp import GradScaler
from torch.amp.autocast_mode import autocast
from torch.optim import optimizer as optimizers
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, dataloader
from watching import See, Watch, alike, digest, ignore, watching

from monitor.probe import amp, batch_counts, construction, facts, forward, recorder, training
from monitor.probe import loader as loaders
from monitor.probe.probe import describe_failure

#: Every place of others that we put something into.
PLACES = [
    (DataLoader, "__init__"),
    (DataLoader, "__iter__"),
    (dataloader._BaseDataLoaderIter, "__next__"),
    (torch.autograd, "backward"),
    (torch, "save"),
    (torch.serialization, "save"),
    (os, "fsync"),
    (nn.Module, "compile"),
    (nn.Module, "_replicate_for_data_parallel"),
    (autocast, "__enter__"),
    (GradScaler, "scale"),
    (GradScaler, "unscale_"),
    (GradScaler, "step"),
    (GradScaler, "update"),
    (nn.utils, "clip_grad_norm_"),
    (nn.utils, "clip_grad_value_"),
    (nn.utils.clip_grad, "clip_grad_norm_"),
    (nn.utils.clip_grad, "clip_grad_value_"),
    (nn.parallel.DistributedDataParallel, "__init__"),
    (nn.parallel.DistributedDataParallel, "_sync_buffers"),
]


def snapshot() -> dict[str, Any]:
    """What stands in all those places, and in torch's and Python's lists of hooks."""
    found: dict[str, Any] = {f"{owner.__name__}.{name}": getattr(owner, name) for owner, name in PLACES}
    found["pre"] = list(optimizers._global_optimizer_pre_hooks.values())
    found["post"] = list(optimizers._global_optimizer_post_hooks.values())
    found["gc"] = list(gc.callbacks)
    found["ignored by TorchScript"] = list(torch.jit._recursive.ignored_attributes)
    return found


def looks() -> list[Any]:
    """Text and signature of what stands in each place."""
    return [(name, getattr(owner, name).__doc__, signature(owner, name)) for owner, name in PLACES]


def signature(owner: Any, name: str) -> str:
    return str(inspect.signature(getattr(owner, name)))


def run(watch: Watch, model: nn.Module) -> list[float]:
    optimizer = sgd(model)
    return [learn(model, optimizer, batch) for batch in loader()]


def test_detach_puts_everything_back(tmp_path: Path) -> None:
    """Each place holds the very object that it held before, and no module has anything of ours."""
    before, model = snapshot(), net()
    contents = dict(vars(model))
    with watching(tmp_path, model) as watch:
        assert not any(snapshot()[place] is before[place] for place in list(before)[: len(PLACES)])
        run(watch, model)
    assert snapshot() == before
    assert vars(model) == contents


def test_what_we_put_there_looks_like_what_was_there(tmp_path: Path) -> None:
    """Names, texts and signatures stay: Lightning asks DataLoader's `__init__` for its parameters."""
    before = looks()
    with watching(tmp_path):
        assert looks() == before


def test_the_last_step_is_recorded_at_detach(tmp_path: Path) -> None:
    """Detaching in the middle of a loop flushes the step that is going on."""
    model, optimizer = net(), sgd(net())
    with watching(tmp_path, model) as watch:
        optimizer = sgd(model)
        learn(model, optimizer, next(iter(loader())))
    assert watch.steps == 1
    assert watch.kinds("end") == [watch.events[-1]]


def test_somebody_elses_later_patch_stays_and_works(tmp_path: Path) -> None:
    """Detach leaves alone what was put over ours, and ours below it then merely passes through."""
    before = torch.save
    calls: list[str] = []
    with watching(tmp_path):
        ours = torch.save

        def theirs(*args: Any, **kwargs: Any) -> Any:
            calls.append("theirs")
            return ours(*args, **kwargs)

        torch.save = theirs
    try:
        torch.save({"a": 1}, tmp_path / "a.pt")
        assert (torch.save, calls) == (theirs, ["theirs"])
        assert torch.load(tmp_path / "a.pt", weights_only=True) == {"a": 1}
    finally:
        torch.save = before


def test_two_probes_one_after_the_other(tmp_path: Path) -> None:
    """Attach, detach, attach, detach: each sees its own steps, and the places are as before."""
    before, model = snapshot(), net()
    steps = []
    for _ in range(2):
        with watching(tmp_path, model) as watch:
            run(watch, model)
        run(watch, model)
        steps.append(watch.steps)
    assert steps == [BATCHES, BATCHES]
    assert snapshot() == before


def test_a_module_named_twice_is_timed_once(tmp_path: Path) -> None:
    """Attaching again is harmless."""
    model = net()
    with watching(tmp_path, model, model) as watch:
        watch.see(model)
        run(watch, model)
    assert watch.steps == BATCHES
    assert [name for name in watch.facts() if name.startswith("model/")] == ["model/1"]


def test_a_watched_model_is_not_kept_alive(tmp_path: Path) -> None:
    """A model that the user lets go is gone at once, without the garbage collector, named or found."""
    gone = []
    sgd(net())  # the first optimizer imports torch's compiler, which leaves the frames around it in a cycle
    gc.collect()
    gc.disable()
    try:
        with watching(tmp_path) as watch:
            for named in (True, False):
                model = net()
                if named:
                    watch.see(model)
                run(watch, model)
                gone.append(weakref.ref(model))
                del model
            assert [reference() for reference in gone] == [None, None]
    finally:
        gc.enable()


def test_the_first_steps_tensors_are_not_kept_alive(tmp_path: Path) -> None:
    """Looking for the model among a function's variables leaves no copy of them behind."""

    def fit() -> bool:
        model = net()
        optimizer, kept = sgd(model), None
        for number, batch in enumerate(loader()):
            loss = error(model, batch)
            loss.backward()
            optimizer.step()
            if number == 0:
                kept = weakref.ref(loss)
        return kept is not None and kept() is None

    with watching(tmp_path):
        assert fit()


def test_the_programs_own_view_of_its_variables_is_left_alone(tmp_path: Path) -> None:
    """A dictionary that the program got from `locals()` keeps its entries."""

    def fit(rate: float = 0.1) -> Any:
        given = locals()
        model = net()
        run_one = sgd(model, lr=rate)
        for batch in loader():
            learn(model, run_one, batch)
        return given["rate"]

    with watching(tmp_path):
        assert fit() == 0.1


@pytest.mark.parametrize("where", ["data", "forward", "backward", "optimizer"])
def test_exceptions_that_the_loop_catches(where: str, tmp_path: Path) -> None:
    """Whatever raises now and then, the exception is the user's own, and later steps are seen as before."""

    def loop(see: See) -> Any:
        model, count, caught = net(), [0], 0
        see(model)

        def now_and_then(*_: Any) -> None:
            count[0] += 1
            if not count[0] % 3:
                raise ArithmeticError(where)

        class Raising(torch.optim.SGD):
            def step(self, closure: Any = None) -> Any:
                if where == "optimizer":
                    now_and_then()
                return super().step(closure)

        def collate(samples: Any) -> Any:
            if where == "data":
                now_and_then()
            return torch.utils.data.default_collate(samples)

        optimizer, iterator = Raising(model.parameters(), lr=0.05), iter(loader(collate_fn=collate))
        if where == "forward":
            model[0].register_forward_hook(now_and_then)
        for _ in range(BATCHES):
            caught += 1
            with contextlib.suppress(ArithmeticError):
                loss = error(model, next(iterator))
                if where == "backward":
                    loss.register_hook(now_and_then)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                caught -= 1
        return model, caught

    watch = alike(loop, tmp_path)
    steps = watch.column("optimizer_steps")
    assert sum(steps) == BATCHES - BATCHES // 3
    assert not watch.kinds("warn")
    # a phase that an exception left open does not swallow the steps after it
    assert watch.rows[-1]["forward_ms"] > 0
    assert watch.rows[-1]["optimizer_ms"] < watch.rows[-1]["step_ms"]


def test_an_interrupt_in_the_middle_of_a_fetch(tmp_path: Path) -> None:
    """Ctrl-C comes through as itself, and training can go on in the next cell."""
    model, raising = net(), [True]

    def collate(samples: Any) -> Any:
        if raising[0]:
            raising[0] = False
            raise KeyboardInterrupt
        return torch.utils.data.default_collate(samples)

    with watching(tmp_path, model) as watch:
        optimizer, batches_ = sgd(model), loader(collate_fn=collate)
        with pytest.raises(KeyboardInterrupt):
            list(batches_)
        for batch in batches_:
            learn(model, optimizer, batch)
    assert watch.steps == BATCHES
    assert min(watch.column("data_ms")) > 0


def in_thread(work: Callable[[], Any]) -> Any:
    """Run in a thread of its own; returns what it returns."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def test_training_in_a_thread(tmp_path: Path) -> None:
    """The thread that runs the first backward pass is the one that is watched; a second fit's thread too."""

    def fit(see: See) -> Any:
        model = net()
        see(model)
        optimizer = sgd(model)
        return model, [learn(model, optimizer, batch) for _ in range(2) for batch in loader()]

    watch = alike(lambda see: [in_thread(lambda: fit(see)) for _ in range(2)], tmp_path)
    # what comes before a thread's first backward pass is not seen
    assert watch.steps == 4 * BATCHES


def test_other_threads_pass_through(tmp_path: Path) -> None:
    """Another thread that fetches, trains and saves beside the training is no part of its steps."""
    model, beside = net(), net()
    with watching(tmp_path, model, beside) as watch:
        optimizer = sgd(model)
        for batch in loader():
            learn(model, optimizer, batch)
            in_thread(lambda: run(watch, beside))
            in_thread(lambda: torch.save({}, tmp_path / "beside.pt"))
    assert watch.steps == BATCHES
    assert set(watch.column("optimizer_steps")) == {1.0}
    assert watch.kinds("save") == []


def reentrant(model: nn.Module, batch: Any) -> torch.Tensor:
    features, target = batch
    inner = checkpoint(model[:2], features.requires_grad_(), use_reentrant=True)
    return (model[2:](inner) - target).pow(2).mean()


def not_reentrant(model: nn.Module, batch: Any) -> torch.Tensor:
    features, target = batch
    inner = checkpoint(model[:2], features, use_reentrant=False)
    return (model[2:](inner) - target).pow(2).mean()


# torch 2.4 warns of a call of its own
@pytest.mark.filterwarnings("ignore:.torch.cpu.amp.autocast:FutureWarning")
@pytest.mark.parametrize("compute", [reentrant, not_reentrant])
def test_activation_checkpointing(compute: Callable[..., torch.Tensor], tmp_path: Path) -> None:
    """Forward passes inside the backward pass, and with `use_reentrant` a backward pass inside it."""

    def loop(see: See) -> Any:
        model = net()
        see(model)
        optimizer, losses = sgd(model), []
        for batch in loader():
            loss = compute(model, batch)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        return model, losses

    watch = alike(loop, tmp_path)
    assert watch.column("backward_calls") == [1.0] * BATCHES


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_anomaly_mode(tmp_path: Path) -> None:
    """The same result, and a fact of the run."""

    def loop(see: See) -> Any:
        with torch.autograd.detect_anomaly():
            model = net()
            see(model)
            optimizer = sgd(model)
            return model, [learn(model, optimizer, batch) for batch in loader()]

    watch = alike(loop, tmp_path)
    facts_ = [(event["name"], event["value"]) for event in watch.kinds("fact")]
    assert ("anomaly_mode", {"on": True}) in facts_


def test_several_and_nested_models(tmp_path: Path) -> None:
    """Two models and a part of one of them, all named: time is counted once."""

    def loop(see: See) -> Any:
        first, second = net(6), net()
        both = nn.ModuleList([first, second])
        see(first, first[0], second)
        optimizer, losses = sgd(both), []
        for features, target in loader():
            optimizer.zero_grad()
            loss = (second(first(features)) - target).pow(2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return both, losses

    watch = alike(loop, tmp_path)
    assert watch.steps == BATCHES
    assert watch.total("forward") < sum(watch.column("step_ms"))


@pytest.mark.parametrize(("method", "persistent"), [("fork", True), ("fork", False), ("spawn", True)])
def test_workers(method: str, persistent: bool, tmp_path: Path) -> None:
    """With forked and spawned workers the result is the same, and the tape has the trainer's steps only."""

    def loop(see: See) -> Any:
        model = net()
        see(model)
        optimizer = sgd(model)
        many = 1 if method == "spawn" else 2
        batches_ = loader(num_workers=many, multiprocessing_context=method, persistent_workers=persistent)
        return model, [learn(model, optimizer, batch) for _ in range(2) for batch in batches_]

    watch = alike(loop, tmp_path)
    assert watch.steps == 2 * BATCHES
    assert [event["epoch"] for event in watch.kinds("epoch")] == [1, 2]
    fact = watch.facts()["loader/1"]
    assert (fact["multiprocessing_context"], fact["persistent_workers"]) == (method, persistent)


def test_a_forked_child_passes_through(tmp_path: Path) -> None:
    """A child of the user's own trains on as if nobody had ever watched, and writes nothing."""
    model = net()
    with watching(tmp_path, model) as watch:
        run(watch, model)
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                run(watch, model)
                watch.recorder.event("nothing")
            os._exit(0)
        os.waitpid(pid, 0)
        run(watch, model)
    assert watch.steps == 2 * BATCHES
    assert watch.kinds("nothing") == []


def plainly(see: See) -> Any:
    """A loop that passes through every hook."""
    model = net()
    see(model)
    optimizer, scaler, losses = sgd(model), GradScaler("cpu", init_scale=4.0), []
    for batch in loader():
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = error(model, batch)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        torch.save({"loss": loss.item()}, os.devnull)
        losses.append(loss.item())
    with torch.no_grad():
        losses += [error(model, batch).item() for batch in loader()]
    return model, losses


def raising(*_: Any, **__: Any) -> Any:
    raise RuntimeError("planted")


#: What is made to raise: its owner, its name, and the signals that are lost with it.
PLANTS = {
    "journal": (recorder.JournalWriter, "append", {"events"}),
    "the boundary": (recorder.Recorder, "_make_end_step", {"data", "monitoring"}),
    "loader facts": (loaders, "describe_loader", {"loader"}),
    "a loader's place": (construction, "call_source", set()),
    "a location": (training, "location", {"model", "checkpoint"}),
    "optimizer facts": (training, "optimizer_facts", {"model"}),
    "discovery": (forward, "in_reach", {"model"}),
    "amp": (amp.Amp, "_was_scaled", {"loss_scale", "loss"}),
    "amp's step": (amp.Amp, "_stepped", {"amp_skipped"}),
    "clip": (amp.Amp, "_clipped", {"precision"}),
    "autocast": (amp.Amp, "_entered", {"precision"}),
    "backward": (amp.Amp, "_look", {"precision"}),
    "trained on": (loaders.LoaderHooks, "_trained_on", {"data"}),
    "first": (loaders.LoaderHooks, "_first", {"data"}),
    "batch counts": (batch_counts.BatchCounts, "add", {"data"}),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_a_failure_of_ours_never_reaches_the_loop(
    plant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whatever breaks in us: the same result, steps all the same, a line for each signal that is lost."""
    torch.manual_seed(0)
    bare = digest(plainly(ignore))
    owner, name, lost = PLANTS[plant]
    off = "monitoring" in lost  # a function that makes what shall raise
    monkeypatch.setattr(owner, name, (lambda self: raising) if off else raising)
    watch = Watch(tmp_path)
    torch.manual_seed(0)
    watched = digest(plainly(watch.see))
    monkeypatch.undo()
    with contextlib.suppress(RuntimeError):
        watch.finish()
    said = capfd.readouterr()
    assert (watched, said.out) == (bare, "")
    assert watch.steps == (0 if off else BATCHES)
    assert {line.split()[1] for line in said.err.splitlines()} == lost
    assert said.err.count("\n") == len(lost)
    assert set(watch.recorder.lost) == lost - {"events", "monitoring"}


def test_a_recorder_that_cannot_tell_harms_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even the line about what is lost can be written then."""
    torch.manual_seed(0)
    bare = digest(plainly(ignore))
    monkeypatch.setattr(recorder.Recorder, "event", raising)
    watch = Watch(tmp_path)
    torch.manual_seed(0)
    assert digest(plainly(watch.see)) == bare
    monkeypatch.undo()
    watch.finish()


@pytest.mark.parametrize(("plant", "lost"), [("model_facts", "model"), ("usable_cpus", "facts")])
def test_a_fact_that_cannot_be_read_costs_only_itself(
    plant: str, lost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Steps are recorded on; one line says so."""
    monkeypatch.setattr(facts, plant, raising)
    watch = alike(plainly, tmp_path)
    assert watch.steps == BATCHES
    assert (
        capfd.readouterr().err
        == f"torchvitals: {lost} is not measured: RuntimeError: planted. The rest is.\n"
    )


def test_a_batch_that_cannot_be_counted_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples are then unknown; everything else is measured."""
    monkeypatch.setattr(batch_counts, "count", raising)
    watch = alike(plainly, tmp_path)
    assert watch.steps == BATCHES
    assert all(value != value for value in watch.column("samples"))


def test_an_uncaught_exception_is_described() -> None:
    """Type, message, and the innermost line that is the user's own."""
    try:
        torch.zeros(2) @ torch.zeros(3)
    except RuntimeError as error_:
        found = describe_failure(type(error_), error_)
    assert found["type"] == "RuntimeError"
    assert found["location"].startswith("tests/probe/test_probe.py:")
    assert "Traceback" in found["traceback"]
