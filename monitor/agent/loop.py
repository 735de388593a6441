"""The agent: follow, sample, watch, hand on; until every rank has ended and all is delivered."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from monitor.agent import exits, flight, proc
from monitor.agent.batcher import Batcher
from monitor.agent.elastic import returns
from monitor.agent.follow import Followed, Follower
from monitor.agent.onstall import OnStall
from monitor.agent.reduce import Reducer
from monitor.agent.sampling import Sampling
from monitor.agent.stack_sampling import StackSampler
from monitor.agent.stalls import Stalls
from monitor.agent.terminal import Terminal
from monitor.agent.watchdog import Watchdog, end_event, end_without_tape
from monitor.batch import Batch, Block, Sink

POLL_S = 0.25
BATCH_S = 0.5
#: Where many hosts feed one run, each sends that much less often.
REDUCED_S = 1.0
#: An agent that has found no rank for so long was started for nothing.
START_S = 60.0
#: After the last rank's end, for a next one to come: ranks need not begin or end together.
LINGER_S = 0.5


@dataclass(frozen=True)
class Run:
    """What the agent is told of its run.

    Attributes:
        id: the run's id.
        host: this host's name; letters, digits, '.', '_' and '-'.
        base_ns: perf_counter_ns at which the run's time is 0.
        about: the fields of the `run` event: name, started_unix_s, world_size, config, argv, …
        version: our own.
    """

    id: str
    host: str
    base_ns: int
    about: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""


class Agent:
    """Watches the ranks of one run on this host.

    Args:
        spool: where they write.
        run: which run.
        sink: takes the batches; where it has a `dropped` count, growth is told in an event.
        sample_s: seconds between samples of host and GPU.
        stall_after_s: seconds without a step that count as a stall; None adapts to the run.
        on_stall: acts on stalls that last; nobody does unless given.
        gate: entered before the agent ends: while it is held, no rank may join. A rank that joins
            leaves a file `pending-PID` in the spool while it holds it, before it makes its tape.

    Attributes:
        over: set while the gate is held, once no rank lives and none is about to come: whoever comes
            later must begin a run of its own.
    """

    def __init__(
        self,
        spool: Path,
        run: Run,
        sink: Sink,
        *,
        sample_s: float = 1.0,
        stall_after_s: float | None = None,
        on_stall: OnStall | None = None,
        gate: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self._spool = spool
        self._run = run
        self._sink = sink
        self._gate = gate
        self._follower = Follower(spool, run.base_ns)
        self._watchdog = Watchdog(spool)
        self._sampling = Sampling(run.host, sample_s)
        self._stalls = Stalls(self._sampling.children_of, stall_after_s)
        self._terminal = Terminal(spool)
        self._on_stall = on_stall or OnStall()
        self._stack_sampler = StackSampler()
        self._batcher = Batcher(run.id, run.host)
        self._reducer = Reducer(run.host)
        self._live: dict[int, tuple[str | None, int]] = {}
        self._facts: dict[str, Any] = {}
        self._batched_s = self._busy_s = time.monotonic()
        self._reported_dropped = self._lost = 0
        self._ended_without_tape: set[int] = set()
        self._stopped = False
        self.over = False

    def run(self) -> None:
        """Work until all ranks have ended, or `stop`. Everything is with the sink then."""
        self._event("run", host=self._run.host, **self._run.about)
        self._sampling.start()
        self._hand_on()
        while not (self._stopped or self._may_end()):
            self._sleep()
            self.tick()
        self.tick()
        if not self._stopped:
            self._event("run_end")
        self._hand_on()
        self._sampling.stop()
        self._stack_sampler.close()
        self._follower.close()

    def stop(self) -> None:
        """Ask `run` to come to an end soon, from a signal handler or another thread."""
        self._stopped = True

    def tick(self) -> None:
        """One round: new ranks, new rows, deaths, samples, and a batch when one is due."""
        found = self._follower.scan()
        for tape in found:
            self._watchdog.watch(tape)
            self._sampling.watch(tape)
        self._publish(self._reducer.watch(found))
        urgent = self._read_launcher_exits()
        for tape in self._follower.tapes:
            if not tape.ended:
                self._busy_s = time.monotonic()
                urgent |= self._follow(tape)
        self._take_samples()
        if urgent or time.monotonic() - self._batched_s >= (REDUCED_S if self._reducer.active else BATCH_S):
            self._hand_on()

    def _sleep(self) -> None:
        began_s = time.monotonic()
        self._watchdog.wait(POLL_S)
        self._stalls.late(time.monotonic() - began_s - POLL_S)

    def _follow(self, tape: Followed) -> bool:
        """Read one rank. Returns whether something cannot wait."""
        # Asked before reading: what the process wrote before it died is then certainly read.
        gone = self._watchdog.gone(tape, self._sampling.oom_killed_lately)
        self._read(tape)
        if not gone:
            return self._inspect(tape)
        how = self._watchdog.how(tape)
        if how is None:
            return False
        if (last := self._follower.last(tape)) is not None:
            self._rows(tape, last)
        self._publish(self._stalls.forget(tape) + self._stack_sampler.forget(tape))
        oom_kill = self._watchdog.forget(tape)
        children = self._sampling.children_of(tape.rank)
        how = self._on_stall.ended(tape, how, children)
        self._batcher.event({"t_s": self._now_s(), **end_event(tape, how, oom_kill, children)})
        self._sampling.forget(tape)
        self._reducer.end(tape)
        tape.ended = True
        return True

    def _inspect(self, tape: Followed) -> bool:
        """What only a look from outside can tell of a rank that lives. Returns whether it is urgent."""
        stalls = self._stalls.check(tape)
        stalls += self._on_stall.act_if_due(tape, self._stalls)
        self._publish(stalls + flight.recorded(tape, stalls) + self._stack_sampler.sample(tape))
        return bool(stalls)

    def _publish(self, events: list[dict[str, Any]]) -> None:
        for event in events:
            self._terminal.print_event(event)
            if (since_ns := event.pop("since_ns", None)) is not None:
                event["since_s"] = self._follower.seconds(since_ns)
            self._batcher.event({"t_s": self._now_s(), **event})

    def _read(self, tape: Followed) -> None:
        while True:
            blocks, events = self._follower.poll(tape)
            for block in blocks:
                self._rows(tape, block)
            for event in events:
                values = event.get("values") if event["kind"] == "cuda" else None
                if values is None or not self._reducer.sample(f"cuda/{tape.rank}", values):
                    self._batcher.event(event)
            if not (blocks or events):
                return
            if self._batcher.full:
                self._hand_on()

    def _rows(self, tape: Followed, block: Block) -> None:
        if not self._reducer.block(tape, block):
            self._batcher.block(block)
        self._stalls.saw(tape, block)
        self._stack_sampler.add_steps(tape, block)

    def _take_samples(self) -> None:
        samples, events = self._sampling.take()
        for sample in samples:
            if self._reducer.sample(sample.stream, sample.values):
                continue
            self._batcher.sample(sample.stream, self._follower.seconds(sample.mono_ns), sample.values)
        for event in events:
            self._batcher.event({"t_s": self._now_s(), **event})
        if samples and (facts := self._sampling.facts()) != self._facts:
            self._facts = facts
            self._event("agent", pid=os.getpid(), version=self._run.version, host_facts=facts)

    def _hand_on(self) -> None:
        self._batched_s = time.monotonic()
        dropped = self._lost + getattr(self._sink, "dropped", 0)
        if dropped > self._reported_dropped:
            self._event("dropped", records=dropped - self._reported_dropped)
            self._reported_dropped = dropped
        self._send_positions()
        for batch in self._batcher.close(self._now_s()):
            self._give(batch)

    def _send_positions(self) -> None:
        """Where each rank is now: in its brief, or in an event when it has moved."""
        now_s, now_ns = self._now_s(), time.perf_counter_ns()
        for row in self._reducer.rows(now_s, now_ns):
            self._batcher.sample(self._reducer.stream, now_s, row)
        for tape in () if self._reducer.active else self._follower.tapes:
            live = tape.live
            if tape.ended or live is None or live.phase is None:
                continue
            if self._live.get(tape.rank) != (live.phase, live.since_ns):
                self._live[tape.rank] = live.phase, live.since_ns
                since_s = self._follower.seconds(live.since_ns)
                self._event("live", rank=tape.rank, phase=live.phase, since_s=since_s, step=tape.steps)

    def _give(self, batch: Batch) -> None:
        try:
            self._sink.take(batch)
        except Exception as error:  # noqa: BLE001 - the ranks are watched on, whatever the sink does
            self._lost += sum(map(len, batch.blocks))
            print(f"batch {batch.seq}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)

    def _may_end(self) -> bool:
        if not self._idle():
            return False
        with self._gate():
            self.tick()
            self.over = self._idle()
            return self.over

    def _idle(self) -> bool:
        """No rank lives and none is about to come."""
        tapes = self._follower.tapes
        if any(not tape.ended or returns(tape) for tape in tapes) or self._pending():
            return False
        return time.monotonic() - self._busy_s > (LINGER_S if tapes or self._ended_without_tape else START_S)

    def _read_launcher_exits(self) -> bool:
        """Ranks that were launched and ended before they made a tape. Returns whether there is a new one."""
        before = len(self._ended_without_tape)
        for path in self._spool.glob("launched-*"):
            number = path.name.partition("-")[2]
            if not number.isdigit() or int(number) in self._ended_without_tape:
                continue
            exit_status = exits.launcher_exit(self._spool, int(number), 0)
            if exit_status and all(tape.rank != int(number) for tape in self._follower.tapes):
                self._ended_without_tape.add(int(number))
                self._batcher.event({"t_s": self._now_s(), **end_without_tape(int(number), exit_status)})
        return len(self._ended_without_tape) > before

    def _pending(self) -> bool:
        """Whether a process that lives has said that it will make a tape, and has not yet."""
        made = {str(tape.pid) for tape in self._follower.tapes}
        waiting = (path.name.partition("-")[2] for path in self._spool.glob("pending-*"))
        return any(pid.isdigit() and pid not in made and proc.stat(int(pid)) is not None for pid in waiting)

    def _event(self, kind: str, **fields: Any) -> None:
        self._batcher.event({**fields, "kind": kind, "t_s": self._now_s()})

    def _now_s(self) -> float:
        return self._follower.seconds(time.perf_counter_ns())
