"""How long the device was busy with each phase of a step, without ever waiting for it.

In some steps, at most EVERY_NS apart, an event is put into the device's stream wherever the clock changes
its phase. What lies between two events is the device's time for the phase that was left. The events are
read much later, when the device has come past them. Other steps are not touched.

The host is told at each of these moments whether the stream had run dry. Where it had at the end of
`forward`, the device had been waiting for launches somewhere inside.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from monitor.probe.clock import BACKWARD, DATA, FORWARD, H2D, OPTIMIZER, OTHER
from monitor.probe.cuda.device import Device, Event
from monitor.schema import PHASES

#: Least time between the beginnings of two timed steps (own: twenty a second tell as much as all would).
EVERY_NS = 50_000_000
#: After a timed step so many times what it cost the host pass untimed: it never costs more than 0.1 %.
REST = 1000
#: Changes of phase in one step. One with more (accumulation over some fifty batches) is not timed.
MARKS = 512
#: Timed steps that may wait for the device at once. Where it is further behind, none is begun.
PENDING = 4

_COMPUTE = (FORWARD, BACKWARD, OPTIMIZER)
_BETWEEN = (DATA, H2D, OTHER)
_COUNTS = ("gpu_timed", "gpu_untimed")


@dataclass
class Timed:
    """One timed step: `events[i]` is where `phases[i]` began; the last event is the step's end.

    Attributes:
        stream_idle: whether the stream had nothing left when the event was recorded.
    """

    events: list[Event] = field(default_factory=list)
    phases: list[int] = field(default_factory=list)
    stream_idle: list[bool] = field(default_factory=list)


class Timing:
    """Times some steps.

    Args:
        device: the device.
        trace: the clock's; what stands in it is called with each new phase.
        now: nanoseconds; handed in, so that tests of time never sleep.

    Attributes:
        running: a step is being timed.
        due_ns: when the next one may begin.
        broken: why nothing is timed any more; None while all is well.
    """

    def __init__(
        self,
        device: Device,
        trace: list[Callable[[int], None]],
        now: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.running = False
        self.due_ns = 0
        self.broken: str | None = None
        self._device, self._trace, self._now = device, trace, now
        self._pool: list[Event] = []
        self._index = -1
        self._pending: deque[Timed] = deque()
        self._step = Timed()
        self._spent_ns = 0
        self._begun_ns = 0
        self._sums: dict[str, float] = {}

    def step(self, at_ns: int) -> None:
        """A step has just ended: end the one that is being timed, or begin to time the next one.

        Args:
            at_ns: now.
        """
        if self.running:
            self._end()
        elif at_ns >= self.due_ns and self.broken is None:
            self._begin(at_ns)

    def take(self) -> dict[str, float]:
        """Means per timed step since the last call, in ms; see the `gpu_` metrics of `monitor.schema`.

        Never waits: a step that the device has not finished comes with a later call.
        """
        self._settle()
        sums, self._sums = self._sums, {}
        counts: dict[str, float] = {key: sums.pop(key) for key in _COUNTS if key in sums}
        backwards, caught_up = sums.pop("backwards", 0.0), sums.pop("gpu_caught_up", 0.0)
        means = {key: total / counts["gpu_timed"] for key, total in sums.items()}
        return {**counts, **means, **({"gpu_caught_up": caught_up / backwards} if backwards else {})}

    def stop(self, why: str) -> None:
        """Time nothing any more."""
        self.broken = self.broken or why
        self.running = False
        self._trace.clear()
        self._pool.clear()
        self._pending.clear()

    def _begin(self, at_ns: int) -> None:
        self._spent_ns, self._begun_ns = 0, at_ns
        self._settle()
        if len(self._pending) >= PENDING:
            self._throw_away()
            return
        self._step, self.running = Timed(), True
        self._same_device()
        if self.running:
            self._mark(OTHER)
        if self.running:
            self._trace.append(self._mark)

    def _same_device(self) -> None:
        """An event belongs to the device on which it was first recorded."""
        try:
            index = self._device.index()
        except Exception as error:  # noqa: BLE001 - the training must not notice
            self.stop(f"{type(error).__name__}: {error}"[:200])
            return
        if index != self._index:
            self._pool.clear()
            self._index = index

    def _end(self) -> None:
        self._trace.clear()
        self._mark(OTHER)
        if self.running:
            self.running = False
            self._pending.append(self._step)
            self._rest()

    def _mark(self, phase: int) -> None:
        """The clock is in this phase from now on. Runs inside the training's own calls: nothing gets out."""
        began_ns, step = self._now(), self._step
        try:
            if len(step.events) > MARKS or self._device.capturing():
                self._abandon()
                return
            stream = self._device.stream()
            event = self._pool.pop() if self._pool else self._device.event()
            step.stream_idle.append(stream.query())
            event.record(stream)
            step.events.append(event)
            step.phases.append(phase)
        except Exception as error:  # noqa: BLE001 - the training must not notice
            self.stop(f"{type(error).__name__}: {error}"[:200])
        self._spent_ns += self._now() - began_ns

    def _abandon(self) -> None:
        self._trace.clear()
        self.running = False
        self._pool += self._step.events
        self._throw_away()

    def _throw_away(self) -> None:
        self._add("gpu_untimed", 1.0)
        self._rest()

    def _rest(self) -> None:
        self.due_ns = max(self._begun_ns + EVERY_NS, self._now() + REST * self._spent_ns)

    def _settle(self) -> None:
        """Read the steps that the device has finished."""
        began_ns = self._now()
        try:
            while self._pending and not self._device.capturing():
                step = self._pending[0]
                if not step.events[-1].query():
                    break
                self._read(step)
                self._pending.popleft()
                self._pool += step.events
        except Exception as error:  # noqa: BLE001 - the training must not notice
            self.stop(f"{type(error).__name__}: {error}"[:200])
        self._spent_ns += self._now() - began_ns

    def _read(self, step: Timed) -> None:
        events = step.events
        ms = [start.elapsed_time(end) for start, end in itertools.pairwise(events)]
        for key, value in summed(step.phases[:-1], ms, step.stream_idle[1:]).items():
            self._add(key, value)

    def _add(self, key: str, more: float) -> None:
        self._sums[key] = self._sums.get(key, 0.0) + more


