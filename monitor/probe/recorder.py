"""The step that is being recorded, and the only place that writes to tape and journal."""

from __future__ import annotations

import contextlib
import math
import sys
import threading
import time
from collections.abc import Callable
from threading import get_ident
from typing import Any

from monitor.probe.clock import OTHER, make_clock
from monitor.probe.loop_state import LoopState
from monitor.probe.patches import Patches
from monitor.probe.torch_compat import NotInTorchError
from monitor.probe.user_metrics import UserMetrics
from monitor.schema import PHASES, SIGNALS, TAPE_METRICS
from monitor.tape.layout import GAVE_UP, LIVE_CLOSED, UNKNOWN_NS
from monitor.tape.writer import JournalFull, JournalWriter, TapeWriter

_INDEX = {metric.key: index for index, metric in enumerate(TAPE_METRICS)}
SAMPLES, TOKENS, LOSS = _INDEX["samples"], _INDEX["tokens"], _INDEX["loss"]
BACKWARDS, OPT_STEPS = _INDEX["backward_calls"], _INDEX["optimizer_steps"]
SKIPPED, SCALE = _INDEX["amp_skipped"], _INDEX["loss_scale"]
GC, EPOCH = _INDEX["gc_ms"], _INDEX["epoch"]
DATA_CPU, ELEMENTS = _INDEX["data_cpu_ms"], _INDEX["batch_elements"]
SYNCS, COLLECTIVE_MS, COLLECTIVE_MB = _INDEX["syncs"], _INDEX["collective_ms"], _INDEX["collective_mb"]
MICRO_BATCHES = _INDEX["micro_batches"]

_NAN = math.nan
_TAIL = [_NAN, _NAN, _NAN, 0.0, 0.0, _NAN, _NAN, 0, _NAN, _NAN, _NAN, _NAN, _NAN, _NAN, 0.0]
assert len(_TAIL) == len(TAPE_METRICS) - len(PHASES), "a new tape metric needs its start value here"

#: Steps after which facts that grow during training are written anew; then every FACTS_EVERY steps.
FACTS_AT = frozenset({1, 3, 10, 30, 100})
FACTS_EVERY = 250
#: The journal takes at most this many events of one kind from hooks that fire every step.
EVENTS_A_KIND = 2000
#: Kinds without that limit: those at a run's end, and those that are thinned in time before they come here.
UNLIMITED = frozenset({"exception", "end", "oom", "log", "cuda", "idle"})


