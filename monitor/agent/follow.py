"""Follows the tapes and journals of one spool folder as ranks write them."""

from __future__ import annotations

import math
import re
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from monitor.agent.faults import Faults, registered
from monitor.batch import Block
from monitor.tape.layout import TapeError
from monitor.tape.reader import JournalReader, Live, Rows, TapeReader

#: Steps read from one tape at a time.
ROWS_A_READ = 4096
#: A tape that makes no sense for this long is not one that is still being made.
PATIENCE_NS = 3_000_000_000

_TAPE = re.compile(r"rank-\d+-\d+\.tape\Z")


@dataclass
class Followed:
    """One rank's tape and journal.

    Attributes:
        rank: the rank its rows and events are filed under.
        pid, start_ticks: its process.
        next: the next step to read, counted from this tape's own beginning.
        offset: what is added to this tape's steps, since an earlier process of the rank took some.
        live: the live area as last read; None before, or when it is damaged.
        end, failure: its `end` and `exception` events, once they came.
        faults: how it can be asked for its stacks, once it said so.
        folder: the folder it was started in.
    """

    rank: int
    pid: int
    start_ticks: int
    local_rank: int
    world_size: int
    wall_ns: int
    tape: TapeReader
    path: Path
    offset: int = 0
    next: int = 0
    journal: JournalReader | None = None
    live: Live | None = None
    damaged: bool = False
    end: dict[str, Any] | None = None
    failure: dict[str, Any] | None = None
    faults: Faults | None = None
    folder: str | None = None
    ended: bool = False
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        """Steps completed, as last seen, earlier processes of the rank included."""
        return self.offset + max(self.next, self.live.steps if self.live else 0)


class Follower:
    """Finds tapes in `spool` and reads what is new.

    Args:
        spool: the folder.
        base_ns: perf_counter_ns at which the run's time is 0.

    Attributes:
        tapes: all that were found, in the order of their finding.
    """

    def __init__(self, spool: Path, base_ns: int) -> None:
        self._spool = spool
        self._base_ns = base_ns
        self._known: set[str] = set()
        self._unreadable: dict[str, int] = {}
        self._notes: list[dict[str, Any]] = []
        self.tapes: list[Followed] = []

    def seconds(self, mono_ns: int) -> float:
        """Seconds since the run began."""
        return (mono_ns - self._base_ns) / 1e9

    def scan(self) -> list[Followed]:
        """Open tapes that have appeared. One that stays unreadable is given up with a `warn` event."""
        found = []
        try:
            names = sorted(entry.name for entry in self._spool.iterdir())
        except OSError:
            return []
        for name in names:
            if name not in self._known and _TAPE.match(name):
                tape = self._open(name)
                if tape is not None:
                    self._known.add(name)
                    self.tapes.append(tape)
                    found.append(tape)
        return found

    def poll(self, tape: Followed) -> tuple[list[Block], list[dict[str, Any]]]:
        """What is new of one rank: rows in order, and events. Bounded; call again while rows come."""
        events, self._notes = self._notes, []
        events += self._events(tape)
        try:
            tape.live = tape.tape.live()
            rows = tape.tape.read(tape.next, ROWS_A_READ)
        except TapeError as error:
            if not tape.damaged:
                tape.damaged = True
                events.append(self._note(f"the tape of rank {tape.rank}: {error}", tape.rank))
            return [], events
        if rows.lost:
            events.append({**self._note("", tape.rank), "kind": "dropped", "records": rows.lost})
        tape.next = rows.next
        return ([self._block(tape, rows)] if len(rows) else []), events

    def last(self, tape: Followed) -> Block | None:
        """The step that a rank had staged when its process died: it is nobody's to end any more."""
        try:
            rows = tape.tape.staged()
        except TapeError:
            return None
        if not len(rows) or rows.first != tape.next:
            return None
        tape.next = rows.next
        return self._block(tape, rows)

    def close(self) -> None:
        """Close all files."""
        for tape in self.tapes:
            tape.tape.close()
            if tape.journal is not None:
                tape.journal.close()

    def _open(self, name: str) -> Followed | None:
        path = self._spool / name
        try:
            reader = TapeReader(str(path))
        except (TapeError, OSError) as error:
            since = self._unreadable.setdefault(name, perf_counter_ns())
            if perf_counter_ns() - since > PATIENCE_NS:
                self._known.add(name)
                self._notes.append(self._note(f"{name}: {error}"))
            return None
        header = reader.header
        rank, offset = self._row_offset(header.rank, header.world_size)
        return Followed(
            rank=rank,
            pid=header.pid,
            start_ticks=header.start_ticks,
            local_rank=header.local_rank,
            world_size=header.world_size,
            wall_ns=header.wall_ns,
            tape=reader,
            path=path,
            offset=offset,
        )

    def _row_offset(self, rank: int, world_size: int) -> tuple[int, int]:
        """Where a new tape's rows go: behind those of the rank's earlier process, if that has ended."""
        while any(tape.rank == rank and not tape.ended for tape in self.tapes):
            rank += world_size
        return rank, max((tape.offset + tape.next for tape in self.tapes if tape.rank == rank), default=0)

    def _events(self, tape: Followed) -> list[dict[str, Any]]:
        if tape.journal is None:
            try:
                tape.journal = JournalReader(str(tape.path.with_suffix(".journal")))
            except OSError:
                return []
        events = []
        for event in filter(_has_kind, tape.journal.read()):
            if event["kind"] == "faults":  # between the probe and us
                tape.faults = registered(event, self._spool)
            else:
                events.append(self._event(tape, event))
        return events

    def _event(self, tape: Followed, event: dict[str, Any]) -> dict[str, Any]:
        at_ns = event.pop("t_ns", None)
        known = isinstance(at_ns, int) and math.isfinite(at_ns)
        event["t_s"] = self.seconds(at_ns if known else perf_counter_ns())
        event["rank"] = tape.rank
        if isinstance(event.get("step"), int):
            event["step"] += tape.offset
        if event["kind"] == "end":
            tape.end = event
        elif event["kind"] == "attach":
            tape.folder = event["cwd"] if isinstance(event.get("cwd"), str) else None
        elif event["kind"] == "exception":
            tape.failure = event
        elif event["kind"] == "fact" and isinstance(event.get("name"), str):
            tape.facts[event["name"]] = event.get("value")
        return event

    def _note(self, text: str, rank: int | None = None) -> dict[str, Any]:
        note: dict[str, Any] = {"kind": "warn", "t_s": self.seconds(perf_counter_ns())}
        note.update({"text": text} if text else {}, **({"rank": rank} if rank is not None else {}))
        return note

    def _block(self, tape: Followed, rows: Rows) -> Block:
        times = array("d", [(end_ns - self._base_ns) / 1e9 for end_ns in rows.end_ns])
        return Block(f"rank/{tape.rank}", tape.offset + rows.first, times, rows.columns)


def _has_kind(event: dict[str, Any]) -> bool:
    return isinstance(event.get("kind"), str)
