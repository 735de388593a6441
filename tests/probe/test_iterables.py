"""Loaders that are no DataLoader, named in `attach(loader=…)`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from training import digits, network, watching

from monitor.probe.iterables import Watched, watch_loader


class Pipeline:
    """Somebody's own loader: 10 ms a batch."""

    batch_size = 8

    def __init__(self, batches: int = 6) -> None:
        data = digits(8 * batches).tensors
        self.batches = list(zip(data[0].split(8), data[1].split(8), strict=True))

    def __iter__(self) -> Iterator[Any]:
        for batch in self.batches:
            time.sleep(0.01)
            yield batch

    def __len__(self) -> int:
        return len(self.batches)


def train(loader: Any, epochs: int = 2) -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(epochs):
        for x, y in loader:
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


def test_a_loader_of_ones_own_is_watched_in_place(tmp_path: Path) -> None:
    """The loop goes on iterating over the original; waiting, samples and epochs are seen."""
    loader = Pipeline()
    with watching(tmp_path) as seen:
        assert seen.probe is not None
        assert watch_loader(loader, seen.probe.loader_hooks, seen.probe.patches) is loader
        train(loader)
    assert seen.steps == 12
    assert seen.columns["data_ms"].min() >= 10
    assert list(seen.columns["samples"]) == [8] * 12
    assert [event["epoch"] for event in seen.of("epoch")] == [1, 2]
    fact = next(event["value"] for event in seen.of("fact") if event["name"] == "loader/1")
    assert (fact["batch_size"], fact["num_workers"], fact["length"]) == (8, None, 6)
    assert "__iter__" in vars(Pipeline)
    assert not isinstance(iter(loader), type(iter(Watched(loader, seen.probe.loader_hooks))))


def test_another_object_of_its_class_is_left_alone(tmp_path: Path) -> None:
    """Only the one that was named gives steps and samples."""
    loader, other = Pipeline(), Pipeline()
    with watching(tmp_path) as seen:
        assert seen.probe is not None
        watch_loader(loader, seen.probe.loader_hooks, seen.probe.patches)
        for _ in other:
            pass
        train(loader, 1)
    assert seen.steps == 6
    assert seen.sum("samples") == 48


@pytest.mark.parametrize("kind", [list, lambda loader: (batch for batch in loader), iter])
def test_what_cannot_be_changed_is_wrapped(tmp_path: Path, kind: Any) -> None:
    """Lists, generators, iterators: the loop takes `session.loader` instead."""
    with watching(tmp_path) as seen:
        assert seen.probe is not None
        watched = watch_loader(kind(Pipeline()), seen.probe.loader_hooks, seen.probe.patches)
        train(watched, 1)
    assert seen.steps == 6
    assert seen.sum("samples") == 48


def test_a_wrapped_loader_looks_like_its_own(tmp_path: Path) -> None:
    """Its length, its attributes, and `next` on it."""
    with watching(tmp_path) as seen:
        assert seen.probe is not None
        watched = Watched(Pipeline(), seen.probe.loader_hooks)
        assert len(watched) == 6
        assert watched.batch_size == 8
        assert len(next(watched)[0]) == 8
        with pytest.raises(AttributeError):
            watched.nothing  # noqa: B018


def test_a_data_loader_needs_nothing(tmp_path: Path) -> None:
    """It is watched anyway."""
    loader = torch.utils.data.DataLoader(digits(32), 8)
    with watching(tmp_path) as seen:
        assert seen.probe is not None
        assert watch_loader(loader, seen.probe.loader_hooks, seen.probe.patches) is loader
        train(loader, 1)
    assert seen.steps == 4
    assert seen.sum("samples") == 32


def test_after_detach_everything_passes_through(tmp_path: Path) -> None:
    """A wrapped loader that the user still holds goes on working."""
    with watching(tmp_path) as seen:
        assert seen.probe is not None
        watched = watch_loader([1, 2, 3], seen.probe.loader_hooks, seen.probe.patches)
    assert list(watched) == [1, 2, 3]
