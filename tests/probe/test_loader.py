"""Loaders: which is which, where they were made, what their workers cost."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from loops import BATCH, BATCHES, FEATURES, data, learn, loader, net, sgd
from torch.utils.data import DataLoader, Dataset, IterableDataset
from watching import Watch, watching

from monitor.probe.loader import LOADERS


def train(watch: Watch, *loaders: Any) -> None:
    """An epoch over each, with one model."""
    model = net()
    watch.see(model)
    optimizer = sgd(model)
    for each in loaders:
        for batch in each:
            learn(model, optimizer, batch)


def made_here() -> DataLoader[Any]:
    return DataLoader(
        data(),
        batch_size=BATCH,  # as always
        shuffle=True,
    )


FIRST_LINE = made_here.__code__.co_firstlineno + 1


def test_where_a_loader_was_made(tmp_path: Path) -> None:
    """File and line of the call, and its source in one line."""
    with watching(tmp_path) as watch:
        train(watch, made_here())
    fact = watch.facts()["loader/1"]
    assert fact["location"] == f"tests/probe/test_loader.py:{FIRST_LINE}"
    assert fact["call"] == "DataLoader(data(), batch_size=BATCH, shuffle=True,)"


def test_where_a_loader_was_made_before_attach(tmp_path: Path) -> None:
    """One that is older than us is looked for by its name in the source."""
    older = DataLoader(data(), batch_size=BATCH, shuffle=True)
    with watching(tmp_path) as watch:
        model = net()
        optimizer = sgd(model)
        for batch in older:
            learn(model, optimizer, batch)
    fact = watch.facts()["loader/1"]
    assert fact["call"] == "DataLoader(data(), batch_size=BATCH, shuffle=True)"


def test_epochs_are_counted(tmp_path: Path) -> None:
    """Each iteration over the training loader is an epoch, with what its start cost."""
    kept = loader()
    with watching(tmp_path) as watch:
        train(watch, kept, kept, kept)
    assert watch.column("epoch") == [1.0] * BATCHES + [2.0] * BATCHES + [3.0] * BATCHES
    events = watch.kinds("epoch")
    assert [(event["epoch"], event["loader"], event["step"]) for event in events] == [
        (1, 1, 0), (2, 1, BATCHES), (3, 1, 2 * BATCHES),
    ]  # fmt: skip
    assert all(event["first_wait_ms"] > 0 for event in events)


def test_two_loaders_of_one_comprehension_are_two(tmp_path: Path) -> None:
    """Made by the same instruction, one for training and one for validation; modes are set in the steps."""
    with watching(tmp_path) as watch:
        loaders = {part: loader(shuffle=part == "train") for part in ("train", "valid")}
        model = net()
        watch.see(model)
        optimizer = sgd(model)
        for _ in range(3):
            for batch in loaders["train"]:
                model.train()
                learn(model, optimizer, batch)
            for features, _target in loaders["valid"]:
                model.eval()
                with torch.no_grad():
                    model(features)
    roles = {name: fact["role"] for name, fact in watch.facts().items() if name.startswith("loader/")}
    assert roles == {"loader/1": "train", "loader/2": "eval"}
    assert watch.steps == 3 * BATCHES
    assert watch.column("epoch") == [1.0] * BATCHES + [2.0] * BATCHES + [3.0] * BATCHES
    assert sum(watch.column("samples")) == 3 * BATCHES * BATCH


@pytest.mark.parametrize("first", [True, False])
def test_a_pass_that_trains_nothing_is_no_epoch(first: bool, tmp_path: Path) -> None:
    """A library that looks at all batches before it trains; accuracy on the training set, with gradients."""
    feed = loader()
    with watching(tmp_path) as watch:
        model = net()
        watch.see(model)
        optimizer = sgd(model)
        for _ in range(3):
            if first:
                list(feed)
            model.train()
            for batch in feed:
                learn(model, optimizer, batch)
            model.eval()
            for features, _target in () if first else feed:
                model(features)
    assert watch.column("epoch") == [1.0] * BATCHES + [2.0] * BATCHES + [3.0] * BATCHES
    assert watch.column("samples") == [BATCH] * 3 * BATCHES
    assert watch.column("micro_batches") == [1.0] * 3 * BATCHES


def skipped_one_by_one(batches: Iterator[Any]) -> None:
    for _ in range(3):
        next(batches)


def skipped_in_a_loop(batches: Iterator[Any]) -> None:
    for number, _batch in enumerate(batches):
        if number == 2:
            break


@pytest.mark.parametrize("skip", [skipped_one_by_one, skipped_in_a_loop])
def test_batches_that_are_skipped_count_for_no_step(skip: Any, tmp_path: Path) -> None:
    """A resumed run fetches what it was trained on before, and drops it."""
    with watching(tmp_path) as watch:
        model, batches = net(), iter(loader())
        optimizer = sgd(model)
        skip(batches)
        for batch in batches:
            learn(model, optimizer, batch)
    assert watch.column("samples") == [BATCH] * (BATCHES - 3)
    assert watch.column("micro_batches") == [1.0] * (BATCHES - 3)


def test_batches_that_are_skipped_by_continue(tmp_path: Path) -> None:
    """In the second epoch too, where each is still at hand while the next is fetched."""
    with watching(tmp_path) as watch:
        model, feed = net(), loader()
        optimizer = sgd(model)
        for _ in range(2):
            for number, batch in enumerate(feed):
                if number < 3:
                    continue
                learn(model, optimizer, batch)
    assert watch.column("samples") == [BATCH] * 2 * (BATCHES - 3)


@pytest.mark.parametrize("again", [True, False])
def test_a_batch_in_hand_when_the_loop_is_left_counts_for_no_step(again: bool, tmp_path: Path) -> None:
    """`if number == limit: break`: it was fetched and not trained on, with a loader kept or made anew."""
    feed = loader()
    with watching(tmp_path) as watch:
        model = net()
        optimizer = sgd(model)
        for _ in range(3):
            for number, batch in enumerate(feed if again else made_here()):
                if number == 2:
                    break
                learn(model, optimizer, batch)
    assert watch.column("samples") == [BATCH] * 6
    assert watch.column("epoch") == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]


def test_a_look_at_the_first_batch_is_no_epoch(tmp_path: Path) -> None:
    """`next(iter(loader))` for its shape."""
    feed = loader()
    with watching(tmp_path) as watch:
        features, _target = next(iter(feed))
        assert features.shape[0] == BATCH
        train(watch, feed)
    assert watch.column("samples") == [BATCH] * BATCHES
    assert watch.column("epoch") == [1.0] * BATCHES


def test_batches_that_are_put_together_for_a_step_all_count(tmp_path: Path) -> None:
    """Fetched one after the other with nothing between, and all of them trained on."""
    with watching(tmp_path) as watch:
        model = net()
        optimizer = sgd(model)
        batches = iter(loader())
        for _ in range(2):
            parts = [next(batches) for _ in range(3)]
            learn(model, optimizer, [torch.cat(column) for column in zip(*parts, strict=True)])
    assert watch.column("samples") == [3 * BATCH] * 2


def test_batches_whose_losses_are_added_up_all_count(tmp_path: Path) -> None:
    """One backward pass over three batches of which only the graph keeps a copy."""
    with watching(tmp_path) as watch:
        model = net()
        watch.see(model)
        optimizer = sgd(model)
        batches = iter(loader())
        for _ in range(2):
            optimizer.zero_grad()
            loss = torch.zeros(())
            for _ in range(3):
                loss = loss + model(next(batches)[0] * 1.0).square().mean()
            loss.backward()
            optimizer.step()
    assert watch.column("samples") == [3 * BATCH] * 2


@pytest.mark.parametrize("again", [True, False])
def test_a_step_over_the_end_of_a_loader_has_all_its_samples(again: bool, tmp_path: Path) -> None:
    """Accumulation that goes on with the next epoch, with the same loader and with one made anew."""
    feed, number = loader(), 0
    with watching(tmp_path) as watch:
        model = net()
        optimizer = sgd(model)
        for _ in range(2):
            for features, target in feed if again else made_here():
                torch.nn.functional.mse_loss(model(features), target).backward()
                number += 1
                if number % (BATCHES - 1) == 0:
                    optimizer.step()
                    optimizer.zero_grad()
    assert watch.column("samples") == [(BATCHES - 1) * BATCH] * 2


def test_two_optimizers_and_the_fetch_in_a_method_that_is_the_iteration(tmp_path: Path) -> None:
    """Each call's frame lies elsewhere, as the traceback of a log or a closure may have it."""
    kept, models, feed = [], [net(FEATURES), net()], loader()
    optimizers = [sgd(model) for model in models]

    def iteration(batches: Iterator[Any]) -> None:
        kept.append(sys._getframe())
        features, target = next(batches)
        torch.nn.functional.mse_loss(models[1](models[0](features)), target).backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()

    with watching(tmp_path) as watch:
        for _ in range(2):
            batches = iter(feed)
            for _ in range(BATCHES):
                iteration(batches)
    assert watch.column("samples") == [BATCH] * 2 * BATCHES


