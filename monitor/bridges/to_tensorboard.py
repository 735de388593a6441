"""TensorBoard: event files that it reads, written without any library of it.

A file is a sequence of records, each `length (uint64), masked CRC of it, data, masked CRC of it`, and each
record a protocol buffer `Event`. Sources: tensorflow/core/lib/io/record_writer.h and
tensorflow/core/util/event.proto; the checksum is CRC-32C (RFC 3720, appendix B.4).
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from monitor.bridges.words import told

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
#: DT_STRING of tensorflow/core/framework/types.proto.
_STRING = 7


class TensorBoard:
    """One event file in `folder`.

    Args:
        folder: the log folder; made where it is absent.

    Raises:
        OSError: the file cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}.torchvitals"
        self._file = (folder / name).open("xb")
        self._write(_event(time.time(), 0, _field(3, _BYTES, b"brain.Event:2")))

    def row(self, step: int, unix_s: float, values: Mapping[str, float]) -> None:
        """Each value is a scalar `torchvitals/NAME`."""
        parts = [
            _field(1, _BYTES, _field(1, _BYTES, f"torchvitals/{name}".encode()) + _field(2, _FIXED32, value))
            for name, value in values.items()
        ]
        self._write(_event(unix_s, step, _field(5, _BYTES, b"".join(parts))))

    def finding(self, finding: Mapping[str, Any], step: int, unix_s: float) -> None:
        """A text `torchvitals/findings/CODE`."""
        self._text(f"torchvitals/findings/{finding['code']}", told(finding), step, unix_s)

    def close(self, found: Mapping[str, Any]) -> None:
        """The verdict as a text, then the end of the file."""
        verdict = (found.get("verdict") or {}).get("text")
        if verdict:
            self._text("torchvitals/verdict", str(verdict), int(found["steps"]), time.time())
        self._file.close()

    def _text(self, tag: str, text: str, step: int, unix_s: float) -> None:
        tensor = b"".join(
            [
                _field(1, _VARINT, _STRING),
                _field(2, _BYTES, _field(2, _BYTES, _field(1, _VARINT, 1))),
                _field(8, _BYTES, text.encode("utf-8", "replace")),
            ]
        )
        plugin = _field(1, _BYTES, _field(1, _BYTES, b"text"))
        value = _field(1, _BYTES, tag.encode()) + _field(8, _BYTES, tensor) + _field(9, _BYTES, plugin)
        self._write(_event(unix_s, step, _field(5, _BYTES, _field(1, _BYTES, value))))

    def _write(self, event: bytes) -> None:
        """Whole records only reach the disk, so a reader that follows sees each at once."""
        length = struct.pack("<Q", len(event))
        self._file.write(length + _masked(length) + event + _masked(event))
        self._file.flush()


def _event(unix_s: float, step: int, what: bytes) -> bytes:
    return _field(1, _FIXED64, unix_s) + _field(2, _VARINT, step) + what


def _field(number: int, kind: int, value: Any) -> bytes:
    """One field of a protocol buffer."""
    head = _varint(number << 3 | kind)
    if kind == _VARINT:
        return head + _varint(value)
    if kind == _BYTES:
        return head + _varint(len(value)) + bytes(value)
    return head + struct.pack("<d" if kind == _FIXED64 else "<f", value)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_CRC = _table()


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli) of `data`."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
