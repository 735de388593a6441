"""The header says the same to its reader as to its writer, or nothing."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.schema import TAPE_METRICS
from monitor.tape import layout
from monitor.tape.layout import Header, TapeError, decode, encode

HEADER = Header(
    slots=16,
    pid=4711,
    start_ticks=99,
    rank=1,
    local_rank=1,
    world_size=2,
    mono_ns=123_456_789,
    wall_ns=1_700_000_000_000_000_000,
)


def test_round_trip() -> None:
    """What is encoded comes back, column by column."""
    assert decode(encode(HEADER)) == HEADER


def test_columns_are_the_schema_s() -> None:
    """A slot has exactly the metrics that the schema sends through the tape, in its order."""
    assert [key for key, _ in layout.COLUMNS] == [metric.key for metric in TAPE_METRICS]


def test_the_live_area_is_aligned_and_starts_before_the_first_phase() -> None:
    """Eight aligned int64, so that no store is ever seen half done; phase -1 means none yet."""
    live = memoryview(encode(HEADER))[layout.LIVE_AT : layout.LIVE_AT + layout.LIVE_BYTES].cast("q")
    assert layout.LIVE_AT % 8 == 0
    assert list(live) == [-1, 0, 0, 0, 0, 0, 0, 0]


def test_slots_are_aligned() -> None:
    """Every field of every slot is an aligned eight bytes."""
    assert layout.HEADER_BYTES % 8 == 0
    assert HEADER.slot.size == 8 * (len(layout.COLUMNS) + 3)


def test_a_file_without_magic_is_still_being_made() -> None:
    """The magic is written last: without it nothing else is believed."""
    with pytest.raises(TapeError, match="still being made"):
        decode(bytes(8) + encode(HEADER)[8:])


def test_another_version_is_named() -> None:
    """A tape of a later version is refused with both versions in the message."""
    raw = bytearray(encode(HEADER))
    raw[8] = 9
    with pytest.raises(TapeError, match="version 9, this program reads 1"):
        decode(bytes(raw))


@pytest.mark.parametrize(
    "wrong",
    [
        {"rank": 2},
        {"rank": -1},
        {"pid": 0},
        {"slots": layout.MAX_SLOTS + 1},
        {"columns": ()},
        {"columns": (("a", "ns"), ("a", "ns"))},
        {"columns": (("a", "text"),)},
    ],
)
def test_contradictions_are_refused(wrong: dict[str, object]) -> None:
    """Fields that cannot be true together are an error, also when the checksum fits."""
    with pytest.raises(TapeError):
        decode(encode(replace(HEADER, **wrong)))  # type: ignore[arg-type]


def test_too_many_columns_are_refused_at_writing() -> None:
    """Columns that do not fit into the header are the writer's mistake, and named."""
    many = tuple((f"column_with_a_long_name_{i}", "f64") for i in range(200))
    with pytest.raises(TapeError, match="200 columns"):
        encode(replace(HEADER, columns=many))


@given(st.binary(max_size=layout.HEADER_BYTES + 64))
def test_garbage_is_no_header(raw: bytes) -> None:
    """Arbitrary bytes give TapeError and nothing else."""
    with pytest.raises(TapeError):
        decode(raw)


@given(st.integers(0, layout.HEADER_BYTES * 8 - 1))
def test_a_flipped_bit_is_noticed_or_harmless(bit: int) -> None:
    """One flipped bit anywhere in the header gives TapeError or leaves what was read as it was."""
    raw = bytearray(encode(HEADER))
    raw[bit // 8] ^= 1 << bit % 8
    with contextlib.suppress(TapeError):
        assert decode(bytes(raw)) == HEADER