def test_a_new_loader_each_epoch_counts_on(tmp_path: Path) -> None:
    """What is made in the same line again, once the first is used, is the same loader's next epoch."""
    with watching(tmp_path) as watch:
        for _ in range(2):
            train(watch, made_here())
    assert watch.column("epoch") == [1.0] * BATCHES + [2.0] * BATCHES


def test_starting_workers_is_waiting_for_data(tmp_path: Path) -> None:
    """`iter(loader)` starts them: that time is `data`, in the row of the first step, and told as such."""
    with watching(tmp_path) as watch:
        train(watch, loader(num_workers=2, multiprocessing_context="fork"))
    (event,) = watch.kinds("epoch")
    assert event["workers_started_ms"] > 1
    assert watch.rows[0]["data_ms"] >= event["workers_started_ms"]


def test_facts_stay_few(tmp_path: Path) -> None:
    """A loop that makes loaders without end has its first ones described."""
    with watching(tmp_path) as watch:
        train(watch, *[loader(rows=BATCH) for _ in range(LOADERS + 20)])
    assert sum(name.startswith("loader/") for name in watch.facts()) == LOADERS
    assert watch.steps == LOADERS + 20


def test_a_loader_is_not_kept_alive(tmp_path: Path) -> None:
    """Nothing of ours holds a loader or its dataset."""
    import weakref

    with watching(tmp_path) as watch:
        made = loader()
        gone = weakref.ref(made.dataset)
        train(watch, made)
        del made
        assert gone() is None


