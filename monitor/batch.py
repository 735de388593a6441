"""Batch: what an agent hands to its sink, and its one encoding as bytes.

The bytes are a four-byte little-endian header length, a UTF-8 JSON header, then the columns one
after another: `t_s` as float64, every metric as float32, all little-endian. Nothing in it is
executable, and `from_bytes` refuses whatever does not add up.
"""

from __future__ import annotations

import json
import math
import re
import struct
import sys
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol, TypeGuard

from monitor import strict_json

#: A batch larger than this is refused (the agent makes batches of at most MAX_ROWS rows).
MAX_BYTES = 8 * 1024 * 1024
MAX_ROWS = 20_000
MAX_EVENTS = 2_000
MAX_BLOCKS = 2_048
MAX_COLUMNS = 256

_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")
_STREAM = re.compile(r"(run|(rank|proc|host|gpu|cuda|brief|user)(/[A-Za-z0-9._-]{1,128}){1,2})\Z")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]{0,63}\Z")


class BatchError(ValueError):
    """The bytes are not a batch. The message says what is wrong in one line."""


@dataclass(frozen=True)
class Block:
    """Consecutive rows of one stream.

    Attributes:
        stream: see `monitor.schema`.
        first: row number of the first row (for `rank/R` the step number).
        t_s: float64, shape [rows]: seconds since the run began, never falling.
        columns: key -> float32, shape [rows]. NaN where a value was not measured.
    """

    stream: str
    first: int
    t_s: array[float]
    columns: Mapping[str, array[float]]

    def __len__(self) -> int:
        return len(self.t_s)


@dataclass(frozen=True)
class Batch:
    """What one agent saw since its last batch.

    Attributes:
        run: the run's id.
        host: name of the agent's host.
        seq: 1, 2, 3 … per run and host; a sink that has seen a number ignores it the second time.
        sent_s: the agent's clock in seconds since the run began, when the batch was closed.
        blocks: rows.
        events: JSON objects with at least `kind` (str) and `t_s` (float); those that came from a
            rank carry `rank` (int). Kinds are listed in docs/architecture.md.
    """

    run: str
    host: str
    seq: int
    sent_s: float
    blocks: tuple[Block, ...] = ()
    events: tuple[dict[str, Any], ...] = field(default=())


class Sink(Protocol):
    """Whoever takes batches: the uplink to a hub, or the pipeline itself."""

    def take(self, batch: Batch) -> None:
        """Take one batch. May block for a moment; raises only on a programmer's mistake."""


def to_bytes(batch: Batch) -> bytes:
    """Encode. NaN and infinity in events are written as strings, since JSON has neither."""
    header = {
        "run": batch.run,
        "host": batch.host,
        "seq": batch.seq,
        "sent_s": batch.sent_s,
        "blocks": [[b.stream, b.first, len(b), list(b.columns)] for b in batch.blocks],
        "events": list(batch.events),
    }
    head = strict_json.dumps(header, marks=True).encode()
    parts = [struct.pack("<I", len(head)), head]
    for block in batch.blocks:
        parts.append(block.t_s.tobytes())
        parts.extend(column.tobytes() for column in block.columns.values())
    return b"".join(parts)


def from_bytes(data: bytes) -> Batch:
    """Decode.

    Raises:
        BatchError: truncated, oversized, or not what `to_bytes` writes.
    """
    if len(data) > MAX_BYTES:
        raise BatchError(f"batch of {len(data)} bytes, at most {MAX_BYTES} are taken")
    if len(data) < 4:
        raise BatchError("batch shorter than its header length")
    size = struct.unpack_from("<I", data)[0]
    if 4 + size > len(data):
        raise BatchError("batch shorter than its header")
    try:
        header = json.loads(data[4 : 4 + size], parse_constant=_no_constant, parse_float=_float)
    except (ValueError, RecursionError) as error:
        raise BatchError(f"batch header is no JSON: {error}") from None
    return _assemble(header, memoryview(data)[4 + size :])


def _assemble(header: Any, payload: memoryview) -> Batch:
    if not isinstance(header, dict):
        raise BatchError("batch header is no object")
    run, host, seq = header.get("run"), header.get("host"), header.get("seq")
    sent_s, events, heads = header.get("sent_s"), header.get("events"), header.get("blocks")
    if not (isinstance(run, str) and _RUN.match(run) and isinstance(host, str) and _RUN.match(host)):
        raise BatchError("run and host are names of letters, digits, '.', '_' and '-'")
    if not (_is_int(seq) and seq >= 1 and _finite(sent_s)):
        raise BatchError("seq is a whole number from 1, sent_s a number")
    if not (isinstance(events, list) and len(events) <= MAX_EVENTS and all(map(_is_event, events))):
        raise BatchError(f"events are at most {MAX_EVENTS} objects with kind and t_s")
    if not (isinstance(heads, list) and len(heads) <= MAX_BLOCKS):
        raise BatchError(f"blocks are a list of at most {MAX_BLOCKS}")
    blocks, at = [], 0
    for head in heads:
        block, at = _block(head, payload, at)
        blocks.append(block)
    if at != len(payload):
        raise BatchError("batch is longer than its header says")
    return Batch(run, host, seq, float(sent_s), tuple(blocks), tuple(events))


def _block(head: Any, payload: memoryview, at: int) -> tuple[Block, int]:
    if not (isinstance(head, list) and len(head) == 4):
        raise BatchError("a block head is [stream, first, rows, keys]")
    stream, first, rows, keys = head
    if not (isinstance(stream, str) and _STREAM.match(stream)):
        raise BatchError("unknown kind of stream")
    if not (_is_int(first) and _is_int(rows) and 0 <= first < 2**53 and 0 < rows <= MAX_ROWS):
        raise BatchError(f"first is at least 0, rows from 1 to {MAX_ROWS}")
    if not (isinstance(keys, list) and len(keys) <= MAX_COLUMNS and all(map(_is_key, keys))):
        raise BatchError("bad column names")
    if len(set(keys)) != len(keys):
        raise BatchError("a column name twice")
    end = at + 8 * rows + 4 * rows * len(keys)
    if end > len(payload):
        raise BatchError("batch shorter than its columns")
    t_s = array("d", payload[at : at + 8 * rows].tobytes())
    if not all(map(math.isfinite, t_s)):
        raise BatchError("t_s is not finite")
    columns, at = {}, at + 8 * rows
    for key in keys:
        columns[key] = array("f", payload[at : at + 4 * rows].tobytes())
        at += 4 * rows
    return Block(stream, first, t_s, columns), end


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _float(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_constant(text)


def _is_int(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _finite(value: Any) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    # JSON's whole numbers know no bound, a float does.
    return -sys.float_info.max <= value <= sys.float_info.max


def _is_key(key: Any) -> bool:
    return isinstance(key, str) and _KEY.match(key) is not None


def _is_event(event: Any) -> bool:
    return isinstance(event, dict) and isinstance(event.get("kind"), str) and _finite(event.get("t_s"))
