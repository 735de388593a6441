"""Which runs there are, and which one somebody means."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from batches import Training

from monitor import runs
from monitor.pipeline import Pipeline
from monitor.runs import NoSuchRunError, folders, resolve, summaries
from monitor.runs.baselines import set_baseline
from monitor.runs.marks import mark
from monitor.store import Store


def record(folder: Path, run: str, name: str, started: float, *, killed: bool = False) -> None:
    """A run that took 50 steps and ended."""
    pipeline, training = Pipeline(folder), Training(run=run)
    pipeline.take(training.start(name=name, started_unix_s=started))
    pipeline.take(training.batch(50, training.killed() if killed else training.end()))
    pipeline.close()


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    record(tmp_path, "20261130-010000-digits-aaaa", "digits", 1000.0)
    record(tmp_path, "20261130-020000-digits-bbbb", "digits", 2000.0, killed=True)
    record(tmp_path, "20261130-030000-resnet-cccc", "resnet", 3000.0)
    (tmp_path / "no-run").mkdir()
    (tmp_path / "file").write_text("")
    return tmp_path


def test_newest_first(kept: Path) -> None:
    """Folders that hold a store, and no others."""
    assert [folder.name[-4:] for folder in folders(kept)] == ["cccc", "bbbb", "aaaa"]
    assert folders(kept / "nowhere") == []


def test_live_ones(kept: Path) -> None:
    """Those that are not over, the newest first, however many that are over came after them."""
    for name, began in (("first", 10.0), ("second", 20.0)):
        pipeline, training = Pipeline(kept), Training(run=f"20261130-000000-{name}-dddd")
        pipeline.take(training.start(name=name, started_unix_s=began))
        pipeline.take(training.batch(50))
        pipeline.close()
    record(kept, "20261130-040000-digits-eeee", "digits", 4000.0)
    assert [run["name"] for run in runs.live(kept)] == ["second", "first"]
    assert runs.live(kept / "nowhere") == []


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("latest", "cccc"),
        ("20261130-010000-digits-aaaa", "aaaa"),
        ("20261130-02", "bbbb"),
        ("resnet", "cccc"),
        ("digits", "bbbb"),
    ],
)
def test_which_run(kept: Path, text: str, ending: str) -> None:
    """An id, the beginning of one, a name (its newest run), or "latest"."""
    assert resolve(text, kept).name.endswith(ending)


def test_by_path(kept: Path, tmp_path: Path) -> None:
    """A run's folder, or its store, from wherever it was copied to."""
    folder = kept / "20261130-010000-digits-aaaa"
    assert resolve(str(folder), tmp_path / "elsewhere") == folder
    assert resolve(str(folder / "store.sqlite"), tmp_path / "elsewhere") == folder


@pytest.mark.parametrize(("text", "says"), [("2026", "3 runs begin with"), ("nobody", "torchvitals ls")])
def test_which_run_is_unclear(kept: Path, text: str, says: str) -> None:
    """Several, or none: one line that says what to do."""
    with pytest.raises(NoSuchRunError, match=says) as caught:
        resolve(text, kept)
    assert "\n" not in str(caught.value)


def test_summaries(kept: Path) -> None:
    """The list tells what matters of each run, newest first."""
    found = summaries(kept)
    assert [run["run"][-4:] for run in found] == ["cccc", "bbbb", "aaaa"]
    assert [run["status"] for run in found] == ["finished", "killed", "finished"]
    assert [run["finding"] for run in found] == [None, "process_died", None]
    assert found[0]["steps"] == 50
    assert found[0]["steps_per_s"] == pytest.approx(50)
    assert found[0]["verdict"]["text"]


def test_summaries_are_fresh(tmp_path: Path) -> None:
    """A run that goes on is told as it is now, though the list remembers those that do not change."""
    pipeline, training = Pipeline(tmp_path), Training()
    pipeline.take(training.start())
    assert summaries(tmp_path)[0]["steps"] == 0
    pipeline.take(training.batch(30))
    assert summaries(tmp_path)[0]["steps"] == 30
    pipeline.close()
    looked = runs._read.cache_info().misses
    assert summaries(tmp_path)[0]["steps"] == 30
    assert summaries(tmp_path)[0]["steps"] == 30
    assert runs._read.cache_info().misses <= looked + 1


