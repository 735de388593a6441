"""The agent's side of the tape: reads a ring and a journal that another process may be writing.

Both are read with `pread`, never mapped: a file that shrinks under a mapping kills its reader.
"""

from __future__ import annotations

import json
import math
import os
import stat
import struct
import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from monitor.schema import PHASES
from monitor.tape import layout
from monitor.tape.layout import UNKNOWN_NS, TapeError
from monitor.tape.writer import FRAME_HEAD, FRAME_MAGIC, MAX_EVENT_BYTES

#: The journal is read in parts of at most this size, which bounds the reader's memory.
JOURNAL_PART_BYTES = 4 * MAX_EVENT_BYTES

_LIVE = struct.Struct("<8q")


@dataclass(frozen=True)
class Live:
    """What the training process is doing right now.

    Attributes:
        phase: the phase it is in; None before its first one.
        since_ns: perf_counter_ns when it entered it.
        steps: steps completed.
        end_ns: perf_counter_ns at the newest step's end; 0 before.
        closed: True after a clean end.
        epoch: its number, as last told.
        gave_up: True once recording has stopped because something of ours broke.
    """

    phase: str | None
    since_ns: int
    steps: int
    end_ns: int
    closed: bool
    epoch: int
    gave_up: bool = False


@dataclass(frozen=True)
class Rows:
    """Consecutive whole steps.

    Attributes:
        first: the first one's step number.
        end_ns: int64, shape [steps]: perf_counter_ns at each step's end.
        columns: key -> float32, shape [steps]; "ns" columns in milliseconds, and `step_ms`, the sum of
            the phases. NaN where not measured.
        lost: steps asked for, before `first`, that were overwritten or damaged.
    """

    first: int
    end_ns: array[int]
    columns: dict[str, array[float]]
    lost: int

    def __len__(self) -> int:
        return len(self.end_ns)

    @property
    def next(self) -> int:
        """Where to read on."""
        return self.first + len(self.end_ns)


class TapeReader:
    """Reads one rank's ring.

    Attributes:
        header: see `monitor.tape.layout.Header`.

    Raises:
        TapeError: not a tape, a damaged or a truncated one.
        OSError: the file cannot be opened.
    """

    header: layout.Header

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            found = os.fstat(self._fd)
            if not stat.S_ISREG(found.st_mode):
                raise TapeError("a tape is a regular file")
            self.header = layout.decode(os.pread(self._fd, layout.HEADER_BYTES, 0))
            if found.st_size != self.header.file_bytes:
                raise TapeError(f"tape of {found.st_size} bytes, its header says {self.header.file_bytes}")
        except BaseException:
            os.close(self._fd)
            raise
        self._slot = self.header.slot

    def live(self) -> Live:
        """The live area.

        Raises:
            TapeError: truncated or damaged.
        """
        phase, since_ns, steps, end_ns, closed, epoch, _, _ = _LIVE.unpack(
            self._pread(layout.LIVE_BYTES, layout.LIVE_AT)
        )
        if not (-1 <= phase < len(PHASES) and steps >= 0 and since_ns >= 0 and end_ns >= 0):
            raise TapeError("damaged live area")
        name = PHASES[phase] if phase >= 0 else None
        return Live(name, since_ns, steps, end_ns, closed == layout.CLOSED, epoch, closed == layout.GAVE_UP)

    def read(self, from_step: int, limit: int) -> Rows:
        """Steps from `from_step` on, at most `limit`, as far as they are complete.

        A step that is being overwritten, or was, or is damaged, ends the rows or is counted as lost;
        it is never returned.

        Raises:
            TapeError: truncated or damaged.
        """
        done = self._completed()
        first = max(from_step, done - self.header.slots)
        count = min(limit, done - first)
        if count <= 0:
            return self._rows(from_step, from_step, [])
        raw = self._slots(first, count)
        rows = list(self._slot.iter_unpack(raw))
        good = [self._is_complete(first + i, row) for i, row in enumerate(rows)]
        start = next((i for i, fine in enumerate(good) if fine), count)
        stop = next((i for i in range(start, count) if not good[i]), count)
        # The writer goes through the ring in order: once the first copied slot is found untouched after
        # the copy, so are all behind it.
        while start < stop and not self._complete(first + start):
            start += 1
        return self._rows(from_step, first + start, rows[start:stop])

    def staged(self) -> Rows:
        """The step that was under way as far as it was recorded, for a writer that is dead; else no rows.

        Raises:
            TapeError: truncated or damaged.
        """
        step = self._completed()
        row = self._slot.unpack(self._slots(step, 1))
        complete = row[0] == row[-1] == -(2 * step + 2) and row[1] >= 0
        return self._rows(step, step, [row] if complete else [])

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def _completed(self) -> int:
        # The count in the live area follows the slot, so the slot after it may be complete already.
        for _ in range(3):
            steps = self.live().steps
            for step in (steps, steps - 1):
                if step >= 0 and self._complete(step):
                    return step + 1
            if steps == 0:
                return 0
        raise TapeError("damaged tape: the live area and the slots disagree")

    def _complete(self, step: int) -> bool:
        at, size = self._at(step), self._slot.size
        head = layout.SEQ.unpack(self._pread(8, at))
        tail = layout.SEQ.unpack(self._pread(8, at + size - 8))
        return head == tail == (2 * step + 2,)

    def _at(self, step: int) -> int:
        return layout.HEADER_BYTES + step % self.header.slots * self._slot.size

    def _slots(self, first: int, count: int) -> bytes:
        size = self._slot.size
        before_wrap = min(count, self.header.slots - first % self.header.slots)
        raw = self._pread(before_wrap * size, self._at(first))
        if before_wrap < count:
            raw += self._pread((count - before_wrap) * size, layout.HEADER_BYTES)
        return raw

    def _pread(self, size: int, at: int) -> bytes:
        try:
            raw = os.pread(self._fd, size, at)
        except (OSError, OverflowError) as error:
            raise TapeError(f"tape unreadable: {error}") from None
        if len(raw) != size:
            raise TapeError("truncated tape")
        return raw

    def _is_complete(self, step: int, row: tuple[Any, ...]) -> bool:
        return bool(row[0] == row[-1] == 2 * step + 2 and row[1] >= 0)

    def _rows(self, asked: int, first: int, rows: list[tuple[Any, ...]]) -> Rows:
        fields = list(zip(*rows, strict=True)) or [()] * (len(self.header.columns) + 3)
        columns: dict[str, array[float]] = {}
        for (key, kind), values in zip(self.header.columns, fields[2:-1], strict=True):
            columns[key] = array("f", _milliseconds(values) if kind == "ns" else values)
        phases = [fields[2 + i] for i, (key, _) in enumerate(self.header.columns) if key in _PHASE_KEYS]
        columns["step_ms"] = array("f", [_sum_ns(parts) * 1e-6 for parts in zip(*phases, strict=True)])
        return Rows(first, array("q", fields[1]), columns, first - asked)


