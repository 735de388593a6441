"""A batch comes out as it went in, and whatever else is put in comes out as a BatchError."""

from __future__ import annotations

import json
import math
import struct
from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.batch import (
    MAX_BYTES,
    MAX_EVENTS,
    MAX_ROWS,
    Batch,
    BatchError,
    Block,
    from_bytes,
    to_bytes,
)

words = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
keys = st.from_regex(r"[a-z_][a-z0-9_./-]{0,20}", fullmatch=True)
streams = st.one_of(
    st.just("run"), st.builds("{}/{}".format, st.sampled_from(["rank", "gpu", "user"]), words)
)
finite = st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**60), 2**60), finite, st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
events = st.builds(
    lambda fields, kind, t_s: {**fields, "kind": kind, "t_s": t_s},
    st.dictionaries(st.text(max_size=5), plain, max_size=3),
    st.text(max_size=10),
    finite,
)


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    rows = draw(st.integers(1, 5))
    t_s = array("d", draw(st.lists(finite, min_size=rows, max_size=rows)))
    values = st.lists(st.floats(width=32), min_size=rows, max_size=rows)
    columns = {key: array("f", draw(values)) for key in draw(st.sets(keys, max_size=3))}
    return Block(draw(streams), draw(st.integers(0, 2**53 - 1)), t_s, columns)


batches = st.builds(
    Batch,
    words,
    words,
    st.integers(1, 2**53),
    finite,
    st.lists(blocks(), max_size=3).map(tuple),
    st.lists(events, max_size=3).map(tuple),
)

SMALL = Batch(
    "20261130-train-1f3a",
    "host-1",
    7,
    12.5,
    (Block("rank/0", 40, array("d", [1.0, 2.0]), {"data_ms": array("f", [0.5, math.nan])}),),
    ({"kind": "epoch", "t_s": 1.5, "epoch": 2},),
)
RAW = to_bytes(SMALL)


def bits(batch: Batch) -> Any:
    """A batch as plain data in which NaN equals NaN."""
    told = [
        (b.stream, b.first, b.t_s.tobytes(), {k: c.tobytes() for k, c in b.columns.items()})
        for b in batch.blocks
    ]
    return batch.run, batch.host, batch.seq, batch.sent_s, told, batch.events


@given(batches)
def test_round_trip(batch: Batch) -> None:
    """To the last bit, NaN and infinity in columns included."""
    assert bits(from_bytes(to_bytes(batch))) == bits(batch)


@given(st.integers(0, len(RAW) - 1))
def test_truncated(size: int) -> None:
    """Any piece that is not the whole is refused."""
    with pytest.raises(BatchError):
        from_bytes(RAW[:size])


@given(st.binary(min_size=1, max_size=40))
def test_longer_than_it_says(more: bytes) -> None:
    """Bytes behind the last column are refused."""
    with pytest.raises(BatchError):
        from_bytes(RAW + more)


@given(st.integers(0, 8 * len(RAW) - 1))
@settings(max_examples=400)
def test_a_flipped_bit(bit: int) -> None:
    """One flipped bit gives a BatchError or a batch of the same form; nothing else happens."""
    damaged = bytearray(RAW)
    damaged[bit // 8] ^= 1 << (bit % 8)
    try:
        found = from_bytes(bytes(damaged))
    except BatchError:
        return
    assert [len(block) for block in found.blocks] == [2]


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    """Noise is refused."""
    with pytest.raises(BatchError):
        from_bytes(data)


def framed(header: Any, payload: bytes = b"") -> bytes:
    head = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<I", len(head)) + head + payload


GOOD: dict[str, Any] = {"run": "r", "host": "h", "seq": 1, "sent_s": 0.0, "blocks": [], "events": []}
EVENT = {"kind": "x", "t_s": 0}

#: What a hostile sender may put in the place of a field.
HOSTILE: dict[str, Any] = {
    "run that leaves its folder": {"run": "../../etc"},
    "run that is hidden": {"run": ".x"},
    "run with an end of line": {"run": "r\n"},
    "run of no letters": {"run": ""},
    "run that is a number": {"run": 7},
    "long host": {"host": "h" * 200},
    "seq from nought": {"seq": 0},
    "seq that is a truth": {"seq": True},
    "seq that is a float": {"seq": 1.0},
    "time that is text": {"sent_s": "now"},
    "time beyond all floats": {"sent_s": 10**400},
    "events that are no list": {"events": {}},
    "event that is no object": {"events": [1]},
    "event without a kind": {"events": [{"t_s": 0}]},
    "event without a time": {"events": [{"kind": "x"}]},
    "event's time beyond all floats": {"events": [{"kind": "x", "t_s": 10**400}]},
    "too many events": {"events": [EVENT] * (MAX_EVENTS + 1)},
    "blocks that are no list": {"blocks": 3},
    "block that is no list": {"blocks": [{}]},
    "block too short": {"blocks": [["rank/0", 0, 1]]},
    "unknown stream": {"blocks": [["secret/0", 0, 1, []]]},
    "stream that leaves its folder": {"blocks": [["rank/../..", 0, 1, []]]},
    "no rows": {"blocks": [["rank/0", 0, 0, []]]},
    "too many rows": {"blocks": [["rank/0", 0, MAX_ROWS + 1, []]]},
    "rows that are a truth": {"blocks": [["rank/0", 0, True, []]]},
    "negative first": {"blocks": [["rank/0", -1, 1, []]]},
    "first beyond what a float holds": {"blocks": [["rank/0", 2**53, 1, []]]},
    "a key that is SQL": {"blocks": [["rank/0", 0, 1, ["x; DROP TABLE runs"]]]},
    "a key twice": {"blocks": [["rank/0", 0, 1, ["a", "a"]]]},
    "keys that are no list": {"blocks": [["rank/0", 0, 1, "abc"]]},
    "columns that are not there": {"blocks": [["rank/0", 0, 5, ["a"]]]},
}


def test_the_good_one_is_taken() -> None:
    """What the hostile ones are made from is a batch."""
    assert from_bytes(framed(GOOD)).run == "r"


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile(kind: str) -> None:
    """Refused, in one line."""
    with pytest.raises(BatchError) as refused:
        from_bytes(framed({**GOOD, **HOSTILE[kind]}))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "header",
    [
        b"[]", b"null", b"{", b"\xff\xfe", b"[" * 100_000, b'{"run": NaN}', b"9" * 5_000,
        json.dumps(GOOD).replace("0.0", "NaN").encode(),
        json.dumps(GOOD).replace("0.0", "1e999").encode(),
        json.dumps({**GOOD, "events": [{**EVENT, "v": 0.5}]}).replace("0.5", "1e999").encode(),
        json.dumps({**GOOD, "events": [{**EVENT, "v": 0.5}]}).replace("0.5", "-Infinity").encode(),
    ],
    ids=range(11),
)  # fmt: skip
def test_headers_that_are_no_json_of_ours(header: bytes) -> None:
    """Not an object, too deep, or with numbers that JSON has not: a browser would choke on them later."""
    with pytest.raises(BatchError):
        from_bytes(framed(header))


def test_times_must_be_numbers() -> None:
    """A row without a time has no place on any axis."""
    header = {**GOOD, "blocks": [["rank/0", 0, 1, []]]}
    with pytest.raises(BatchError):
        from_bytes(framed(header, struct.pack("<d", math.nan)))


def test_oversized() -> None:
    """Refused by its size, before it is looked into."""
    with pytest.raises(BatchError, match="at most"):
        from_bytes(bytes(MAX_BYTES + 1))
