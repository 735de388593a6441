"""What the hub has not stored is kept in order: in memory, on disk, and counted when neither takes it."""

from __future__ import annotations

import os
import resource
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.agent.backlog import Backlog, Entry


def entry(seq: int, size: int = 100) -> Entry:
    return Entry(seq, 10, bytes([seq % 256]) * size)


@pytest.fixture
def backlog(tmp_path: Path) -> Backlog:
    """Room for 3 batches of 100 bytes in memory, about 8 on disk, about 2 a file."""
    return Backlog(tmp_path / "b.spool", memory_bytes=300, disk_bytes=1000, segment_bytes=200)


def emptied(backlog: Backlog) -> list[int]:
    """Numbers in the order in which they come."""
    found = []
    while (first := backlog.first()) is not None:
        assert first == entry(first.seq)
        found.append(first.seq)
        backlog.acknowledge(first.seq)
    return found


def test_first_in_first_out_through_memory_and_disk(backlog: Backlog, tmp_path: Path) -> None:
    """What overflows to disk comes back behind what was in memory."""
    for seq in range(1, 9):
        backlog.push(entry(seq))
    assert len(list(tmp_path.iterdir())) > 1
    assert emptied(backlog) == list(range(1, 9))
    assert list(tmp_path.iterdir()) == []


def test_order_is_kept_while_the_disk_holds_some(backlog: Backlog) -> None:
    """A batch never overtakes one on disk, even when memory has room again."""
    for seq in range(1, 6):
        backlog.push(entry(seq))
    backlog.acknowledge(3)
    backlog.push(entry(6))
    assert emptied(backlog) == [4, 5, 6]


def test_the_first_stays_until_acknowledged(backlog: Backlog) -> None:
    """Asking twice gives the same batch: it is sent again after a reconnect."""
    backlog.push(entry(1))
    assert backlog.first() == backlog.first() == entry(1)


def test_a_welcome_may_acknowledge_much(backlog: Backlog) -> None:
    """What the hub has stored already is skipped, in memory and on disk."""
    for seq in range(1, 9):
        backlog.push(entry(seq))
    backlog.acknowledge(6)
    assert emptied(backlog) == [7, 8]


def test_the_oldest_on_disk_are_dropped_and_counted(backlog: Backlog) -> None:
    """Beyond both limits rows are lost, and their number is known."""
    for seq in range(1, 31):
        backlog.push(entry(seq))
    kept = emptied(backlog)
    assert kept[:3] == [1, 2, 3]
    assert kept[3:] == list(range(31 - len(kept[3:]), 31))
    assert backlog.dropped == 10 * (30 - len(kept))


def test_a_batch_larger_than_memory_is_kept_all_the_same(backlog: Backlog) -> None:
    """The limit bounds the queue, not a batch."""
    backlog.push(entry(1, 5000))
    assert backlog.first() == entry(1, 5000)


def test_a_refused_batch_is_counted(backlog: Backlog) -> None:
    """What the hub will never take is forgotten, its rows are lost."""
    backlog.push(entry(1))
    backlog.push(entry(2))
    backlog.refuse(1)
    assert (emptied(backlog), backlog.dropped) == ([2], 10)


def test_a_full_disk_costs_what_does_not_fit(backlog: Backlog) -> None:
    """Nothing raises; the torn end is cut off, and what fits later is kept."""
    for seq in (1, 2, 3):
        backlog.push(entry(seq))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (150, before[1]))
    try:
        backlog.push(entry(4))
        backlog.push(entry(5))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    backlog.push(entry(6))
    assert (emptied(backlog), backlog.dropped) == ([1, 2, 3, 4, 6], 10)


def test_a_folder_that_is_gone_costs_what_would_lie_there(backlog: Backlog, tmp_path: Path) -> None:
    """A spool that was deleted loses the disk part, counted, and no more."""
    for seq in range(1, 6):
        backlog.push(entry(seq))
    for path in tmp_path.iterdir():
        path.unlink()
    assert (emptied(backlog), backlog.dropped) == ([1, 2, 3], 20)


@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_damage_on_disk_is_never_sent(data: st.DataObject) -> None:
    """Flipped bits or a cut end lose batches, counted; none comes out changed."""
    with tempfile.TemporaryDirectory() as folder:
        backlog = Backlog(Path(folder) / "b.spool", memory_bytes=100, disk_bytes=100_000, segment_bytes=300)
        for seq in range(1, 8):
            backlog.push(entry(seq))
        for path in sorted(Path(folder).iterdir()):
            raw = bytearray(path.read_bytes())
            bit = data.draw(st.integers(0, len(raw) * 8 - 1))
            raw[bit // 8] ^= 1 << bit % 8
            path.write_bytes(raw[: data.draw(st.integers(0, len(raw)))])
        found = emptied(backlog)
    assert found == sorted(found)
    assert set(found) <= set(range(1, 8))


def test_an_earlier_agent_s_files_are_left_alone(backlog: Backlog, tmp_path: Path) -> None:
    """What another left unsent lies there untouched: its numbers are not ours."""
    for seq in range(1, 6):
        backlog.push(entry(seq))
    left = {path: path.read_bytes() for path in tmp_path.iterdir()}
    again = Backlog(tmp_path / "b.spool", memory_bytes=100, segment_bytes=200)
    for seq in range(1, 6):
        again.push(entry(seq))
    assert emptied(again) == [1, 2, 3, 4, 5]
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == left


def test_one_pushes_while_another_takes(tmp_path: Path) -> None:
    """Two threads, tight limits: every batch once and in order."""
    backlog = Backlog(tmp_path / "b.spool", memory_bytes=300, disk_bytes=10**9, segment_bytes=500)
    pusher = threading.Thread(target=lambda: [backlog.push(entry(seq)) for seq in range(1, 501)])
    pusher.start()
    found: list[int] = []
    while len(found) < 500:
        found += emptied(backlog)
    pusher.join()
    assert (found, backlog.dropped) == (list(range(1, 501)), 0)
    assert os.listdir(tmp_path) == []