def _milliseconds(values: Sequence[int]) -> list[float]:
    """Milliseconds of nanoseconds; NaN where they were not measured."""
    if UNKNOWN_NS in values:
        return [math.nan if value == UNKNOWN_NS else value * 1e-6 for value in values]
    return [value * 1e-6 for value in values]


def _sum_ns(parts: Sequence[int]) -> int:
    """The sum of a step's phases, without those that were not measured."""
    return sum(part for part in parts if part != UNKNOWN_NS) if UNKNOWN_NS in parts else sum(parts)


_PHASE_KEYS = frozenset(f"{phase}_ms" for phase in PHASES)


class JournalReader:
    """Reads one rank's journal, from its start and then as it grows.

    Attributes:
        damaged: stretches of the file that were no frames and were skipped.

    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        self._at = 0
        self.damaged = 0
        self._in_damage = False

    def read(self) -> list[dict[str, Any]]:
        """Events that were completed since the last call, oldest first; at most a few megabytes.

        A frame that is not complete yet is left for a later call, unless complete ones follow it.
        """
        try:
            raw = os.pread(self._fd, JOURNAL_PART_BYTES, self._at)
        except OSError:
            return []
        events: list[dict[str, Any]] = []
        at = 0
        while (frame := _next_frame(raw, at)) is not None:
            start, event, end = frame
            self._note_gap(start - at)
            self._in_damage = False
            events.append(event)
            at = end
        self._at += at + self._hopeless(len(raw) - at)
        return events

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def _hopeless(self, rest: int) -> int:
        # Bytes that hold no frame, and more of them than any frame can have, will not become one.
        skip = max(0, rest - MAX_EVENT_BYTES - FRAME_HEAD.size)
        self._note_gap(skip)
        self._in_damage = self._in_damage or skip > 0
        return skip

    def _note_gap(self, size: int) -> None:
        if size and not self._in_damage:
            self.damaged += 1


def _next_frame(raw: bytes, at: int) -> tuple[int, dict[str, Any], int] | None:
    """Start, event and end of the first whole frame from `at` on."""
    while (start := raw.find(FRAME_MAGIC, at)) >= 0:
        at = start + 1
        body = start + FRAME_HEAD.size
        if body > len(raw):
            return None
        _, size, crc = FRAME_HEAD.unpack_from(raw, start)
        text = raw[body : body + size] if size <= MAX_EVENT_BYTES else b""
        if len(text) == size and zlib.crc32(text) == crc and (event := _event(text)) is not None:
            return start, event, body + size
    return None


def _event(text: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None
