"""The training process's side of the tape: a ring in shared memory, and a journal of events.

Nothing here starts a thread or waits. A forked child (a DataLoader worker) inherits both and never
writes to either.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import mmap
import os
import struct
import time
import weakref
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from monitor.strict_json import dumps
from monitor.tape import layout

FRAME_MAGIC = b"\xa7\x56"
FRAME_HEAD = struct.Struct("<2sII")
#: Larger events are dropped and counted: a reader must be able to tell a length from damage.
MAX_EVENT_BYTES = 1 << 20

_NO_FALLOCATE = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS)
_MAP_FIXED = 0x10  # the same on Linux and macOS; the mmap module does not name it


class JournalFull(OSError):  # noqa: N818 - a state of the disk, not a mistake
    """The journal's disk takes no more. Raised once; what follows is dropped and counted."""


_open: weakref.WeakSet[TapeWriter | JournalWriter] = weakref.WeakSet()


def _sever_all() -> None:
    for each in list(_open):
        each._sever()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_sever_all)


class TapeWriter:
    """The ring of one rank.

    Args:
        path: the file to make; it must not exist.
        rank, world_size, local_rank: as torch.distributed counts them.
        slots: steps that the ring keeps.

    Attributes:
        append: `append(end_ns, values)`: one finished step. `end_ns` is perf_counter_ns at its end, an
            int; `values` has one entry per `schema.TAPE_METRICS` in that order, int for "ns" columns,
            float (NaN: not measured) for the others. Also counts the step in the live area. Raises
            struct.error for a wrong type or number of values and then has written no step.
        stage: as `append`, but the step may yet turn out to go on: it is kept in the place of the next step
            for a reader that finds the writer dead, and the next `append` takes that place.
        live: the live area as eight int64, see `monitor.tape.layout.LIVE_*`; written in place.

    After `close`, and in a forked child, both still work and reach nobody.

    Raises:
        OSError: no such folder, read-only, exists already, or no room for the whole file. All blocks
            are taken at once, so that a disk that fills up later never becomes a SIGBUS.
    """

    append: Callable[[int, Sequence[float]], None]
    stage: Callable[[int, Sequence[float]], None]
    live: memoryview[int]

    def __init__(
        self, path: str, *, rank: int, world_size: int, local_rank: int, slots: int = layout.DEFAULT_SLOTS
    ) -> None:
        header = layout.Header(
            slots,
            os.getpid(),
            _start_ticks(),
            rank,
            local_rank,
            world_size,
            time.perf_counter_ns(),
            time.time_ns(),
        )
        _remap()
        self._map = _create(path, header)
        view = memoryview(self._map)
        self._view = view
        self.live = view[layout.LIVE_AT : layout.LIVE_AT + layout.LIVE_BYTES].cast("q")
        self.append, self.stage = _appender(view, self.live, header)
        _open.add(self)

    def close(self) -> None:
        """Mark a clean end. The file stays for its reader."""
        self.live[layout.LIVE_CLOSED] = 1
        _open.discard(self)
        self._sever()

    def _sever(self) -> None:
        # Whoever still holds `append` or `live` must neither crash nor reach the file, and the hot path
        # must not pay for asking. So the pages behind the views are replaced by private ones.
        _replace_pages(self._view)


def _appender(
    view: memoryview, live: memoryview[int], header: layout.Header
) -> tuple[Callable[[int, Sequence[float]], None], Callable[[int, Sequence[float]], None]]:
    mark, pack, size = layout.SEQ.pack_into, header.slot.pack_into, header.slot.size
    first, end = layout.HEADER_BYTES, header.file_bytes
    steps_at, end_at = layout.LIVE_STEPS, layout.LIVE_END_NS
    at, seq, steps = first, 1, 0

    def append(end_ns: int, values: Sequence[float]) -> None:
        nonlocal at, seq, steps
        mark(view, at, seq)
        done = seq + 1
        pack(view, at, done, end_ns, *values, done)
        seq = done + 1
        at += size
        if at == end:
            at = first
        steps += 1
        live[steps_at] = steps
        live[end_at] = end_ns

    def stage(end_ns: int, values: Sequence[float]) -> None:
        mark(view, at, seq)
        pack(view, at, -seq - 1, end_ns, *values, -seq - 1)

    return append, stage


def _create(path: str, header: layout.Header) -> mmap.mmap:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        _allocate(fd, header.file_bytes)
        raw = layout.encode(header)
        os.pwrite(fd, raw[len(layout.MAGIC) :], len(layout.MAGIC))
        os.pwrite(fd, layout.MAGIC, 0)
        return mmap.mmap(fd, header.file_bytes)
    except BaseException:
        os.unlink(path)
        raise
    finally:
        os.close(fd)


def _allocate(fd: int, size: int) -> None:
    try:
        os.posix_fallocate(fd, 0, size)
        return
    except AttributeError:  # macOS
        pass
    except OSError as error:
        if error.errno not in _NO_FALLOCATE:
            raise
    zeros = bytes(1 << 16)
    for at in range(0, size, len(zeros)):
        part = zeros[: size - at]
        if os.pwrite(fd, part, at) != len(part):
            raise OSError(errno.ENOSPC, f"no room for {size} bytes")


@functools.cache
def _remap() -> Any:
    # Found once and before any fork: looking up a library takes the loader's lock, which another thread
    # of the parent may hold for ever in the child's copy.
    function = ctypes.CDLL(None, use_errno=True).mmap
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    return function


def _replace_pages(view: memoryview) -> None:
    address = ctypes.addressof(ctypes.c_char.from_buffer(view))
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED
    if _remap()(address, view.nbytes, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0) != address:
        raise OSError(ctypes.get_errno(), "the tape cannot be let go")


def _start_ticks() -> int:
    try:
        with open("/proc/self/stat", "rb") as file:
            # The name in the second field may hold spaces and brackets; fields are counted behind it.
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


class JournalWriter:
    """The append-only journal of one rank's events.

    A frame is magic, length, CRC-32 and JSON, written by a single `write`, so that a reader can tell a
    frame that is complete from one that is torn or damaged.

    Args:
        path: the file; made where it does not exist (0600).

    Attributes:
        dropped: events lost, because the disk is full or because they were larger than MAX_EVENT_BYTES.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(self, path: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(path, flags, 0o600)
        self._full = False
        self.dropped = 0
        _open.add(self)

    def append(self, event: Mapping[str, Any]) -> None:
        """Write one event; NaN and infinity become strings, unknown objects their text.

        Raises:
            JournalFull: the first time the disk takes no more.
        """
        if self._fd < 0:
            return
        text = dumps(event, marks=True).encode()
        if self._full or len(text) > MAX_EVENT_BYTES:
            self.dropped += 1
            return
        frame = FRAME_HEAD.pack(FRAME_MAGIC, len(text), zlib.crc32(text)) + text
        try:
            written = os.write(self._fd, frame) == len(frame)
        except OSError:
            written = False
        if not written:
            self.dropped += 1
            self._full = True
            raise JournalFull("the disk of the event journal takes no more; later events are dropped")

    def close(self) -> None:
        """Close the file. Later events go nowhere."""
        _open.discard(self)
        self._sever()

    def _sever(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
