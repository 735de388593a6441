"""Batches that the hub has not acknowledged: the oldest in memory, what does not fit there on disk."""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

MEMORY_BYTES = 8 * 1024 * 1024
DISK_BYTES = 256 * 1024 * 1024
#: The disk part is a row of files, so that its oldest end can be given back.
SEGMENT_BYTES = 8 * 1024 * 1024

_FRAME = struct.Struct("<QIII")


@dataclass(frozen=True)
class Entry:
    """One encoded batch. `rows` is what would be lost with it."""

    seq: int
    rows: int
    data: bytes


@dataclass
class _Segment:
    path: Path
    bytes: int = 0
    rows: int = 0


class Backlog:
    """A queue in order of `seq`. Safe for one thread that pushes and one that takes.

    Args:
        path: files are called `path` with a number appended.
        memory_bytes, disk_bytes, segment_bytes: limits; beyond them the oldest on disk are dropped.

    Attributes:
        dropped: rows lost, because both are full or the disk failed.
    """

    def __init__(
        self,
        path: Path,
        memory_bytes: int = MEMORY_BYTES,
        disk_bytes: int = DISK_BYTES,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self._path = path
        self._limits = memory_bytes, disk_bytes, segment_bytes
        self._memory: deque[Entry] = deque()
        self._memory_bytes = 0
        self._segments: deque[_Segment] = deque()
        # An earlier agent's files are not ours to send: their numbers would be mistaken for our own.
        self._made = _highest(path)
        self._acknowledged = 0
        self._lock = Lock()
        self.dropped = 0

    def __len__(self) -> int:
        with self._lock:
            return len(self._memory) + len(self._segments)

    def push(self, entry: Entry) -> None:
        """Append the newest batch."""
        with self._lock:
            fits = self._memory_bytes + len(entry.data) <= self._limits[0]
            if not self._segments and (fits or not self._memory):
                self._remember(entry)
            else:
                self._store(entry)

    def first(self) -> Entry | None:
        """The oldest batch, which stays until it is acknowledged."""
        with self._lock:
            while not self._memory and self._segments:
                self._load(self._segments.popleft())
            return self._memory[0] if self._memory else None

    def acknowledge(self, seq: int) -> None:
        """Forget all batches up to `seq`."""
        with self._lock:
            self._acknowledged = max(self._acknowledged, seq)
            while self._memory and self._memory[0].seq <= self._acknowledged:
                self._memory_bytes -= len(self._memory.popleft().data)

    def refuse(self, seq: int) -> None:
        """The hub will never take this batch: forget it and count its rows."""
        with self._lock:
            if self._memory and self._memory[0].seq == seq:
                entry = self._memory.popleft()
                self._memory_bytes -= len(entry.data)
                self.dropped += entry.rows

    def _remember(self, entry: Entry) -> None:
        self._memory.append(entry)
        self._memory_bytes += len(entry.data)

    def _store(self, entry: Entry) -> None:
        if not self._segments or self._segments[-1].bytes >= self._limits[2]:
            self._made += 1
            self._segments.append(_Segment(self._path.with_name(f"{self._path.name}.{self._made:06d}")))
        segment = self._segments[-1]
        head = _FRAME.pack(entry.seq, entry.rows, len(entry.data), _crc(entry))
        try:
            with segment.path.open("ab") as file:
                file.write(head + entry.data)
        except OSError:
            self.dropped += entry.rows
            with contextlib.suppress(OSError):
                os.truncate(segment.path, segment.bytes)
            return
        segment.bytes += len(head) + len(entry.data)
        segment.rows += entry.rows
        while sum(each.bytes for each in self._segments) > self._limits[1]:
            self._drop(self._segments.popleft())

    def _drop(self, segment: _Segment) -> None:
        self.dropped += segment.rows
        with contextlib.suppress(OSError):
            segment.path.unlink()

    def _load(self, segment: _Segment) -> None:
        try:
            raw = segment.path.read_bytes()
            segment.path.unlink()
        except OSError:
            raw = b""
        read = at = 0
        while (entry := _entry(raw, at)) is not None:
            at += _FRAME.size + len(entry.data)
            read += entry.rows
            if entry.seq > self._acknowledged:
                self._remember(entry)
        self.dropped += max(0, segment.rows - read)


def _highest(path: Path) -> int:
    numbers = [each.name.rpartition(".")[2] for each in path.parent.glob(f"{path.name}.*")]
    return max((int(number) for number in numbers if number.isdigit()), default=0)


def _entry(raw: bytes, at: int) -> Entry | None:
    if at + _FRAME.size > len(raw):
        return None
    seq, rows, size, crc = _FRAME.unpack_from(raw, at)
    data = raw[at + _FRAME.size : at + _FRAME.size + size]
    entry = Entry(seq, rows, data)
    return entry if len(data) == size and _crc(entry) == crc else None


def _crc(entry: Entry) -> int:
    return zlib.crc32(b"%d %d " % (entry.seq, entry.rows) + entry.data)
