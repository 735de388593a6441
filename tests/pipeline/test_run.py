"""One run when the store is in trouble."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from batches import RUN, Training

from monitor.pipeline import Pipeline
from monitor.pipeline import run as run_module
from monitor.pipeline.run import LiveRun
from monitor.store import Store


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveRun]:
    made = LiveRun(RUN, tmp_path / RUN)
    yield made
    made.close()


def limit(live: LiveRun, pages: int) -> None:
    """Let the file grow by so many pages at most."""
    assert live._store is not None
    sql = live._store._db.sql
    now = sql.execute("PRAGMA page_count").fetchone()[0]
    sql.execute(f"PRAGMA max_page_count = {now + pages}")


def stored(folder: Path) -> list[int]:
    with Store(folder / RUN / "store.sqlite") as store:
        return [int(row) for row in store.rows("rank/0", [], 0, 10**6)["row"]]


def test_full_disk(live: LiveRun, tmp_path: Path) -> None:
    """A full disk stops neither the view nor the diagnosis; with room again, everything is stored."""
    training = Training()
    live.store(training.start())
    live.store(training.batch(300))
    limit(live, 0)
    for _ in range(3):
        live.store(training.batch(1000))
        live.diagnose()
    update = live.update()
    assert update["notices"] == ["store_full"]
    assert update["steps"] == 3300
    assert live.last_seq("h") < 5
    limit(live, 100_000)
    live.store(training.batch(10, training.killed()))
    live.diagnose()
    assert live.update()["notices"] == []
    assert live.last_seq("h") == 6
    assert stored(tmp_path) == list(range(3310))


def test_agent_sends_again_what_found_no_room(
    live: LiveRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What memory does not hold either is taken when its agent sends it again, in order."""
    monkeypatch.setattr(run_module, "WAITING", 2)
    training = Training()
    live.store(training.start())
    limit(live, 0)
    batches = [training.batch(1000) for _ in range(5)]
    for batch in batches:
        live.store(batch)
    limit(live, 100_000)
    for batch in batches:
        live.store(batch)
        live.store(batch)
    assert stored(tmp_path) == list(range(5000))
    assert live.update()["steps"] == 5000


def test_damaged_store(tmp_path: Path) -> None:
    """A store that is none is left alone; the run is watched all the same, and the page says so."""
    (tmp_path / RUN).mkdir()
    (tmp_path / RUN / "store.sqlite").write_text("this is no database, and it is somebody's" * 50)
    before = (tmp_path / RUN / "store.sqlite").read_bytes()
    live, training = LiveRun(RUN, tmp_path / RUN), Training()
    live.store(training.start())
    live.store(training.batch(30))
    update = live.update()
    assert update["steps"] == 30
    assert "not a torchvitals run store" in update["notices"][0]
    assert (tmp_path / RUN / "store.sqlite").read_bytes() == before


def test_no_folder_to_be_had(tmp_path: Path) -> None:
    """A run folder that cannot be made is a notice, never an exception out of take."""
    (tmp_path / "file").write_text("")
    updates: list[dict] = []
    pipeline, training = Pipeline(tmp_path / "file", publish=lambda _, u: updates.append(u)), Training()
    pipeline.take(training.start())
    pipeline.take(training.batch(5))
    assert updates[-1]["steps"] == 5
    assert updates[-1]["notices"][0].startswith("nothing is stored")


def test_findings_wait_for_room(live: LiveRun, tmp_path: Path) -> None:
    """A finding raised while the disk is full is stored once there is room."""
    training = Training()
    live.store(training.start())
    limit(live, 0)
    live.store(training.batch(3000, training.killed()))
    live.diagnose()
    limit(live, 100_000)
    live.close()
    with Store(tmp_path / RUN / "store.sqlite") as store:
        assert [finding["code"] for finding in store.findings()] == ["process_died"]
        assert store.meta()["status"] == "killed"


def test_passing_events_are_not_stored(live: LiveRun, tmp_path: Path) -> None:
    """Where a rank is right now is shown, and not kept."""
    training = Training()
    live.store(training.start())
    live.store(training.batch(5, training.event("live", rank=0, phase="data", since_s=0.05, step=5)))
    assert live.update()["ranks"][0]["phase"] == "data"
    with Store(tmp_path / RUN / "store.sqlite") as store:
        assert store.events(["live"]) == []


def test_diagnosis_rests(live: LiveRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """A diagnosis that takes long is made less often, so that it takes 2 % of a core at most."""
    now = [0.0]
    slow = LiveRun(RUN, live._folder.parent / "other", clock=lambda: now[0])

    def examine(window: object) -> object:
        now[0] += 0.1
        looked.append(now[0])
        return run_module.doctor.Examination([], [])

    looked: list[float] = []
    monkeypatch.setattr(run_module.doctor, "examine", examine)
    training = Training()
    for _ in range(60):
        slow.store(training.batch(1))
        slow.diagnose()
        now[0] += 0.5
    slow.close()
    assert len(looked) <= 7
