"""The file: who may read it, and what is said of one that is damaged, foreign or locked."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
import tempfile
from array import array
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitor.batch import Batch, Block
from monitor.store import Store, StoreError

#: Where in a file, 0 its beginning and 1 its end.
PLACES = st.floats(0, 1, exclude_max=True)


def fill(store: Store, batches: int = 4, rows: int = 777) -> None:
    """Some chunks, a tail, an event, a fact."""
    for seq in range(1, batches + 1):
        first = (seq - 1) * rows
        t_s = array("d", np.arange(first, first + rows) * 0.1)
        block = Block("rank/0", first, t_s, {"loss": array("f", [float(seq)] * rows)})
        events = (
            {"kind": "save", "t_s": 1.0},
            {"kind": "fact", "t_s": 1.0, "name": "env", "value": {"a": 1}},
        )
        store.append(Batch("r", "h", seq, 1.0, (block,), events), meta={"name": "r"})


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound store that nobody has open."""
    path = tmp_path_factory.mktemp("good") / "s"
    with Store(path, create=True) as store:
        fill(store)
    return path


def read_everything(path: Path) -> None:
    """Every read there is; the store is rewritten from a reader's point of view."""
    with Store(path) as store:
        store.meta(), store.facts(), store.events(), store.findings(), store.hosts(), store.streams()
        store.rows("rank/0", ["loss"], 0, 10**6), store.series("rank/0", ["loss"], None, None, 5)
        store.totals("rank/0", ["loss"]), store.quantiles("rank/0", "loss", [0.5])


def complaint(path: Path) -> str:
    """What the store says of a file, "" where it reads it."""
    try:
        read_everything(path)
    except StoreError as error:
        return str(error)
    return ""


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PLACES)
def test_truncated(good: Path, tmp_path: Path, place: float) -> None:
    """A file cut short gives one clear line or what is left of it, never anything else."""
    path = tmp_path / "s"
    data = good.read_bytes()
    path.write_bytes(data[: int(place * len(data))])
    assert "\n" not in complaint(path)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(PLACES, st.integers(0, 7)), min_size=1, max_size=40))
def test_bits_flipped(good: Path, tmp_path: Path, flips: list[tuple[float, int]]) -> None:
    """Damage anywhere in the file is read past or said in one line."""
    path, bad = tmp_path / "s", bytearray(good.read_bytes())
    for place, bit in flips:
        bad[int(place * len(bad))] ^= 1 << bit
    path.write_bytes(bad)
    assert "\n" not in complaint(path)