class Recorder:
    """Takes what the hooks see and writes one record a step.

    Attributes:
        clock: phases of the step that runs.
        values: the step's tape values after the phases, by the indices named above; hooks write
            straight into it.
        steps: steps recorded so far.
        stage: stage(mark) keeps the step as it stood at `clock.mark()` on the tape, should the process die
            before the step is known to have ended there.
        end_step: end_step() ends the step now, end_step(mark) where `clock.mark()` was taken. One
            record goes to the tape.
        training_thread_id: a list of one: the identity of the thread that trains. A hook on any other thread
            passes through; 0 switches every hook off.
        outside: a list of one: whether nothing was trained yet, or not since a pause; `begin` ends that.
        loop_state: what adapters say of the loop.
        user_metrics: numbers of the user's own.
        watchers: called after a step was recorded at the numbers of FACTS_AT and every FACTS_EVERY.
        weights_version: a number that changes whenever weights do, as far as torch counts it.
        each: called after every step with its end in nanoseconds; empty where no device is watched.
        lost: signal -> why it cannot be measured in this process; see `signal_lost`.
    """

    def __init__(self, tape: TapeWriter, journal: JournalWriter) -> None:
        self.tape = tape
        self.journal = journal
        self.clock = make_clock(tape.live)
        self.loop_state = LoopState()
        self.user_metrics = UserMetrics(lambda values: self.event("log", values=values))
        self.values: list[Any] = [0] * len(PHASES) + list(_TAIL)
        self.training_thread_id = [get_ident()]
        self.outside = [True]
        self.steps = 0
        self.epoch = _NAN
        self.each: list[Callable[[int], None]] = []
        self.weights_version: Callable[[], int] = lambda: 0
        self.lost: dict[str, str] = {}
        self._lost_columns: list[int] = []
        self._on_lost: dict[str, list[Callable[[], None]]] = {}
        self._carries: dict[Callable[[], None], str] = {}
        self.end_step = self._make_end_step()
        self.stage = self._make_stage()
        self.watchers: list[Callable[[], None]] = []
        self._facts: dict[str, Any] = {}
        self._counts: dict[str, int] = {}
        self._adopted = self._events_lost = self._second_thread = False
        self._paused_ns = 0
        self.watch(self._tell_of_second_thread, "facts")

    def _make_end_step(self) -> Callable[..., None]:
        values, append, phases = self.values, self.tape.append, len(PHASES)
        end_now, end_at, each = self.clock.end_step, self.clock.end_step_at, self.each
        lost_columns = self._lost_columns

        def end_step(marked: tuple[int, list[int]] | None = None) -> None:
            if marked is None:
                end_ns, spent = end_now()
            else:
                end_at(marked)
                end_ns, spent = marked
            values[:phases] = spent
            values[EPOCH] = self.epoch
            if lost_columns:
                _hide(values, lost_columns)
            append(end_ns, values)
            values[phases:] = _TAIL
            self.steps = steps = self.steps + 1
            for after in each:
                after(end_ns)
            if steps in FACTS_AT or not steps % FACTS_EVERY:
                self.refresh()

        return end_step

    def _make_stage(self) -> Callable[[tuple[int, list[int]]], None]:
        values, stage, phases = self.values, self.tape.stage, len(PHASES)
        lost_columns = self._lost_columns

        def stage_step(marked: tuple[int, list[int]]) -> None:
            values[EPOCH] = self.epoch
            staged = [*marked[1], *values[phases:]]
            if lost_columns:
                _hide(staged, lost_columns)
            stage(marked[0], staged)

        return stage_step

    @property
    def here(self) -> bool:
        """Whether the calling thread is the one that trains, and recording is on."""
        return self.training_thread_id[0] == get_ident()

    def begin(self) -> None:
        """Something is trained here: from now on time belongs to steps. Needed while `outside`."""
        self.outside[0] = False
        if not self._adopted:
            self.adopt()
        self.clock.begin()
        if self._paused_ns:
            paused_ns, self._paused_ns = self._paused_ns, 0
            self.event("idle", ms=round((time.perf_counter_ns() - paused_ns) / 1e6, 3))

    def pause(self) -> None:
        """Nothing runs until something is trained again: the time until then belongs to no step."""
        self.clock.pause()
        self.outside[0] = True
        self._paused_ns = self._paused_ns or time.perf_counter_ns()

    def adopt(self, *, optimizes: bool = False) -> bool:
        """Whether the calling thread, which runs a backward pass or an optimizer, is the one that trains.

        The first to ask is, and after its end the next: a second `fit` in a new thread is seen as well.
        """
        caller, training_thread_id = get_ident(), self.training_thread_id
        if training_thread_id[0] not in (0, caller) and (
            not self._adopted or not _lives(training_thread_id[0])
        ):
            training_thread_id[0] = caller
        self._adopted = True
        if optimizes and training_thread_id[0] not in (0, caller):
            self._second_thread = True  # told by the thread that trains: the journal is its own
        return training_thread_id[0] == caller

    def _tell_of_second_thread(self) -> None:
        if self._second_thread:
            self.event("warn", text="another thread trains as well: its steps are not counted")
            self.watchers.remove(self._tell_of_second_thread)

    def refresh(self) -> None:
        """Let the watchers look for facts that changed. One that fails is not asked again."""
        for watcher in list(self.watchers):
            self._ask(watcher)

    def watch(self, watcher: Callable[[], None], signal: str) -> None:
        """Have `watcher` called like all of `watchers`; where it fails, this signal is lost."""
        self._carries[watcher] = signal
        self.watchers.append(watcher)

    def _ask(self, watcher: Callable[[], None]) -> None:
        try:
            watcher()
        except Exception as error:  # noqa: BLE001 - a fact less; the steps are recorded all the same
            if watcher in self.watchers:
                self.watchers.remove(watcher)
            self.signal_lost(self._carries.get(watcher, "facts"), error)

    def event(self, kind: str, **fields: Any) -> None:
        """Append one event to the journal; beyond EVENTS_A_KIND of a kind they are dropped, unless UNLIMITED.

        Facts are counted by their name, so that one that changes all the time leaves room for the others.
        """
        sort = f"fact {fields['name']}" if kind == "fact" else kind
        count = self._counts[sort] = self._counts.get(sort, 0) + 1
        if count > EVENTS_A_KIND and kind not in UNLIMITED:
            return
        try:
            self.journal.append({"kind": kind, "t_ns": time.perf_counter_ns(), "step": self.steps, **fields})
        except JournalFull as error:
            say(f"{error}. Steps are still recorded; the training goes on.")
        except Exception as error:  # noqa: BLE001 - the training must not notice
            if not self._events_lost:
                say(f"events are not recorded: {type(error).__name__}: {error}. Steps are.")
            self._events_lost = True

    def fact(self, name: str, value: Any) -> None:
        """Write a fact unless it stands already as it is."""
        if self._facts.get(name) != value:
            self._facts[name] = value if not isinstance(value, dict) else dict(value)
            self.event("fact", name=name, value=value)

    def on_lost(self, signal: str, undo: Callable[[], None]) -> None:
        """Have `undo` called once when this signal is lost: it takes the signal's hooks out."""
        self._on_lost.setdefault(signal, []).append(undo)

    def hook(self, signal: str, patches: Patches, install: Callable[[Patches], None]) -> None:
        """Put in the hooks of one signal. Where that fails, now or later, they are taken out again."""
        part = patches.part()
        self.on_lost(signal, part.restore)
        try:
            install(part)
        except Exception as error:  # noqa: BLE001 - this signal is lost, and nothing else
            self.signal_lost(signal, error)

    def signal_lost(self, signal: str, error: BaseException | str) -> None:
        """One signal cannot be measured: its columns are null from now on, the report names it and why.

        Everything else goes on. Its hooks are taken out, so what they would have claimed is `other`.

        Args:
            signal: a key of `monitor.schema.SIGNALS`.
            error: why.
        """
        if signal in self.lost or not self.training_thread_id[0]:
            return
        plain = isinstance(error, str | NotInTorchError)
        self.lost[signal] = (str(error) if plain else f"{type(error).__name__}: {error}")[:300]
        self._lost_columns += [_INDEX[key] for key in SIGNALS[signal] if key in _INDEX]
        try:
            for undo in self._on_lost.pop(signal, ()):
                undo()
        except Exception as broken:  # noqa: BLE001 - then steps cannot be trusted any more
            self.fail(broken)
            return
        with contextlib.suppress(Exception):
            self.fact("signals_lost", self.lost)
        say(f"{signal} is not measured: {self.lost[signal]}. The rest is.")

    def fail(self, error: BaseException) -> None:
        """Steps cannot be counted any more: say so once, switch every hook off, let the training go on.

        What concerns one signal is lost alone, see `signal_lost`. The tape says it too: a step that is not
        recorded must not be taken for one that does not come.
        """
        if not self.training_thread_id[0]:
            return
        self.training_thread_id[0] = 0
        text = f"monitoring is off: {type(error).__name__}: {error}. The training goes on."
        say(text)
        with contextlib.suppress(Exception):
            self.tape.live[LIVE_CLOSED] = GAVE_UP
            self.event("warn", text=text, gave_up=True)


def _hide(values: list[Any], lost: list[int]) -> None:
    """Make lost columns unknown; what a lost phase holds belongs to `other`."""
    for index in lost:
        if index >= len(PHASES):
            values[index] = _NAN
        elif values[index] != UNKNOWN_NS:  # it may be lost by two signals
            values[OTHER] += values[index]
            values[index] = UNKNOWN_NS


def _lives(identity: int) -> bool:
    return any(thread.ident == identity for thread in threading.enumerate())


def say(text: str) -> None:
    """One line to stderr, never an exception."""
    try:
        print(f"torchvitals: {text}", file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        return