def summed(phases: list[int], ms: list[float], stream_idle: list[bool]) -> dict[str, float]:
    """What one timed step was made of.

    Args:
        phases: in which phase the host was, stay by stay.
        ms: the device's time between the events around each stay.
        stream_idle: whether the stream was empty at each stay's end.
    """
    found: dict[str, float] = {"gpu_timed": 1.0, "gpu_step_ms": sum(ms)}
    for phase, took in zip(phases, ms, strict=True):
        key = f"gpu_{PHASES[phase]}_ms"
        found[key] = found.get(key, 0.0) + took
    stays = list(zip(phases, ms, stream_idle, strict=True))
    computing = [i for i, phase in enumerate(phases) if phase in _COMPUTE]
    first, last = (computing[0], computing[-1]) if computing else (len(phases), -1)
    # Nothing is launched while a batch is fetched, so all of the device's time there was idle.
    found["gpu_idle_ms"] = found.get("gpu_data_ms", 0.0)
    found["gpu_gap_ms"] = sum(
        took for i, (phase, took, _) in enumerate(stays) if phase in _BETWEEN and not first < i < last
    )
    found["gpu_starved_ms"] = sum(took for phase, took, empty in stays if empty and phase in _COMPUTE)
    backwards = [empty for phase, _, empty in stays if phase == BACKWARD]
    if backwards:
        found.update(backwards=1.0, gpu_caught_up=float(backwards[-1]))
    return found