def test_summaries_tell_what_people_said(kept: Path) -> None:
    """Marks are in the list the moment they are made, and so is which run is the baseline."""
    folder = kept / "20261130-010000-digits-aaaa"
    assert summaries(kept)[2]["tags"] == []
    mark(folder, {"tags": ["slow"], "archived": True})
    set_baseline(kept, "digits", folder.name)
    found = summaries(kept)
    assert (found[2]["tags"], found[2]["archived"], found[2]["project"]) == (["slow"], True, "digits")
    assert [run["baseline"] for run in found] == [False, False, True]


def test_a_sparkline_is_short(tmp_path: Path) -> None:
    """The speed over the run in a few points, however long it was."""
    pipeline, training = Pipeline(tmp_path, clock=iter(range(10**6)).__next__), Training()
    pipeline.take(training.start())
    for _ in range(100):
        pipeline.take(training.batch(100))
    pipeline.close()
    spark = summaries(tmp_path)[0]["spark"]
    assert 10 <= len(spark) <= runs.SPARK_POINTS
    assert spark[-1] == pytest.approx(50, rel=0.01)


def test_unreadable(kept: Path) -> None:
    """A damaged store is one line of the list, and does not hide the others."""
    (kept / "20261130-040000-bad-dddd").mkdir()
    (kept / "20261130-040000-bad-dddd" / "store.sqlite").write_text("no database " * 500)
    bad = next(run for run in summaries(kept) if run["run"].endswith("dddd"))
    assert (bad["status"], bad["steps"]) == ("unreadable", 0)
    assert "not a torchvitals run store" in bad["error"]
    assert len(summaries(kept)) == 4


def test_lost_run(tmp_path: Path) -> None:
    """A run of another machine that fell silent long ago is not shown as running."""
    pipeline, training = Pipeline(tmp_path), Training(host="far-away")
    pipeline.take(training.start(started_unix_s=1000.0))
    with_store = pipeline._runs[training.run]._store
    assert with_store is not None
    with_store._db.sql.execute("UPDATE host SET received_unix_s = 2000")
    pipeline.close()
    (run,) = summaries(tmp_path)
    assert run["status"] == "killed"
    assert run["exit"]["reason"].startswith("lost: silent for")


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("meta", "value = '\"long ago\"' WHERE name = 'started_unix_s'"),
        ("meta", "value = 'NaN' WHERE name = 'started_unix_s'"),
        ("meta", f"value = '{'9' * 400}' WHERE name = 'started_unix_s'"),
        ("meta", "value = '[1, 2]' WHERE name = 'processes'"),
        ("finding", "data = '[]'"),
        ("finding", "data = '{}'"),
        ("host", "received_unix_s = 'x'"),
        ("stream", "t_last = 'x'"),
    ],
)
def test_no_damaged_run_hides_the_others(kept: Path, table: str, change: str) -> None:
    """Whatever its store holds, the list has all runs in it."""
    finding = {"code": "stall", "cause": "x", "raised_at_s": 1.0, "severity": "critical"}
    damaged = kept / "20261130-020000-digits-bbbb" / "store.sqlite"
    with Store(damaged, create=True) as store:
        store.save_findings([finding])
        store.set_meta(status="running", processes={})
    connection = sqlite3.connect(damaged)
    assert connection.execute(f"UPDATE {table} SET {change}").rowcount
    connection.commit()
    connection.close()
    listed = {run["run"][-4:]: run["status"] for run in summaries(kept)}
    assert listed.keys() == {"aaaa", "bbbb", "cccc"}
    assert (listed["aaaa"], listed["cccc"]) == ("finished", "finished")


def test_what_kept_a_store_shut_may_go(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock (a machine without files to open, …) is no damage: it is asked again though no file changed."""
    monkeypatch.setattr("monitor.store.database.BUSY_S", 0.01)
    monkeypatch.setattr(runs, "AGAIN_S", 1e-6)
    file = kept / "20261130-010000-digits-aaaa" / "store.sqlite"
    lock = sqlite3.connect(file)
    lock.execute("PRAGMA locking_mode = EXCLUSIVE")
    lock.execute("BEGIN EXCLUSIVE")
    assert summaries(kept)[-1]["status"] == "unreadable"
    lock.close()
    assert summaries(kept)[-1]["status"] == "finished"
