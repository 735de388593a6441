"""The trained modules: found, timed, and otherwise just what they were."""

from __future__ import annotations

import copy
import io
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from loops import BATCHES, FEATURES, error, learn, loader, net, sgd
from torch import nn
from watching import See, alike, watching

from monitor.probe.forward import in_reach

ONE = torch.ones(2, FEATURES)


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(FEATURES, 1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.inner(features)


class OwnState(Plain):
    """Gives pickle all of its attributes, as some models do."""

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)


@pytest.mark.parametrize("kind", [Plain, OwnState])
def test_a_watched_module_is_copied_and_pickled(kind: type[Plain], tmp_path: Path) -> None:
    """Copies compute the same, are not watched, and stay out of the watched module's way."""
    model = kind()
    expected = model(ONE)
    with watching(tmp_path, model):
        copies = [
            copy.deepcopy(model),
            copy.copy(model),
            pickle.loads(pickle.dumps(model)),
            torch.load(saved(model), weights_only=False),
        ]
        assert all(torch.equal(each(ONE), expected) for each in copies)
        changed = copies[0]
        nn.init.zeros_(changed.inner.weight)
        assert not torch.equal(changed(ONE), model(ONE))


def saved(model: nn.Module) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return file


def test_state_dicts_and_names_are_the_same(tmp_path: Path) -> None:
    """Nothing of ours is among parameters, buffers, modules or the text of a module."""
    model = net()
    before = list(model.state_dict()), [name for name, _ in model.named_modules()], repr(model)
    with watching(tmp_path, model):
        after = list(model.state_dict()), [name for name, _ in model.named_modules()], repr(model)
        assert after == before


torch_calls_jit_deprecated = pytest.mark.filterwarnings(
    "ignore:.*torch.jit:DeprecationWarning", "ignore:.*torch.jit:FutureWarning"
)


@torch_calls_jit_deprecated
def test_jit(tmp_path: Path) -> None:
    """Tracing and scripting give what they give without us."""
    model = Plain()
    with watching(tmp_path, model):
        traced, scripted = torch.jit.trace(model, ONE), torch.jit.script(model)
        assert torch.equal(traced(ONE), model(ONE))
        assert torch.equal(scripted(ONE), model(ONE))
        bytes_ = io.BytesIO()
        torch.jit.save(scripted, bytes_)
    bare = io.BytesIO()
    torch.jit.save(torch.jit.script(model), bare)
    assert scripted.code == torch.jit.script(model).code
    assert len(bytes_.getvalue()) == len(bare.getvalue())


@torch_calls_jit_deprecated
def test_a_scripted_module_is_watched_like_any_other(tmp_path: Path) -> None:
    """A ScriptModule can be trained and timed."""

    def loop(see: See) -> Any:
        model = torch.jit.script(Plain())
        see(model)
        optimizer = sgd(model)
        return dict(model.state_dict()), [learn(model, optimizer, batch) for batch in loader()]

    watch = alike(loop, tmp_path)
    assert watch.steps == BATCHES
    assert min(watch.column("forward_ms")) > 0


@pytest.mark.filterwarnings("ignore")
def test_export(tmp_path: Path) -> None:
    """torch.export sees the same graph."""
    model = Plain()
    bare = torch.export.export(model, (ONE,)).graph_module.code
    with watching(tmp_path, model):
        assert torch.export.export(model, (ONE,)).graph_module.code == bare


def test_fx(tmp_path: Path) -> None:
    """Symbolic tracing sees the same graph."""
    model = Plain()
    bare = torch.fx.symbolic_trace(model).code
    with watching(tmp_path, model):
        assert torch.fx.symbolic_trace(model).code == bare


