"""What waiting for data costs: `DataLoader.__iter__` and its iterators' `__next__`."""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from threading import get_ident
from typing import Any

import torch
from torch.utils.data import DataLoader, dataloader

from monitor.probe.adapters.plain import Boundary
from monitor.probe.clock import DATA, EVAL, OTHER
from monitor.probe.patches import Patches
from monitor.probe.place import call_source, location, made_at, user_frame
from monitor.probe.recorder import DATA_CPU, ELEMENTS, SAMPLES, TOKENS, Recorder

#: How deep a batch is searched for tensors, and how many are looked at.
DEPTH = 4
TENSORS = 64
#: The thread's CPU time is read around every CPU_EVERY-th step's fetches: the call costs 0.6 µs.
CPU_EVERY = 8
#: The name under which a Feed hangs on its iterators.
TAG = "_torchvitals_feed"


class Feed:
    """What is known of one DataLoader; hangs on it and on its iterators while they live.

    Attributes:
        number: 1, 2, … in the order in which loaders were first used.
        evaluates: its batches belong to an evaluation.
        epochs: iterations over it, begun so far.
        iter_ms: what the newest `iter(loader)` took.
        first_wait_ms: what the first fetch of the newest iteration took; None before it.
        trains: it has fed at least one training step.
        unused: a batch was fetched with gradients on, and since then nothing but evaluation was seen.
        place: where in the user's code it was first iterated.
    """

    __slots__ = (
        "call",
        "epochs",
        "evaluates",
        "first_wait_ms",
        "iter_ms",
        "number",
        "place",
        "trains",
        "unused",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.evaluates = False
        self.epochs = 0
        self.iter_ms = 0.0
        self.first_wait_ms: float | None = None
        self.trains = self.unused = False
        self.place: str | None = None
        self.call: str | None = None


class Feeds:
    """All loaders seen in this process, and the patches on them."""

    def __init__(self, recorder: Recorder, boundary: Boundary, training: Callable[[], bool]) -> None:
        self.recorder = recorder
        self.boundary = boundary
        self.training = training
        self._of_loader: weakref.WeakKeyDictionary[Any, Feed] = weakref.WeakKeyDictionary()
        self._count = 0
        self._in_step: Feed | None = None
        self._consumed: Feed | None = None

    def install(self, patches: Patches) -> None:
        """Patch the classes, and those of torchdata where it is loaded."""
        patches.replace(DataLoader, "__iter__", self._iter)
        bases = [dataloader._BaseDataLoaderIter]
        stateful = sys.modules.get("torchdata.stateful_dataloader.stateful_dataloader")
        for name in ("StatefulDataLoader",):
            if stateful is not None:
                patches.replace(getattr(stateful, name), "__iter__", self._iter)
        other = getattr(stateful, "_StatefulBase", None) if stateful is not None else None
        for base in [*bases, *([other] if other is not None else [])]:
            patches.replace(base, "__next__", self._next)

    def evaluated(self) -> None:
        """A forward pass of an evaluation was seen."""
        if self._consumed is not None:
            self._consumed.unused = True

    def _iter(self, original: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
        recorder, clock, boundary = self.recorder, self.recorder.clock, self.boundary

        def __iter__(loader: Any) -> Iterator[Any]:
            if get_ident() != recorder.gate[0]:
                return original(loader)
            clock.begin()
            boundary.fetch()
            feed = self._feed(loader)
            evaluates = not torch.is_grad_enabled() or not self.training()
            evaluates = evaluates or (feed is not None and feed.evaluates)
            depth, began = clock.push(EVAL if evaluates else DATA), time.perf_counter_ns()
            try:
                iterator = original(loader)
            finally:
                clock.pop(depth)
            if feed is not None:
                self._opened(loader, feed, iterator, (time.perf_counter_ns() - began) / 1e6)
            return iterator

        return __iter__

    def _next(self, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        recorder, clock = self.recorder, self.recorder.clock
        gate, values, push, pop = recorder.gate, recorder.values, clock.push, clock.pop
        boundary, training = self.boundary, self.training
        on_fetch, on_fetched, grad_enabled = boundary.fetch, boundary.fetched, torch.is_grad_enabled
        now, cpu_now = time.perf_counter_ns, time.thread_time_ns

        def __next__(iterator: Any) -> Any:
            if get_ident() != gate[0]:
                return original(iterator)
            try:
                feed = vars(iterator).get(TAG)
                if feed is None:
                    clock.begin()
                if not on_fetch() and feed is not None and feed.unused:
                    feed.evaluates = True
                if feed is not None:
                    feed.unused = False
                evaluates = not grad_enabled() or not training() or (feed is not None and feed.evaluates)
                if evaluates:
                    clock.floor(EVAL)
                elif clock.on_floor() == EVAL:
                    clock.floor(OTHER)
                depth, began = push(EVAL if evaluates else DATA), now()
                sampled = not recorder.steps % CPU_EVERY
                cpu = cpu_now() if sampled else 0
            except Exception as error:  # noqa: BLE001 - the training must not notice
                recorder.fail(error)
                return original(iterator)
            try:
                batch = original(iterator)
            except StopIteration:
                pop(depth)
                clock.floor(OTHER)
                raise
            except BaseException as error:
                pop(depth)
                self._broke(error)
                raise
            try:
                pop(depth)
                if feed is not None and feed.first_wait_ms is None:
                    self._first(feed, evaluates, (now() - began) / 1e6)
                if evaluates:
                    self._consumed = None
                    return batch
                self._consumed = feed
                if feed is not None:
                    feed.trains = True
                if sampled:
                    _add(values, DATA_CPU, (cpu_now() - cpu) / 1e6)
                on_fetched()
                if values[SAMPLES] != values[SAMPLES]:
                    self._in_step = feed
                if feed is self._in_step:
                    count(batch, values)
            except Exception as error:  # noqa: BLE001 - the training must not notice
                recorder.fail(error)
            return batch

        return __next__

    def _feed(self, loader: Any) -> Feed | None:
        try:
            feed = self._of_loader.get(loader)
            if feed is None:
                self._count += 1
                feed = self._of_loader[loader] = Feed(self._count)
                feed.place, feed.call = _built(loader)
            return feed
        except Exception as error:  # noqa: BLE001 - the training must not notice
            self.recorder.fail(error)
            return None

    def _opened(self, loader: Any, feed: Feed, iterator: Any, took_ms: float) -> None:
        try:
            feed.epochs += 1
            feed.iter_ms, feed.first_wait_ms = took_ms, None
            vars(iterator)[TAG] = feed
            if feed.epochs == 1:
                self._describe(loader, feed)
        except Exception as error:  # noqa: BLE001 - the training must not notice
            self.recorder.fail(error)

    def _first(self, feed: Feed, evaluates: bool, wait_ms: float) -> None:
        feed.first_wait_ms = wait_ms
        if evaluates:
            return
        recorder = self.recorder
        recorder.epoch = float(feed.epochs)
        recorder.event(
            "epoch",
            epoch=feed.epochs,
            loader=feed.number,
            workers_started_ms=round(feed.iter_ms, 3),
            first_wait_ms=round(wait_ms, 3),
        )

    def _describe(self, loader: Any, feed: Feed) -> None:
        facts = loader_facts(loader)
        facts.update(location=feed.place, call=feed.call)
        name = f"loader/{feed.number}"
        recorder = self.recorder
        recorder.fact(name, {**facts, "role": None})

        def role() -> None:
            if feed.first_wait_ms is not None:
                recorder.fact(
                    name, {**facts, "role": "train" if feed.trains and not feed.evaluates else "eval"}
                )

        recorder.watchers.append(role)

    def _broke(self, error: BaseException) -> None:
        text = str(error)
        if isinstance(error, RuntimeError) and "DataLoader worker" in text:
            self.recorder.event("worker_died", message=text.splitlines()[0], reason=text[:300])


#: Where each loader was constructed: filled by a patch on `DataLoader.__init__`.
_built_at: weakref.WeakKeyDictionary[Any, tuple[str | None, str | None]] = weakref.WeakKeyDictionary()


def watch_construction(patches: Patches) -> None:
    """Remember where the user's code makes a DataLoader. A loader made earlier shows where it is iterated."""

    def make(original: Callable[..., None]) -> Callable[..., None]:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            try:
                frame = user_frame(2)
                _built_at[self] = location(frame), call_source(frame, "DataLoader")
            except Exception:  # noqa: BLE001 - a location is nothing to fail for
                return

        return __init__

    patches.replace(DataLoader, "__init__", make)


def _built(loader: Any) -> tuple[str | None, str | None]:
    known = _built_at.get(loader)
    if known is None:
        frame = user_frame(3)
        known = made_at(loader, "DataLoader", frame) or (location(frame), None)
    return known


def loader_facts(loader: Any) -> dict[str, Any]:
    """A DataLoader's arguments, as plain data."""
    context = loader.multiprocessing_context
    try:
        length = len(loader)
    except TypeError:
        length = None
    return {
        "num_workers": loader.num_workers,
        "batch_size": loader.batch_size,
        "prefetch_factor": loader.prefetch_factor,
        "persistent_workers": loader.persistent_workers,
        "pin_memory": loader.pin_memory,
        "drop_last": loader.drop_last,
        "timeout": loader.timeout,
        "multiprocessing_context": getattr(context, "_name", None) or (context and str(context)),
        "dataset": type(loader.dataset).__name__,
        "sampler": type(loader.sampler).__name__,
        "shuffle": type(loader.sampler).__name__ == "RandomSampler",
        "collate_fn": getattr(loader.collate_fn, "__name__", None),
        "worker_init_fn": getattr(loader.worker_init_fn, "__name__", None),
        "length": length,
    }


def count(batch: Any, values: list[Any]) -> None:
    """Put the batch's samples, tokens and elements into the step's values.

    Samples are the first tensor's first dimension. Tokens are counted where the field's convention
    names them: an integer tensor of two dimensions called `input_ids`.
    """
    tensors: list[torch.Tensor] = []
    _collect(batch, tensors, DEPTH)
    if not tensors or not tensors[0].dim():
        return
    _add(values, SAMPLES, len(tensors[0]))
    elements = 0
    for tensor in tensors:
        elements += tensor.numel()
    _add(values, ELEMENTS, elements)
    if isinstance(batch, Mapping) and "input_ids" in batch:
        _add(values, TOKENS, getattr(batch["input_ids"], "numel", lambda: 0)())


def _add(values: list[Any], index: int, more: float) -> None:
    before = values[index]
    values[index] = more if before != before else before + more


def _collect(batch: Any, tensors: list[torch.Tensor], depth: int) -> None:
    if isinstance(batch, torch.Tensor):
        tensors.append(batch)
    elif depth and len(tensors) < TENSORS:
        if isinstance(batch, Mapping):
            batch = batch.values()
        elif not isinstance(batch, list | tuple):
            return
        for item in batch:
            _collect(item, tensors, depth - 1)