def test_half_a_file(good: Path, tmp_path: Path) -> None:
    """Half of a store is never taken for a whole one."""
    data = good.read_bytes()
    (tmp_path / "s").write_bytes(data[: len(data) // 2])
    assert "damaged" in complaint(tmp_path / "s")


@pytest.mark.parametrize("create", [True, False])
def test_foreign(tmp_path: Path, create: bool) -> None:
    """Somebody else's database, and any other file, is refused and left as it is."""
    (tmp_path / "text").write_text("no database at all, but long enough to be read as one " * 4)
    other = sqlite3.connect(tmp_path / "theirs")
    other.execute("CREATE TABLE theirs (a)")
    other.close()
    for name in ("text", "theirs"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(StoreError, match="not a torchvitals run store"):
            Store(tmp_path / name, create=create)
        assert (tmp_path / name).read_bytes() == before


def test_newer(tmp_path: Path) -> None:
    """A store of a later format asks for an upgrade."""
    path = tmp_path / "s"
    Store(path, create=True).close()
    later = sqlite3.connect(path)
    later.execute("PRAGMA user_version = 99")
    later.close()
    with pytest.raises(StoreError, match="newer torchvitals"):
        Store(path)


def test_absent(tmp_path: Path) -> None:
    """Reading makes no file."""
    with pytest.raises(StoreError, match="no such run store"):
        Store(tmp_path / "s")
    assert not list(tmp_path.iterdir())


def test_private(tmp_path: Path) -> None:
    """The store is the user's alone."""
    with Store(tmp_path / "run" / "s", create=True) as store:
        fill(store)
        for file in (tmp_path / "run").iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_reading_never_writes(good: Path, tmp_path: Path) -> None:
    """A store that was opened for reading refuses to write."""
    path = tmp_path / "s"
    path.write_bytes(good.read_bytes())
    with Store(path) as store, pytest.raises(StoreError):
        store.set_meta(name="other")


AS_NOBODY = """
import os, sys
from monitor.store import Store
os.getuid() or os.setuid(65534)
print(Store(sys.argv[1]).streams())
"""


def test_folder_without_write_access(good: Path) -> None:
    """A finished run on read-only media opens, though its journal is a write-ahead log."""
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to other users
        folder = Path(name)
        (folder / "s").write_bytes(good.read_bytes())
        (folder / "s").chmod(0o444)
        folder.chmod(0o555)
        command = [sys.executable, "-c", AS_NOBODY, folder / "s"]
        done = subprocess.run(command, capture_output=True, text=True)
        folder.chmod(0o755)
    assert done.stdout.strip() == "{'rank/0': 3108}", done.stderr


READER = """
import sys
import tempfile
import time
from monitor.store import Store
with Store(sys.argv[1]) as store:
    last = 0
    while last < 40 * 777:
        rows = store.streams().get("rank/0", 0)
        summed, count, low, high = store.totals("rank/0", ["loss"])["loss"]
        assert count >= rows >= last, (count, rows, last)
        assert count % 777 == 0, "half a batch was seen"
        last = rows
print("seen", last)
"""


def test_reader_while_writing(tmp_path: Path) -> None:
    """Another process reads whole batches, and ever more of them, while this one writes."""
    path = tmp_path / "s"
    with Store(path, create=True) as store:
        fill(store, 1)
        reader = subprocess.Popen(
            [sys.executable, "-c", READER, str(path)], stdout=subprocess.PIPE, text=True
        )
        fill(store, 40)
        out, _ = reader.communicate(timeout=60)
    assert (out.strip(), reader.returncode) == (f"seen {40 * 777}", 0)


def test_one_plain_file(tmp_path: Path) -> None:
    """A run that is over is one file, and reading it leaves nothing beside it."""
    with Store(tmp_path / "s", create=True) as store:
        fill(store)
    read_everything(tmp_path / "s")
    assert [file.name for file in tmp_path.iterdir()] == ["s"]


def test_closed_while_it_is_read(tmp_path: Path) -> None:
    """A writer that closes neither waits for readers nor disturbs them."""
    store = Store(tmp_path / "s", create=True)
    fill(store)
    with Store(tmp_path / "s") as reader:
        assert reader.streams() == {"rank/0": 3108}
        store.close()
        assert reader.streams() == {"rank/0": 3108}
    with Store(tmp_path / "s", create=True) as again:
        fill(again)
        assert again.streams() == {"rank/0": 3108}


def test_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write-ahead log on a local disk, a rollback journal on a network one; both are readable."""
    for network, mode in ((False, "wal"), (True, "delete")):
        monkeypatch.setattr("monitor.store.database.on_network", lambda _, n=network: n)
        with Store(tmp_path / mode, create=True) as store, Store(tmp_path / mode) as other:
            fill(store)
            assert store._db.sql.execute("PRAGMA journal_mode").fetchone() == (mode,)
            assert other.streams() == {"rank/0": 3108}


def test_a_schema_of_bytes_that_are_no_text(tmp_path: Path) -> None:
    """SQLite quotes a damaged schema in its message, which then is no text either: still a StoreError."""
    path = tmp_path / "store.sqlite"
    Store(path, create=True).close()
    whole = path.read_bytes()
    whole = whole.replace(b"tablestreamstream", b"table\xff\xffreamstream").replace(
        b"CREATE TABLE stream", b"XREATE TABLE stream"
    )
    path.write_bytes(whole)
    with pytest.raises(StoreError):
        Store(path)
