"""Samples of host and ranks, and of GPUs, each on a thread of their own: /proc and the driver may hang
for seconds when a machine is in trouble, and just then neither the watchdog nor the other may wait."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from monitor.agent import proc
from monitor.agent.follow import Followed
from monitor.agent.gpu import GpuSampler, Wanted, wanted
from monitor.agent.host import HostSampler

#: Time for the ranks to tell which devices they use, before all are shown, in seconds (own: a rank tells
#: in its first step on a device).
GRACE_S = 10.0
#: A rank is sampled this often, in seconds, for so long after it was first seen: a run of seconds would else
#: be told from three or four samples (own).
EARLY_S, EARLY_FOR_S = 0.5, 15.0
#: Rows and events kept for the loop at most, should it be busy for long.
KEPT = 4096


@dataclass(frozen=True)
class Sample:
    """One row of a stream, taken at `mono_ns`."""

    stream: str
    mono_ns: int
    values: Mapping[str, float]


class Sampling:
    """Takes samples every `sample_s` seconds between `start` and `stop`.

    Args:
        host: this host's name in the streams.
        sample_s: seconds between samples.
    """

    def __init__(self, host: str, sample_s: float) -> None:
        self._name = host
        self._sample_s = sample_s
        self._host = HostSampler()
        self._gpu = GpuSampler()
        self._tapes: list[Followed] = []
        self._environments: dict[int, dict[str, str] | None] = {}
        self._wanted: list[Wanted] = []
        self._chosen: list[Wanted] = []
        self._asked_s: float | None = None
        self._early_until_s = 0.0
        self._samples: deque[Sample] = deque(maxlen=KEPT)
        self._events: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._commands: deque[tuple[bool, Followed]] = deque()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=work, name=name, daemon=True)
            for name, work in (("sampling", self._work), ("gpu sampling", self._gpu_work))
        ]

    def start(self) -> None:
        """Begin. The first sample comes at once, without rates."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End, unless the system does not let go of the threads."""
        self._stop.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=1.0)

    def watch(self, tape: Followed) -> None:
        """Sample this rank from the next sample on."""
        self._commands.append((True, tape))

    def forget(self, tape: Followed) -> None:
        """The rank has ended."""
        self._commands.append((False, tape))

    def children_of(self, rank: int) -> list[tuple[int, int]]:
        """Pid and start ticks of a rank's descendants, as last seen."""
        return self._host.children_of(rank)

    def oom_killed_lately(self) -> bool:
        """Whether the kernel has just killed for memory."""
        return self._host.oom_killed_lately()

    def facts(self) -> dict[str, Any]:
        """What is known of the host: see HostSampler.facts; `gpus`: see GpuSampler.facts."""
        return {**self._host.facts(), "gpus": self._gpu.facts()}

    def take(self) -> tuple[list[Sample], list[dict[str, Any]]]:
        """Samples and events since the last call."""
        return _emptied(self._samples), _emptied(self._events)

    def _work(self) -> None:
        self._repeat(self._sample, self._pause_s)

    def _gpu_work(self) -> None:
        # Where the driver is not kept loaded, finding the devices takes seconds.
        self._gpu.start()
        self._repeat(self._sample_gpus, lambda: self._sample_s)

    def _pause_s(self) -> float:
        early = time.monotonic() < self._early_until_s
        return min(self._sample_s, EARLY_S) if early else self._sample_s

    def _repeat(self, sample: Callable[[], None], pause_s: Callable[[], float]) -> None:
        due_s = time.monotonic()
        while not self._stop.is_set():
            try:
                sample()
            except Exception as error:  # noqa: BLE001 - one broken sample is not the end of sampling
                self._events.append(
                    {"kind": "warn", "text": f"a sample failed: {type(error).__name__}: {error}"}
                )
            due_s = max(due_s + pause_s(), time.monotonic())
            self._stop.wait(due_s - time.monotonic())

    def _sample(self) -> None:
        self._obey()
        now_ns = time.perf_counter_ns()
        self._samples.append(Sample(f"host/{self._name}", now_ns, self._host.host()))
        for tape in self._tapes:
            row = self._host.process(tape.rank)
            if row is not None:
                self._samples.append(Sample(f"proc/{tape.rank}", time.perf_counter_ns(), row))

    def _sample_gpus(self) -> None:
        asked = self._wanted
        if asked and asked != self._chosen:
            self._gpu.choose(asked)
            self._chosen = asked
        if self._devices_known(asked):
            for gpu, row in self._gpu.sample(self._ours()).items():
                self._samples.append(Sample(f"gpu/{self._name}/{gpu}", time.perf_counter_ns(), row))
        self._events.extend(self._gpu.events())

    def _devices_known(self, asked: list[Wanted]) -> bool:
        """Whether the ranks have told which devices they use, or had time to. Others' need not be shown."""
        if asked and self._asked_s is None:
            self._asked_s = time.monotonic()
        known = all(rank.uuids or rank.visible is not None for rank in asked)
        return self._asked_s is not None and (known or time.monotonic() - self._asked_s >= GRACE_S)

    def _obey(self) -> None:
        while self._commands:
            begin, tape = self._commands.popleft()
            if begin:
                self._tapes.append(tape)
                self._early_until_s = time.monotonic() + EARLY_FOR_S
                self._environments[tape.pid] = proc.environment(tape.pid)
                self._host.watch(tape.rank, tape.pid)
            else:
                self._tapes = [each for each in self._tapes if each is not tape]
                self._environments.pop(tape.pid, None)
                if all(each.rank != tape.rank for each in self._tapes):
                    self._host.forget(tape.rank)
        asked = [wanted(tape.facts, self._environments[tape.pid]) for tape in self._tapes]
        self._wanted = asked or self._wanted

    def _ours(self) -> set[int]:
        """Pids of the ranks and of what they started."""
        children = (pid for tape in self._tapes for pid, _ in self._host.children_of(tape.rank))
        return {*(tape.pid for tape in self._tapes), *children}


def _emptied(queue: deque[Any]) -> list[Any]:
    found = []
    while queue:
        found.append(queue.popleft())
    return found
