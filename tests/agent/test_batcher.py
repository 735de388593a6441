"""Batches: in order, within the limits, nothing lost between two of them."""

from __future__ import annotations

import math
from array import array

from monitor.agent import batcher
from monitor.agent.batcher import Batcher
from monitor.batch import Block, from_bytes, to_bytes


def block(first: int, rows: int) -> Block:
    return Block("rank/0", first, array("d", range(rows)), {"loss": array("f", [0.5] * rows)})


def made() -> Batcher:
    return Batcher("run-1", "here")


def test_nothing_gives_no_batch() -> None:
    """An empty batch is not made, and takes no number."""
    gathering = made()
    assert gathering.close(1.0) == []
    assert not gathering


def test_batches_are_numbered_from_one() -> None:
    """Each has the next number."""
    gathering = made()
    numbers = []
    for _ in range(3):
        gathering.event({"kind": "epoch", "t_s": 0.0})
        numbers += [batch.seq for batch in gathering.close(1.0)]
    assert numbers == [1, 2, 3]


def test_what_was_closed_is_gone() -> None:
    """Nothing comes twice."""
    gathering = made()
    gathering.block(block(0, 3))
    gathering.sample("host/here", 1.0, {"cpu_used": 1.0})
    assert len(gathering.close(1.0)) == 1
    assert gathering.close(1.0) == []


def test_samples_become_numbered_rows() -> None:
    """Rows of one stream are one block, and go on numbering in the next batch."""
    gathering = made()
    for t_s in (1.0, 2.0):
        gathering.sample("host/here", t_s, {"cpu_used": t_s})
    (first,) = gathering.close(2.0)
    gathering.sample("host/here", 3.0, {"cpu_used": 3.0})
    (second,) = gathering.close(3.0)
    assert [(b.first, b.t_s.tolist()) for b in (*first.blocks, *second.blocks)] == [
        (0, [1.0, 2.0]),
        (2, [3.0]),
    ]


def test_a_key_that_one_row_lacks_is_nan_there() -> None:
    """Rows need not have the same keys."""
    gathering = made()
    gathering.sample("host/here", 1.0, {"a": 1.0})
    gathering.sample("host/here", 2.0, {"b": 2.0})
    (rows,) = gathering.close(2.0)[0].blocks
    assert math.isnan(rows.columns["a"][1])
    assert math.isnan(rows.columns["b"][0])


def test_many_rows_are_cut() -> None:
    """No batch is larger than its limit, and all rows are there in order."""
    gathering = made()
    for first in range(0, 50_000, 4000):
        gathering.block(block(first, 4000))
    batches = gathering.close(1.0)
    assert all(sum(map(len, b.blocks)) <= batcher.ROWS_A_BATCH for b in batches)
    assert [part.first for b in batches for part in b.blocks] == list(range(0, 50_000, 4000))


def test_many_events_are_cut() -> None:
    """By number and by size; in order; and what comes out passes the wire."""
    gathering = made()
    for number in range(2500):
        gathering.event(
            {"kind": "log", "t_s": 0.0, "n": number, "text": "ü" * (400_000 if number < 5 else 10)}
        )
    batches = gathering.close(1.0)
    assert [event["n"] for b in batches for event in b.events] == list(range(2500))
    assert all(from_bytes(to_bytes(batch)) == batch for batch in batches)


def test_it_says_when_a_batch_is_due() -> None:
    """`full` is for whoever reads a long backlog."""
    gathering = made()
    gathering.block(block(0, batcher.ROWS_A_BATCH - 1))
    before = gathering.full
    gathering.block(block(0, 1))
    assert (before, gathering.full) == (False, True)


def test_numbers_of_the_users_own_become_a_stream() -> None:
    """A rank's `log` events are rows of `user/RANK`, under names that a column may have; not events."""
    gathering = made()
    gathering.event(
        {"kind": "log", "rank": 3, "t_s": 1.0, "values": {"eval/loss": 0.5, "2 lr": "NaN", "x": "?"}}
    )
    gathering.event({"kind": "log", "rank": 3, "t_s": 2.0, "values": {"eval/loss": 0.25}})
    (batch,) = gathering.close(2.0)
    (rows,) = from_bytes(to_bytes(batch)).blocks
    assert batch.events == ()
    assert (rows.stream, rows.first, list(rows.t_s)) == ("user/3", 0, [1.0, 2.0])
    assert list(rows.columns) == ["eval/loss", "__lr"]
    assert list(rows.columns["eval/loss"]) == [0.5, 0.25]
    assert all(math.isnan(value) for value in rows.columns["__lr"])


def test_what_a_rank_tells_of_its_device_becomes_rows() -> None:
    """A `cuda` event is a row of the rank's stream, and no event."""
    gathering = made()
    gathering.event({"kind": "cuda", "t_s": 2.0, "rank": 3, "values": {"cuda_steps": 7, "cuda_ooms": "x"}})
    (batch,) = gathering.close(2.0)
    (rows,) = batch.blocks
    assert (rows.stream, rows.t_s.tolist(), batch.events) == ("cuda/3", [2.0], ())
    assert {key: column.tolist() for key, column in rows.columns.items()} == {"cuda_steps": [7.0]}
    assert from_bytes(to_bytes(batch)) == batch
