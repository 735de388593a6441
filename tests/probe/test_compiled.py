"""torch.compile: not one graph, break or recompilation more than without us."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from loops import BATCHES, FEATURES, error, learn, loader, net, sgd
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook
from watching import See, Watch, digest, ignore, watching

#: Torch's compiler warns of what torch itself does.
pytestmark = pytest.mark.filterwarnings("ignore")

#: A model's ways of being compiled, as `make(model, backend) -> what the loop calls`.
Compile = Callable[[nn.Module, str], nn.Module]


def wrapped(model: nn.Module, backend: str) -> nn.Module:
    return torch.compile(model, backend=backend)  # type: ignore[return-value]


def wrapped_whole(model: nn.Module, backend: str) -> nn.Module:
    return torch.compile(model, backend=backend, fullgraph=True)  # type: ignore[return-value]


def in_place(model: nn.Module, backend: str) -> nn.Module:
    model.compile(backend=backend)
    return model


def in_place_whole(model: nn.Module, backend: str) -> nn.Module:
    model.compile(backend=backend, fullgraph=True)
    return model


class Plain(nn.Module):
    """The compiler passes over the code of torch's own containers, so the outermost is the user's."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = net()

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.inner(features)


class Branching(nn.Module):
    """A graph break of the user's own, and one part called with two shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = net()

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        out = self.inner(features)
        if out.sum().item() > 1e9:
            out = out * 2
        return self.inner(features[: len(features) // 2]).mean() + out


def counters() -> tuple[Any, ...]:
    """What the compiler counted since the last reset: graphs, breaks, what it compiled and why again."""
    from torch._dynamo.utils import counters, get_compilation_metrics

    compiled = [  # torch 2.4 has entries of backward passes too, and keeps reasons elsewhere
        (getattr(entry, "co_name", None), getattr(entry, "recompile_reason", None))
        for entry in get_compilation_metrics()
    ]
    return dict(counters["stats"]), dict(counters["graph_break"]), compiled


def fresh() -> None:
    import torch._dynamo.utils

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch._dynamo.utils.clear_compilation_metrics()
    torch.manual_seed(0)


@contextmanager
def hooked() -> Iterator[None]:
    """A hook before every optimizer's step that does nothing, by torch's own means.

    From torch 2.15 on any such hook makes torch run its wrapper around a compiled step as it is: the graphs
    are the same, and there is one break and one compilation less. Older ones look through it.
    """
    handle = register_optimizer_step_pre_hook(lambda *_: None)
    yield
    handle.remove()


def compiled_alike(
    loop: Callable[[See], Any], folder: Path, named: bool = True, around: Any = nullcontext
) -> Watch:
    """Run a loop bare and watched: the same result, and the same counters. Returns what was watched.

    Args:
        around: what the bare one runs in.
    """
    fresh()
    with around():
        bare = digest(loop(ignore)), counters()
    with watching(folder) as watch:
        fresh()
        watched = digest(loop(watch.see if named else ignore)), counters()
    assert watched == bare
    assert not watch.kinds("warn")
    return watch


@pytest.mark.parametrize("when", ["attach first", "compile first", "found"])
@pytest.mark.parametrize("compile_", [wrapped, wrapped_whole, in_place, in_place_whole])
def test_a_compiled_model_is_compiled_as_if_we_were_not_there(
    compile_: Compile, when: str, tmp_path: Path
) -> None:
    """Whole graphs stay whole, whichever comes first; its forward passes are timed."""

    def loop(see: See) -> Any:
        model = Plain()
        if when == "attach first":
            see(model)
        called = compile_(model, "eager")
        if when == "compile first":
            see(called)
        optimizer = sgd(model)
        return model, [learn(called, optimizer, batch) for _ in range(2) for batch in loader()]

    watch = compiled_alike(loop, tmp_path, named=when != "found")
    assert watch.steps == 2 * BATCHES
    assert min(watch.column("forward_ms")[1:]) > 0


@pytest.mark.parametrize(("compile_", "backend"), [(wrapped, "aot_eager"), (in_place, "eager")])
def test_the_users_own_breaks_stay_as_many(compile_: Compile, backend: str, tmp_path: Path) -> None:
    """A model that breaks its graph and is called with two shapes: the same breaks and recompilations."""

    def loop(see: See) -> Any:
        model = Branching()
        see(model)
        called = compile_(model, backend)
        optimizer = sgd(model)
        return model, [learn(called, optimizer, batch) for batch in loader(rows=44)]

    watch = compiled_alike(loop, tmp_path)
    assert watch.steps == BATCHES
    assert min(watch.column("forward_ms")) > 0


def test_a_compiled_model_with_hooks_of_the_users_own(tmp_path: Path) -> None:
    """Where torch's short cut past `__call__` is closed, the compiler looks through our call."""

    def loop(see: See) -> Any:
        model = net()
        model.register_forward_hook(lambda module, args, out: out * 2)
        see(model)
        called = torch.compile(lambda features: model(features) + 1, backend="eager", fullgraph=True)
        optimizer, losses = sgd(model), []
        for features, target in loader():
            optimizer.zero_grad()
            loss = (called(features) - target).pow(2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return model, losses

    assert compiled_alike(loop, tmp_path).steps == BATCHES


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: Any) -> torch.Tensor:
    """All of a step, as some compile it: autocast, loss, backward, clipping, optimizer."""
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.bfloat16):
        loss = error(model, batch)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.detach()


