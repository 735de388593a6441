"""Simulates a large run, many hosts with their ranks, in one process: real tapes, followers, reducers and
uplinks, invented steps.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monitor.agent.batcher import Batcher
from monitor.agent.follow import Follower
from monitor.agent.reduce import Reducer
from monitor.agent.uplink import Uplink
from monitor.batch import Batch
from monitor.schema import PHASES, TAPE_METRICS
from monitor.tape.writer import TapeWriter

if TYPE_CHECKING:
    from simulated_run import PlayedHub  # needs a browser's driver, which a crowd does not

#: Slots of a tape: some seconds.
SLOTS = 256
_AT = {metric.key: index for index, metric in enumerate(TAPE_METRICS)}
_COMM, _BACKWARD, _FORWARD = (PHASES.index(phase) for phase in ("comm", "backward", "forward"))


class Host:
    """One host: its ranks' tapes, and what an agent does with them.

    Args:
        name: the host's.
        folder: where its tapes lie; made here.
        ranks: first rank and how many.
        world_size: of the whole run.
        link: gives its uplink, told the name.
        base_ns: perf_counter_ns at which the run's time is 0 here.
    """

    def __init__(
        self,
        run: str,
        name: str,
        folder: Path,
        ranks: range,
        world_size: int,
        link: Callable[[str], Any],
        base_ns: int,
    ) -> None:
        folder.mkdir(parents=True)
        self.name, self.ranks = name, ranks
        paths = [str(folder / f"rank-{rank}-{rank}.tape") for rank in ranks]
        self._tapes = [
            TapeWriter(path, rank=rank, world_size=world_size, local_rank=local, slots=SLOTS)
            for local, (path, rank) in enumerate(zip(paths, ranks, strict=True))
        ]
        self._follower, self._reducer = Follower(folder, base_ns), Reducer(name)
        self._batcher = Batcher(run, name)
        self.uplink = link(name)
        about = {"kind": "run", "name": "crowd", "started_unix_s": time.time(), "world_size": world_size}
        self._event(host=name, **about)
        for tape in self._follower.scan():
            self._event(kind="attach", rank=tape.rank, pid=tape.rank, world_size=world_size)
        for event in self._reducer.watch(self._follower.tapes):
            self._event(**event)

    def step(self, end_ns: int, values: Callable[[int], list[float]]) -> None:
        """One step of every rank."""
        for rank, tape in zip(self.ranks, self._tapes, strict=True):
            tape.append(end_ns, values(rank))

    def send(self, *, last: bool = False) -> None:
        """What an agent does once a second; with `last`, at the end of all ranks."""
        for tape in self._follower.tapes:
            blocks, events = self._follower.poll(tape)
            assert not events, events
            for block in blocks:
                if not self._reducer.block(tape, block):
                    self._batcher.block(block)
            if last:
                self._reducer.end(tape)
                how = {"code": 0, "signal": None, "reason": "end of the script", "clean": True}
                self._event(kind="rank_end", rank=tape.rank, last_step=tape.steps - 1, **how)
        now_s, now_ns = self._now_s(), time.perf_counter_ns()
        for row in self._reducer.rows(now_s, now_ns):
            self._batcher.sample(self._reducer.stream, now_s, row)
        self._batcher.sample(f"host/{self.name}", now_s, {"cpu_used": 8.0, "cpu_usable": 96.0})
        if last:
            self._event(kind="run_end")
        for batch in self._batcher.close(now_s):
            self.uplink.take(batch)

    def close(self) -> None:
        """Close the files and the link."""
        self._follower.close()
        for tape in self._tapes:
            tape.close()
        if hasattr(self.uplink, "close"):
            self.uplink.close()

    def _event(self, **fields: Any) -> None:
        self._batcher.event({"t_s": self._now_s(), **fields})

    def _now_s(self) -> float:
        return self._follower.seconds(time.perf_counter_ns())


class Crowd:
    """All hosts of one run, at one pace.

    Args:
        folder: for tapes.
        hosts, each: how many hosts, and ranks on each.
        link: gives a host's uplink.
        late: the rank that makes the others wait; None when all are alike.
        step_s: seconds of a step.
        ago_s: so long ago it began; what is trained until now need not be paced.
    """

    def __init__(
        self, folder: Path, hosts: int, each: int, link: Callable[[str], Any], *, run: str = "crowd-1",
        late: int | None = None, step_s: float = 0.1, ago_s: float = 0.0,
    ) -> None:  # fmt: skip
        self.run, self.step_s, self.late, self.steps = run, step_s, late, 0
        self._random = random.Random(hosts * each)
        base_ns = time.perf_counter_ns() - int(ago_s * 1e9)
        self.hosts = [
            Host(run, f"h{n}", folder / f"h{n}", range(n * each, (n + 1) * each), hosts * each, link, base_ns)
            for n in range(hosts)
        ]
        self._base_ns = base_ns
        self._values: list[float] = [0 if m.tape == "ns" else math.nan for m in TAPE_METRICS]
        self._values[_AT["samples"]] = 32.0

    def run_for(self, seconds: float, paced: bool = True) -> float:
        """Train for so long, and send once a second, each host at its own moment.

        Returns how late the last step came, in seconds: a machine that cannot play the crowd proves nothing.
        """
        count, each_s = round(seconds / self.step_s), round(1 / self.step_s)
        for _ in range(count):
            due_ns = self._base_ns + int((self.steps + 1) * self.step_s * 1e9)
            while paced and (left_s := (due_ns - time.perf_counter_ns()) / 1e9) > 0:
                time.sleep(left_s)
            for host in self.hosts:
                host.step(due_ns, self._step)
            self.steps += 1
            for host in self.hosts[self.steps % each_s :: each_s]:
                host.send()
        return (time.perf_counter_ns() - due_ns) / 1e9

    def end(self) -> None:
        """Every rank ends, and everything is handed on."""
        for host in self.hosts:
            host.send(last=True)

    def close(self) -> None:
        """Close all files and links."""
        for host in self.hosts:
            host.close()

    def _step(self, rank: int) -> list[float]:
        """A step of equal length everywhere: whoever works longer waits less."""
        wait = 0.02 if rank == self.late else 0.25 + 0.02 * self._random.random()
        whole = int(self.step_s * 1e9)
        values = self._values
        values[_COMM] = int(whole * wait)
        values[_FORWARD] = int(whole * 0.3)
        values[_BACKWARD] = whole - values[_COMM] - values[_FORWARD]
        return values


def handed(hub: PlayedHub, folder: Path, hosts: int, each: int, seconds: float, late: int) -> Crowd:
    """A crowd that has trained for so long, every batch handed to a hub whose clock goes with it."""

    class Hand:
        def take(self, batch: Batch) -> None:
            hub.played_s += 1 / hosts
            hub.pipeline.take(batch)

    crowd = Crowd(folder, hosts, each, lambda _: Hand(), late=late, ago_s=seconds)
    crowd.run_for(seconds, paced=False)
    for host in crowd.hosts:
        host.send()
    return crowd


def uplinks(url: str, token: str, run: str, folder: Path) -> Callable[[str], Uplink]:
    """Links to a hub, for `Crowd`."""
    return lambda host: Uplink(lambda: (url, token), run, host, folder / f"spool-{host}")