def test_functional_call_and_transforms(tmp_path: Path) -> None:
    """Other parameters, and torch.func's grad and vmap over them."""
    model, zeros = Plain(), {name: torch.zeros_like(p) for name, p in Plain().named_parameters()}

    def loss(parameters: dict[str, torch.Tensor], features: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(model, parameters, (features,)).sum()

    own = dict(model.named_parameters())
    bare = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(own, ONE)
    with watching(tmp_path, model) as watch:
        assert torch.func.functional_call(model, zeros, (ONE,)).abs().sum() == 0
        watched = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(own, ONE)
    assert all(torch.equal(watched[name], bare[name]) for name in own)
    assert not watch.kinds("warn")


def test_a_data_parallel_replica_runs_itself(tmp_path: Path) -> None:
    """What `nn.DataParallel` copies to each device computes with its own parameters, not the original's."""
    model = Plain()
    with watching(tmp_path, model):
        replica = model._replicate_for_data_parallel()
        replica.inner = nn.Linear(FEATURES, 1)
        nn.init.zeros_(replica.inner.weight)
        nn.init.ones_(replica.inner.bias)
        assert replica(ONE).flatten().tolist() == [1.0, 1.0]


def test_data_parallel_on_the_cpu(tmp_path: Path) -> None:
    """A wrapped model trains the same, whichever of the two is named."""

    def loop(see: See) -> Any:
        model = Plain()
        see(model)
        called = nn.DataParallel(model)
        optimizer = sgd(called)
        return model, [learn(called, optimizer, batch) for batch in loader()]

    watch = alike(loop, tmp_path)
    assert watch.steps == BATCHES
    assert watch.facts()["model/2"]["data_parallel"]


def test_the_users_own_hooks_run_as_before(tmp_path: Path) -> None:
    """Forward pre-hooks, hooks and global hooks: as many calls, in the same order."""

    def loop(see: See) -> Any:
        model, calls = Plain(), []
        model.register_forward_pre_hook(lambda *_: calls.append("before"))
        model.register_forward_hook(lambda *_: calls.append("after"))
        see(model)
        every = nn.modules.module.register_module_forward_hook(lambda m, *_: calls.append(type(m).__name__))
        optimizer = sgd(model)
        losses = [learn(model, optimizer, batch) for batch in loader()]
        every.remove()
        return model, losses, calls

    assert alike(loop, tmp_path).steps == BATCHES


class Trainer:
    """Keeps model and optimizer to itself."""

    def __init__(self) -> None:
        self.model = net()
        self.optimizer = sgd(self.model)

    def step(self, batch: Any) -> None:
        learn(self.model, self.optimizer, batch)


def test_a_model_that_is_an_attribute_is_found(tmp_path: Path) -> None:
    """In reach are the variables of the callers, and the attributes of their `self`."""
    with watching(tmp_path) as watch:
        trainer = Trainer()
        for batch in loader():
            trainer.step(batch)
    assert watch.facts()["model/1"]["class"] == "Sequential"
    assert min(watch.column("forward_ms")[1:]) > 0


def test_a_wrapper_stands_for_what_it_wraps(tmp_path: Path) -> None:
    """Of a module and a module that contains it, the outer one is the model; others in reach are none."""
    with watching(tmp_path) as watch:
        inner, stranger = Plain(), net()
        outer = nn.DataParallel(inner)
        optimizer = sgd(outer)
        for batch in loader():
            learn(outer, optimizer, batch)
    assert watch.probe.module_hooks.modules == [outer]
    assert stranger not in watch.probe.module_hooks.modules


def test_every_later_model_is_found(tmp_path: Path) -> None:
    """A search over many models in one process: each is found, whatever identities are used again."""
    with watching(tmp_path) as watch:
        for _ in range(12):
            model = net()
            optimizer = sgd(model)
            for batch in loader(rows=24):
                learn(model, optimizer, batch)
            del model, optimizer
    assert watch.steps == 12 * 3
    last = [row["forward_ms"] for number, row in enumerate(watch.rows) if number % 3 == 2]
    assert min(last) > 0


def test_what_is_in_reach() -> None:
    """Modules by name, in short containers, and as attributes of `self`; nothing else."""
    first, second, third = net(), net(), net()
    pair, named, many = [first], {"it": second}, [net() for _ in range(9)]
    found = in_reach(sys._getframe())
    assert {id(module) for module in found} == {id(first), id(second), id(third)}
    assert len(many) == 9
    assert (pair, named) == ([first], {"it": second})


def test_an_evaluation_in_the_middle_of_a_forward_pass(tmp_path: Path) -> None:
    """A model that is looked at without gradients while it trains is still training."""

    def loop(see: See) -> Any:
        model = net()
        see(model)
        optimizer, losses = sgd(model), []
        for batch in loader():
            with torch.no_grad():
                losses.append(error(model, batch).item())
            losses.append(learn(model, optimizer, batch))
        return model, losses

    watch = alike(loop, tmp_path)
    assert watch.steps == BATCHES
    assert watch.total("eval") == 0