@pytest.mark.parametrize("named", [True, False])
def test_a_compiled_training_step(named: bool, tmp_path: Path) -> None:
    """A function that holds the whole step: the same breaks. What is compiled into it is seen by nobody."""

    def loop(see: See) -> Any:
        model = net()
        see(model)
        optimizer, step = sgd(model), torch.compile(train_step, backend="eager")
        return model, [step(model, optimizer, batch).item() for _ in range(2) for batch in loader()]

    watch = compiled_alike(loop, tmp_path, named, around=hooked)
    assert watch.steps == 2 * BATCHES
    assert min(watch.column("backward_ms")) > 0


def test_a_compiled_function_around_a_plain_model(tmp_path: Path) -> None:
    """The model inside a compiled loss function is found at the first step; nothing is compiled again."""

    def loop(see: See) -> Any:
        model = net()
        compute, optimizer = torch.compile(error, backend="eager", fullgraph=True), sgd(model)
        losses = []
        for batch in loader():
            optimizer.zero_grad()
            loss = compute(model, batch)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return model, losses

    assert compiled_alike(loop, tmp_path).steps == BATCHES


def test_a_compiled_optimizer(tmp_path: Path) -> None:
    """`torch.compile(optimizer.step)`: as many graphs, and the same weights."""

    def loop(see: See) -> Any:
        model = net()
        see(model)
        optimizer = sgd(model)
        step = torch.compile(optimizer.step, backend="eager")
        for batch in loader():
            optimizer.zero_grad()
            error(model, batch).backward()
            step()
        return model

    watch = compiled_alike(loop, tmp_path, around=hooked)
    assert watch.steps == BATCHES


def test_a_hook_of_ours_costs_a_compiled_optimizer_no_graph() -> None:
    """A hook before a step, as ours is: as many graphs as without, and no break or compilation more."""

    def counted() -> tuple[Any, Counter[str], Counter[str]]:
        fresh()
        model = net()
        optimizer = sgd(model)
        step = torch.compile(optimizer.step, backend="eager")
        for batch in loader():
            error(model, batch).backward()
            step()
        graphs, breaks, compiled = counters()
        return graphs, Counter(breaks), Counter(name for name, _ in compiled)

    graphs, breaks, compiled = counted()
    with hooked():
        graphs_too, breaks_too, compiled_too = counted()
    assert graphs_too == graphs
    assert breaks_too <= breaks
    assert compiled_too <= compiled


def test_an_optimizer_made_before_the_compiler_came(tmp_path: Path) -> None:
    """Torch takes the hooks off its optimizers when the compiler is loaded: the steps are seen still."""

    def loop(see: See) -> Any:
        model = net()
        see(model)
        optimizer = sgd(model)
        called = torch.compile(model, backend="eager")
        return model, [learn(called, optimizer, batch) for batch in loader()]

    watch = compiled_alike(loop, tmp_path)
    assert watch.column("optimizer_steps") == [1.0] * BATCHES


def test_compiling_again_while_watched_keeps_the_timing(tmp_path: Path) -> None:
    """`model.compile()` in the middle of the training, and detach afterwards: the user's call stays."""
    fresh()
    model = net()
    with watching(tmp_path, model) as watch:
        optimizer = sgd(model)
        for number, batch in enumerate(loader()):
            if number == 3:
                model.compile(backend="eager")
            learn(model, optimizer, batch)
    assert min(watch.column("forward_ms")) > 0
    compiled = vars(model)["_compiled_call_impl"]
    assert hasattr(compiled, "_torchdynamo_orig_callable")
    assert model(torch.zeros(1, FEATURES)).shape == (1, 1)


def test_an_uncompiled_models_place_is_empty_again(tmp_path: Path) -> None:
    """After detach a module's dictionary is what it was."""
    model = net()
    before = dict(vars(model))
    with watching(tmp_path, model):
        assert vars(model) != before
    assert vars(model) == before