class Broken(Dataset[Any]):
    """Its worker dies at the third row."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> Any:
        import os

        if index == 3:
            os._exit(7)
        return torch.zeros(6), torch.zeros(1)


def test_a_worker_that_died_is_told(tmp_path: Path) -> None:
    """The user's exception is torch's own; the journal has it as well."""
    with watching(tmp_path) as watch:
        broken = DataLoader(Broken(), batch_size=2, num_workers=1, multiprocessing_context="fork")
        with pytest.raises(RuntimeError, match="DataLoader worker"):
            train(watch, broken)
    (event,) = watch.kinds("worker_died")
    assert "exited unexpectedly" in event["reason"]


class Short(IterableDataset[Any]):
    """Says a length that is too small."""

    def __len__(self) -> int:
        return 8

    def __iter__(self) -> Iterator[Any]:
        for _ in range(24):
            yield torch.zeros(6), torch.zeros(1)


def test_no_warning_comes_from_our_questions(tmp_path: Path) -> None:
    """Torch warns of a stream longer than its length once somebody asked for that: we do not."""
    with warnings.catch_warnings(record=True) as caught, watching(tmp_path) as watch:
        warnings.simplefilter("always")
        train(watch, DataLoader(Short(), batch_size=BATCH))
    assert [str(warning.message) for warning in caught] == []
    assert watch.steps == 3


class Nested(Dataset[Any]):
    """Each row is read by a loader of its own."""

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> Any:
        features, target = next(iter(loader(rows=BATCH)))
        return features[0], target[0]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_inside_a_dataset_is_part_of_the_outer_one(workers: int, tmp_path: Path) -> None:
    """In the main process and in a worker: one epoch, the outer batches, one loader."""
    options = {"multiprocessing_context": "fork"} if workers else {}
    with watching(tmp_path) as watch:
        train(watch, DataLoader(Nested(), batch_size=8, num_workers=workers, **options))
    assert watch.column("samples") == [8.0, 8.0]
    assert len(watch.kinds("epoch")) == 1
    assert [name for name in watch.facts() if name.startswith("loader/")] == ["loader/1"]


def test_an_iterator_older_than_us_is_watched(tmp_path: Path) -> None:
    """Attached in the middle of an epoch: the rest of it is seen."""
    iterator = iter(loader())
    next(iterator)
    with watching(tmp_path) as watch:
        train(watch, iterator)
    assert watch.steps == BATCHES - 1
    assert min(watch.column("data_ms")) > 0
    assert watch.column("samples") == [BATCH] * (BATCHES - 1)
