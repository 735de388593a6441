"""How a tape lies in its file: header, live area, slots. Writer and reader agree here and nowhere else.

| bytes | content |
| --- | --- |
| 0 … 8 | magic; written last, so a file that has it is complete |
| 8 … 104 | fixed fields of `Header` |
| 256 … 320 | live area: eight int64, written in place (indices below) |
| 512 … 4096 | JSON of the columns: `[[key, "ns" | "f64"], …]` |
| 4096 … | slots, a ring |

A slot is `seq, end_ns, one 8-byte field per column, seq`, all little-endian. `seq` is 2·step + 1 while
step is being written and 2·step + 2 once it is complete. The writer touches the first seq first and the
last one last; a reader that finds both complete and equal, before and after copying, has a whole record.
A step that may yet go on is staged in the slot after the newest one: complete, with both seq negative.
An "ns" column that could not be measured holds UNKNOWN_NS, an "f64" column NaN.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass

from monitor.schema import TAPE_METRICS

MAGIC = b"TVTAPE01"
VERSION = 1
HEADER_BYTES = 4096
LIVE_AT = 256
LIVE_BYTES = 64
COLUMNS_AT = 512
DEFAULT_SLOTS = 16_384
MAX_SLOTS = 1 << 20
MAX_COLUMNS = 256

# Indices into the live area.
LIVE_PHASE = 0  #: index into schema.PHASES; -1 before the first step
LIVE_SINCE_NS = 1  #: perf_counter_ns when that phase was entered
LIVE_STEPS = 2  #: steps completed
LIVE_END_NS = 3  #: perf_counter_ns at the newest step's end
LIVE_CLOSED = 4  #: CLOSED or GAVE_UP once nothing more will be written
LIVE_EPOCH = 5

CLOSED = 1  #: after a clean end
GAVE_UP = 2  #: something of ours broke; the training goes on, unseen

UNKNOWN_NS = -(1 << 63)  #: in an "ns" column: not measured

SEQ = struct.Struct("<q")

_FIXED = struct.Struct("<8sIIIIqqiiiIqq")
_CRC_AT = 8 + 4 * 4 + 2 * 8 + 3 * 4

Columns = tuple[tuple[str, str], ...]

#: What this version writes.
COLUMNS: Columns = tuple((metric.key, metric.tape or "") for metric in TAPE_METRICS)


class TapeError(ValueError):
    """The file is not a tape, or a damaged one. The message says what is wrong in one line."""


@dataclass(frozen=True)
class Header:
    """The fixed part of a tape.

    Attributes:
        slots: length of the ring, in steps.
        pid: the writer's process id.
        start_ticks: field 22 of its /proc/PID/stat, which tells it from a later process with the same
            id; 0 where there is no /proc.
        rank, local_rank, world_size: as torch.distributed counts them; 0, 0, 1 without.
        mono_ns, wall_ns: perf_counter_ns and unix time at creation, the same moment.
        columns: key and kind of each field of a slot.
    """

    slots: int
    pid: int
    start_ticks: int
    rank: int
    local_rank: int
    world_size: int
    mono_ns: int
    wall_ns: int
    columns: Columns = COLUMNS

    @property
    def slot(self) -> struct.Struct:
        """A whole slot."""
        return slot_struct(self.columns)

    @property
    def file_bytes(self) -> int:
        """Size of the whole file."""
        return HEADER_BYTES + self.slots * self.slot.size


def slot_struct(columns: Columns) -> struct.Struct:
    """The packing of one slot with these columns."""
    return struct.Struct("<qq" + "".join("q" if kind == "ns" else "d" for _, kind in columns) + "q")


def encode(header: Header) -> bytes:
    """The first HEADER_BYTES of a tape, with an empty live area."""
    columns = json.dumps(header.columns, separators=(",", ":")).encode()
    if len(columns) > HEADER_BYTES - COLUMNS_AT:
        raise TapeError(f"{len(header.columns)} columns do not fit into the header")
    raw = bytearray(HEADER_BYTES)
    _FIXED.pack_into(
        raw,
        0,
        MAGIC,
        VERSION,
        header.slot.size,
        header.slots,
        len(columns),
        header.pid,
        header.start_ticks,
        header.rank,
        header.local_rank,
        header.world_size,
        0,
        header.mono_ns,
        header.wall_ns,
    )
    raw[COLUMNS_AT : COLUMNS_AT + len(columns)] = columns
    struct.pack_into("<I", raw, _CRC_AT, _crc(raw))
    SEQ.pack_into(raw, LIVE_AT + 8 * LIVE_PHASE, -1)
    return bytes(raw)


def decode(raw: bytes) -> Header:
    """Read a header back.

    Raises:
        TapeError: too short, wrong magic or version, or fields that contradict each other.
    """
    if len(raw) < HEADER_BYTES or raw[:8] != MAGIC:
        raise TapeError("no tape, or one that is still being made")
    fields = _FIXED.unpack_from(raw)
    version, slot_bytes, slots, size = fields[1:5]
    if version != VERSION:
        raise TapeError(f"tape of version {version}, this program reads {VERSION}")
    if not (0 < slots <= MAX_SLOTS and size <= HEADER_BYTES - COLUMNS_AT):
        raise TapeError("damaged header: sizes out of range")
    pid, ticks, rank, local_rank, world_size, crc, mono_ns, wall_ns = fields[5:]
    if crc != _crc(raw):
        raise TapeError("damaged header: checksum")
    columns = _columns(raw[COLUMNS_AT : COLUMNS_AT + size])
    header = Header(slots, pid, ticks, rank, local_rank, world_size, mono_ns, wall_ns, columns)
    if header.slot.size != slot_bytes:
        raise TapeError("damaged header: columns and slot size disagree")
    if not (0 <= rank < world_size and local_rank >= 0 and pid > 0 and ticks >= 0 and mono_ns >= 0):
        raise TapeError("damaged header: rank, process or time out of range")
    return header


def _crc(raw: bytes | bytearray) -> int:
    """Checksum of the header without itself and without the live area."""
    return zlib.crc32(
        raw[COLUMNS_AT:HEADER_BYTES], zlib.crc32(raw[_CRC_AT + 4 : LIVE_AT], zlib.crc32(raw[:_CRC_AT]))
    )


def _columns(raw: bytes) -> Columns:
    try:
        parsed = json.loads(raw)
        columns = tuple((str(key), str(kind)) for key, kind in parsed)
    except (ValueError, TypeError, RecursionError):
        raise TapeError("damaged header: columns unreadable") from None
    keys = {key for key, _ in columns}
    if not (0 < len(columns) <= MAX_COLUMNS and len(keys) == len(columns)):
        raise TapeError("damaged header: columns doubled or missing")
    if any(kind not in ("ns", "f64") for _, kind in columns):
        raise TapeError("damaged header: unknown kind of column")
    return columns
