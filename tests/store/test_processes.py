"""Several threads and processes at one store, and one that dies in the middle."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
from array import array
from pathlib import Path

import pytest

from monitor.batch import Batch, Block
from monitor.store import Store, StoreError

WRITER = """
import sys
from array import array
from monitor.batch import Batch, Block
from monitor.store import Store
store, seq = Store(sys.argv[1], create=True), 0
while True:
    first = seq * 300
    t_s = array("d", [float(first + i) for i in range(300)])
    seq += 1
    block = Block("rank/0", first, t_s, {"loss": array("f", [float(seq)] * 300)})
    event = {"kind": "save", "t_s": 1.0, "seq": seq}
    store.append(Batch("r", "h", seq, 1.0, (block,), (event,)), meta={"seq": seq})
    if seq == int(sys.argv[2]):
        print("far enough", flush=True)
"""


def rows(first: int, count: int) -> Block:
    t_s = array("d", [float(first + i) for i in range(count)])
    return Block("rank/0", first, t_s, {"loss": array("f", [1.0] * count)})


def test_writer_killed(tmp_path: Path) -> None:
    """kill -9 in the middle of writing: what is there are whole batches, up to the last one acknowledged."""
    command = [sys.executable, "-c", WRITER, str(tmp_path / "s"), "20"]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "far enough\n"
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    with Store(tmp_path / "s") as store:
        seq = store.last_seq("h")
        assert seq >= 20
        assert store.streams() == {"rank/0": 300 * seq}
        assert store.meta() == {"seq": seq}
        assert [event["seq"] for event in store.events(limit=10**6)] == list(range(1, seq + 1))
        assert store.totals("rank/0", ["loss"])["loss"][:2] == (300 * seq * (seq + 1) / 2, 300 * seq)


def test_next_writer(tmp_path: Path) -> None:
    """Whoever comes after a writer that was killed goes on where that one was."""
    test_writer_killed(tmp_path)
    with Store(tmp_path / "s", create=True) as store:
        seq, count = store.last_seq("h"), store.streams()["rank/0"]
        assert not store.append(Batch("r", "h", seq, 1.0, (rows(0, 10),)))
        assert store.append(Batch("r", "h", seq + 1, 1.0, (rows(count, 777),)))
        assert store.rows("rank/0", [], 0, 10**9)["row"].tolist() == list(range(count + 777))


def test_threads_share_a_store(tmp_path: Path) -> None:
    """One store, a thread that writes and some that read: every read is of whole batches."""
    wrong: list[str] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            count = store.totals("rank/0", ["loss"])["loss"][1]
            if count % 130:
                wrong.append(f"{count} rows seen")

    with Store(tmp_path / "s", create=True) as store:
        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        for seq in range(1, 41):
            store.append(Batch("r", "h", seq, 1.0, (rows((seq - 1) * 130, 130),)))
        done.set()
        for reader in readers:
            reader.join()
        assert store.streams() == {"rank/0": 40 * 130}
    assert wrong == []


def test_two_writers(tmp_path: Path) -> None:
    """Two that write the same batches, turn by turn, store each of them once."""
    batches = [Batch("r", "h", seq, 1.0, (rows((seq - 1) * 130, 130),)) for seq in range(1, 21)]
    with Store(tmp_path / "s", create=True) as one, Store(tmp_path / "s", create=True) as other:
        for batch in batches:
            assert one.append(batch) is True
            assert other.append(batch) is False
        assert other.streams() == {"rank/0": 2600}


def test_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that somebody never lets go of is one clear line, after a while."""
    monkeypatch.setattr("monitor.store.database.BUSY_S", 0.05)
    with Store(tmp_path / "s", create=True) as store:
        other = sqlite3.connect(tmp_path / "s", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another process keeps it locked"):
            store.append(Batch("r", "h", 1, 1.0, (rows(0, 10),)))
        other.execute("ROLLBACK")
        other.close()
        assert store.append(Batch("r", "h", 1, 1.0, (rows(0, 10),)))
