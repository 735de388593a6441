"""What waiting for data costs: `DataLoader.__iter__` and its iterators' `__next__`."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator
from threading import get_ident
from typing import Any

import torch

from monitor.probe.adapters.plain import Boundary
from monitor.probe.batch_counts import BatchCounts
from monitor.probe.batches import add
from monitor.probe.clock import DATA, EVAL, OTHER
from monitor.probe.construction import Origins, where_made
from monitor.probe.facts import describe_loader
from monitor.probe.loader_classes import hook_loaders
from monitor.probe.loader_state import LoaderState
from monitor.probe.loop_state import StepAuthority
from monitor.probe.patches import Patches
from monitor.probe.recorder import DATA_CPU, Recorder
from monitor.probe.source_location import user_frame

#: The thread's CPU time is read around every CPU_EVERY-th step's fetches: the call costs 0.6 µs.
CPU_EVERY = 8
#: Loaders described in the run's facts: some loops make a new one each epoch.
LOADERS = 64
#: The name under which a Feed hangs on its iterators.
TAG = "_torchvitals_feed"


class LoaderHooks:
    """All loaders seen in this process, and the patches on them.

    Attributes:
        looks: called with a training batch in every CPU_EVERY-th step, and its loader's number.
    """

    def __init__(self, recorder: Recorder, boundary: Boundary, training: Callable[[], bool]) -> None:
        self.recorder = recorder
        self.boundary = boundary
        self.training = training
        self._of_loader: weakref.WeakKeyDictionary[Any, LoaderState] = weakref.WeakKeyDictionary()
        self._count = 0
        self._origins = Origins()
        self._epochs: dict[str, int] = {}
        self._roles: dict[str, set[str]] = {}
        self._fetching = [False]
        self._since: list[LoaderState] = []
        self._counts = BatchCounts(recorder)
        self.looks: list[Callable[[Any, int], None]] = []
        # The last training was done in evaluation mode (frozen batch norms), so that mode says nothing.
        self._frozen = False

    def install(self, patches: Patches) -> None:
        """Patch the classes, and those of torchdata where it is loaded."""
        self._see_iterator = hook_loaders(patches, self._iter, self._next)

    def opening(self, make: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
        """`make`, which makes an iterator over some other loader, watched like `DataLoader.__iter__`."""
        return self._iter(make)

    def fetching(self, fetch: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """`fetch`, which gets the next batch from an iterator, watched like a DataLoader's `__next__`."""
        return self._next(fetch)

    def evaluated(self) -> bool:
        """A forward pass without gradients was seen. Whether a batch is at hand that was not trained on."""
        for state in self._since:
            state.settled = False
        if self._since:
            self._since[-1].unused = True
        return bool(self._since)

    def _iter(self, original: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
        recorder, clock, training_thread_id = (
            self.recorder,
            self.recorder.clock,
            self.recorder.training_thread_id,
        )
        fetching = self._fetching

        def __iter__(loader: Any) -> Iterator[Any]:
            if get_ident() != training_thread_id[0] or fetching[0]:
                return original(loader)
            try:
                clock.begin()
                if self.boundary.fetch():
                    self._trained_on()
                state = self._feed(loader)
                self._leave(state)
                evaluates = not torch.is_grad_enabled() or state.evaluates
                quiet = not (self.training() or self._frozen or state.role == "train")
                evaluates = evaluates or quiet
                if recorder.loop_state.phase is not None:
                    evaluates = recorder.loop_state.phase == EVAL
                depth, began = clock.push(EVAL if evaluates else DATA), time.perf_counter_ns()
            except Exception as error:  # noqa: BLE001 - the training must not notice
                recorder.signal_lost("data", error)
                return original(loader)
            try:
                iterator = original(loader)
            finally:
                clock.pop(depth)
            try:
                self._see_iterator(iterator)
                self._opened(loader, state, iterator, (time.perf_counter_ns() - began) / 1e6)
            except Exception as error:  # noqa: BLE001 - the training must not notice
                recorder.signal_lost("data", error)
            return iterator

        return __iter__

    def _next(self, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        recorder, training_thread_id, pop = (
            self.recorder,
            self.recorder.training_thread_id,
            self.recorder.clock.pop,
        )
        opening, arrived, exhausted = self._opening(), self._arrived(), self._exhausted
        again, fetching, now = self._again(), self._fetching, time.perf_counter_ns

        def __next__(iterator: Any) -> Any:
            # A fetch inside a fetch is a dataset's own loader: its time and batches are the outer one's.
            if get_ident() != training_thread_id[0] or fetching[0]:
                return original(iterator)
            try:
                state, evaluates, cpu, depth = again(iterator) or opening(iterator)
            except Exception as error:  # noqa: BLE001 - the training must not notice
                recorder.signal_lost("data", error)
                return original(iterator)
            fetching[0], began = True, now()
            try:
                batch = original(iterator)
            except BaseException as error:
                pop(depth)
                exhausted(error, state)
                raise
            finally:
                fetching[0] = False
            try:
                pop(depth)
                arrived(batch, state, evaluates, cpu, began)
            except Exception as error:  # noqa: BLE001 - the training must not notice
                recorder.signal_lost("data", error)
            return batch

        return __next__

    def _again(self) -> Callable[[Any], tuple[LoaderState, bool, int, int] | None]:
        """As `_opening`, for the loader that fed the last training step as well; None for any other.

        There `_opening` would change nothing, so most fetches of a run need not ask what they are.
        """
        recorder, since, loop_state = self.recorder, self._since, self.recorder.loop_state
        push, base_phase, on_fetch = recorder.clock.push, recorder.clock.base_phase, self.boundary.fetch
        grad_enabled, training, counts = torch.is_grad_enabled, self.training, self._counts

        def again(iterator: Any) -> tuple[LoaderState, bool, int, int] | None:
            state: LoaderState | None = vars(iterator).get(TAG)
            if state is None or not state.settled or not recorder.steps % CPU_EVERY or since != [state]:
                return None
            if loop_state.phase is not None or base_phase[0] == EVAL or not grad_enabled() or not training():
                return None
            if on_fetch():
                counts.trainings += 1
            return state, False, 0, push(DATA)

        return again

    def _opening(self) -> Callable[[Any], tuple[LoaderState | None, bool, int, int]]:
        """Before a fetch: closes the step, tells training from evaluation, opens the phase."""
        recorder, clock, since = self.recorder, self.recorder.clock, self._since
        loop_state = recorder.loop_state
        push, begin, base_phase = clock.push, clock.begin, clock.base_phase
        set_base_phase = clock.set_base_phase
        on_fetch, training, grad_enabled = self.boundary.fetch, self.training, torch.is_grad_enabled
        cpu_now = time.thread_time_ns

        def opening(iterator: Any) -> tuple[LoaderState | None, bool, int, int]:
            state: LoaderState | None = vars(iterator).get(TAG)
            if state is None:
                begin()
            grad = grad_enabled()
            if on_fetch():
                self._trained_on()
            if state is None:
                evaluates = not grad or not training()
            else:
                if state.unused:
                    state.unused = False
                    state.evaluates = state.evaluates or not state.trains
                    if state.evaluates:
                        self._counts.take_back(state.before_batch)
                        state.before_batch = None
                        if state in since:
                            since.remove(state)
                state.quiet = quiet = not training()
                # One that is trained on stays so while the model is still in evaluation mode: many loops
                # call `model.train()` only once they have the batch.
                quiet = quiet and not self._frozen and state.role != "train"
                evaluates = not grad or state.evaluates or quiet
                if grad and not state.evaluates and state not in since:
                    since.append(state)
            if loop_state.phase is not None:
                evaluates = loop_state.phase == EVAL
            if evaluates:
                set_base_phase(EVAL)
            elif base_phase[0] == EVAL:
                set_base_phase(OTHER)
            cpu = 0 if recorder.steps % CPU_EVERY else cpu_now()
            return state, evaluates, cpu, push(EVAL if evaluates else DATA)

        return opening

    def _leave(self, state: LoaderState) -> None:
        """A loader is iterated anew: the batch in hand of an iteration that had not ended is left."""
        for other in [one for one in self._since if one.origin == state.origin and not one.exhausted]:
            if other.trains:
                self._counts.leave(other)
            else:
                self._passed(other)

    def _trained_on(self) -> None:
        """Something was trained since the last fetch: on the newest batch, and on others not left unused."""
        since = self._since
        self._counts.trainings += 1
        for state in since:
            newest = since[-1]
            if state is newest or (state.quiet == newest.quiet and not state.unused):
                state.trains = True
                state.evaluates = state.unused = False
                if state.role != "train":
                    state.role = "train"
                    self._roles.setdefault(state.origin, set()).add("train")
                self._frozen = newest.quiet
        since.clear()

    def _arrived(self) -> Callable[[Any, LoaderState | None, bool, int, int], None]:
        values, on_fetched, now = self.recorder.values, self.boundary.fetched, time.perf_counter_ns
        loop_state = self.recorder.loop_state
        cpu_now, first, looks, counts = time.thread_time_ns, self._first, self.looks, self._counts.add

        def arrived(batch: Any, state: LoaderState | None, evaluates: bool, cpu: int, began: int) -> None:
            if state is not None and state.first_wait_ms is None:
                first(state, evaluates, (now() - began) / 1e6)
            if evaluates:
                if state is not None and state.role is None:
                    state.role = "eval"
                    self._roles.setdefault(state.origin, set()).add("eval")
                return
            if cpu:
                add(values, DATA_CPU, (cpu_now() - cpu) / 1e6)
                if state is not None:
                    state.settled = state.trains and not (state.quiet or self._frozen)
                    for look in looks:
                        look(batch, state.number)
            on_fetched()
            if loop_state.counts:
                counts(batch, state)

        return arrived

    def _exhausted(self, error: BaseException, state: LoaderState | None) -> None:
        """A fetch that gave no batch: the loader's end, or something broke in it."""
        recorder = self.recorder
        try:
            if isinstance(error, StopIteration):
                if recorder.loop_state.phase is None:
                    recorder.clock.set_base_phase(OTHER)
                self.boundary.exhausted()
                if state in self._since:
                    self._since.remove(state)
                if state is not None:
                    state.exhausted = True
                    self._passed(state)
            elif isinstance(error, RuntimeError) and "DataLoader worker" in str(error):
                text = str(error)
                recorder.event("worker_died", message=text.splitlines()[0], reason=text[:300])
        except Exception as broken:  # noqa: BLE001 - the training must not notice
            recorder.signal_lost("data", broken)

    def _passed(self, state: LoaderState) -> None:
        """A pass over a loader is over. One in which nothing was trained is no epoch, and no samples."""
        before, state.before_pass = state.before_pass, None
        recorder = self.recorder
        inferred = recorder.loop_state.authority is StepAuthority.INFERRED
        if inferred and not state.trains and self._counts.take_back(before):
            self._epochs[state.origin] -= 1
            recorder.epoch = float(self._epochs[state.origin])

    def _feed(self, loader: Any) -> LoaderState:
        state = self._of_loader.get(loader)
        if state is None:
            self._count += 1
            state = self._of_loader[loader] = LoaderState(self._count)
            state.place, state.call = where_made(loader, user_frame(3))
            # Some loops make a new loader each epoch: it goes on where the last one of its origin stopped.
            state.origin = self._origins.name(loader, state.number)
            roles = self._roles.get(state.origin)
            state.role = "train" if roles == {"train"} else None
            state.evaluates = roles == {"eval"}
        return state

    def _opened(self, loader: Any, state: LoaderState, iterator: Any, took_ms: float) -> None:
        state.epochs += 1
        state.iter_ms, state.first_wait_ms = took_ms, None
        state.trains = state.unused = state.settled = state.exhausted = False
        if state.role == "train":
            state.evaluates = False
        vars(iterator)[TAG] = state
        if state.epochs == 1 and state.number <= LOADERS:
            try:
                describe_loader(self.recorder, loader, state)
            except Exception as error:  # noqa: BLE001 - its batches are counted all the same
                self.recorder.signal_lost("loader", error)

    def _first(self, state: LoaderState, evaluates: bool, wait_ms: float) -> None:
        state.first_wait_ms = wait_ms
        if evaluates:
            return
        recorder, origin = self.recorder, state.origin
        state.before_pass = self._counts.now()
        epoch = self._epochs[origin] = self._epochs.get(origin, 0) + 1
        recorder.epoch = float(epoch)
        recorder.event(
            "epoch",
            epoch=epoch,
            loader=state.number,
            workers_started_ms=round(state.iter_ms, 3),
            first_wait_ms=round(wait_ms, 3),
        )
