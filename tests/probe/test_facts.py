"""Configuration as it really is: machine, model, loader, distributed set-up."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from loops import learn, loader, net, sgd
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset
from watching import watching

from monitor.probe.facts import ddp_facts, environment, loader_facts, model_facts, usable_cpus


def test_the_environment_is_what_this_process_has() -> None:
    """Threads, CPUs and versions, as plain data."""
    found = environment()
    assert found["threads"] == torch.get_num_threads()
    assert found["usable_cpus"] == usable_cpus() == len(os.sched_getaffinity(0))
    assert found["torch"] == torch.__version__
    assert json.loads(json.dumps(found)) == found


def test_threads_that_change_are_told_anew(tmp_path: Path) -> None:
    """`set_num_threads` in the middle of a run is seen."""
    with watching(tmp_path) as watch:
        model = net()
        optimizer = sgd(model)
        for batch in loader():
            learn(model, optimizer, batch)
            torch.set_num_threads(2)
    result = [event["value"]["threads"] for event in watch.kinds("fact") if event["name"] == "threads"]
    assert result[-1] == 2


class Mixed(nn.Module):
    """Layers of several kinds; one of them frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3)
        self.narrow = nn.Linear(16, 10)
        self.wide = nn.Linear(1024, 8).bfloat16()
        self.frozen = nn.Linear(8, 8).requires_grad_(False)


def test_what_a_model_is_made_of() -> None:
    """Elements by type, trained or not; matrix layers, largest first; those that are not aligned."""
    found = model_facts(Mixed())
    linear = 1024 * 8 + 8
    assert found["dtypes"] == {"float32": 448 + 170 + 72, "bfloat16": linear}
    assert found["trainable_dtypes"] == {"float32": 448 + 170, "bfloat16": linear}
    assert (found["parameters"], found["trainable"]) == (690 + linear, 618 + linear)
    assert [(one["name"], one["kind"], one["shape"]) for one in found["matmuls"]] == [
        ("wide", "linear", [1024, 8]),
        ("conv", "conv", [3, 16]),
        ("narrow", "linear", [16, 10]),
        ("frozen", "linear", [8, 8]),
    ]
    assert [one["elements"] for one in found["matmuls"]] == [8192, 432, 160, 64]
    assert found["unaligned"] == [["narrow", 16, 10]]
    assert (found["class"], found["device"], found["compiled"]) == ("Mixed", "cpu", False)
    assert json.loads(json.dumps(found)) == found


def test_convolutions_in_channels_last() -> None:
    """Counted where their weights lie that way; one-by-one kernels lie both ways and are not."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 1))
    before = model_facts(model)
    after = model_facts(model.to(memory_format=torch.channels_last))
    assert (before["conv_layers"], before["conv_channels_last"]) == (3, 0)
    assert after["conv_channels_last"] == 2


@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_lazy_layers_have_no_elements_yet() -> None:
    """A parameter without a shape counts nothing, and breaks nothing."""
    found = model_facts(nn.Sequential(nn.LazyLinear(4), nn.LazyConv2d(4, 3), nn.Linear(2, 2)))
    assert found["parameters"] == 6


def test_wrappers_are_told() -> None:
    """DataParallel, and both ways of compiling."""
    model = net()
    model.compile(backend="eager")
    assert model_facts(nn.DataParallel(net()))["data_parallel"]
    assert model_facts(model)["compiled"]
    assert model_facts(torch.compile(net(), backend="eager"))["compiled"]


def test_a_watched_model_does_not_pass_for_a_compiled_one(tmp_path: Path) -> None:
    """Our call in the place of a compiled one is none."""
    model, compiled = net(), net()
    compiled.compile(backend="eager")
    with watching(tmp_path, model, compiled):
        assert [model_facts(each)["compiled"] for each in (model, compiled)] == [False, True]


class Stream(IterableDataset[Any]):
    def __len__(self) -> int:
        raise AssertionError("nobody asks a stream for its length: torch would warn of it later")

    def __iter__(self) -> Iterator[Any]:
        yield torch.zeros(1)


class Unknown(TensorDataset):
    def __len__(self) -> int:
        raise NotImplementedError


DATA = TensorDataset(torch.zeros(10, 1))

#: Loader, and what is told of it.
LOADERS: dict[str, tuple[Callable[[], DataLoader[Any]], dict[str, Any]]] = {
    "plain": (
        lambda: DataLoader(DATA, 4, shuffle=True, drop_last=True),
        {"batch_size": 4, "num_workers": 0, "shuffle": True, "drop_last": True, "length": 2},
    ),
    "workers": (
        lambda: DataLoader(DATA, num_workers=2, persistent_workers=True, multiprocessing_context="spawn"),
        {
            "num_workers": 2,
            "persistent_workers": True,
            "multiprocessing_context": "spawn",
            "prefetch_factor": 2,
        },
    ),
    "functions": (
        lambda: DataLoader(DATA, collate_fn=loader_facts, worker_init_fn=model_facts),
        {"collate_fn": "loader_facts", "worker_init_fn": "model_facts"},
    ),
    "stream": (lambda: DataLoader(Stream()), {"dataset": "Stream", "length": None}),
    "length unknown": (
        lambda: DataLoader(Unknown(torch.zeros(3)), batch_sampler=[[0], [1]]),
        {"dataset": "Unknown", "length": 2, "batch_size": None},
    ),
    "sampler without length": (
        lambda: DataLoader(DATA, sampler=iter([1, 2])),  # type: ignore[arg-type]
        {"length": None},
    ),
}


@pytest.mark.parametrize("name", LOADERS)
def test_a_loaders_arguments(name: str) -> None:
    """As the DataLoader has them, whatever it cannot say being None."""
    make, expected = LOADERS[name]
    found = loader_facts(make())
    assert {key: found[key] for key in expected} == expected
    assert json.loads(json.dumps(found)) == found


@pytest.fixture
def group() -> Iterator[None]:
    """A process group of one."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("finds", [True, False])
def test_ddp(group: None, finds: bool, tmp_path: Path) -> None:
    """The flags, what was unused where torch searched for it, and the line that wrapped the model."""
    with watching(tmp_path) as watch:
        model = nn.parallel.DistributedDataParallel(net(), find_unused_parameters=finds)
        optimizer = sgd(model)
        for batch in loader():
            learn(model, optimizer, batch)
    fact = watch.facts()["ddp"]
    assert (fact["find_unused_parameters"], fact["unused_parameter_size"]) == (finds, 0 if finds else None)
    assert (fact["static_graph"], fact["backend"], fact["bucket_cap_mb"]) == (False, "gloo", 25)
    assert fact["location"].startswith("tests/probe/test_facts.py:")
    assert watch.facts()["model/1"]["distributed_data_parallel"]
    assert ddp_facts(net()) is None
