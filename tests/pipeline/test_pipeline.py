"""Batches in; findings, alerts, updates and a store out."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from batches import RUN, Training

from monitor import report
from monitor.diagnosis.core.lifecycle import Change
from monitor.pipeline import Pipeline
from monitor.store import Store


class Hub:
    """A pipeline, what it published and whom it alerted, and a clock in the test's hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.updates: list[dict[str, Any]] = []
        self.alerts: list[tuple[str, str, list[str], Change]] = []
        self.now_s = 0.0
        self.addresses: list[str] = []
        self.start()

    def start(self) -> None:
        self.pipeline = Pipeline(
            self.folder,
            publish=lambda _run, update: self.updates.append(update),
            alert=lambda of, urls, change: self.alerts.append((of.run, of.name, list(urls), change)),
            addresses=lambda: self.addresses,
            clock=lambda: self.now_s,
        )

    def restart(self) -> None:
        """The hub dies without a word, and another one starts."""
        self.pipeline._runs.clear()
        self.start()

    def take(self, *batches: Any) -> dict[str, Any]:
        for batch in batches:
            self.now_s += 0.5
            self.pipeline.take(batch)
        return self.updates[-1]

    def store(self) -> Store:
        return Store(self.folder / RUN / "store.sqlite")


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    made = Hub(tmp_path / "runs")
    yield made
    made.pipeline.close()


def test_one_update_a_batch(hub: Hub) -> None:
    """Every batch is published, numbered one by one, with the rows since the last."""
    training = Training()
    hub.take(training.start(), *(training.batch(25) for _ in range(6)))
    assert [update["seq"] for update in hub.updates] == list(range(1, 8))
    assert sum(len(update["rows"].get("run", {}).get("t_s", ())) for update in hub.updates) == 3
    assert hub.updates[-1]["steps"] == 150


def test_stored(hub: Hub) -> None:
    """What was taken is in the store: steps, the run's own rows, events, and what describes the run."""
    training = Training()
    hub.take(training.start(), *(training.batch(25) for _ in range(6)))
    with hub.store() as store:
        assert store.streams() == {"rank/0": 150, "run": 3}
        assert [event["kind"] for event in store.events()] == ["run", "agent", "attach"]
        meta = store.meta()
    assert (meta["name"], meta["status"], meta["world_size"]) == ("digits", "running", 1)
    assert meta["schema"]["metrics"]
    assert meta["processes"] == {"0": {"pid": 1000, "host": "h"}}


def test_a_batch_that_comes_again(hub: Hub) -> None:
    """Sent twice, counted once: in the store, in memory, and towards viewers."""
    training = Training()
    batches = [training.start(), training.batch(25), training.batch(25)]
    hub.take(*batches, *batches)
    assert len(hub.updates) == 3
    with hub.store() as store:
        assert store.streams()["rank/0"] == 50
        assert len(store.events()) == 3
    assert hub.pipeline.last_seq(RUN, "h") == 3


def test_finding_raised_stored_and_told(hub: Hub) -> None:
    """A death is found at once: in the update, in the store, and to whom alerts go."""
    training = Training()
    update = hub.take(
        training.start(alerts=["json://localhost/hook"]),
        training.batch(25),
        training.batch(25, training.killed()),
    )
    assert update["status"] == "killed"
    assert update["exit"]["signal"] == "SIGKILL"
    assert [finding["code"] for finding in update["findings"]] == ["process_died"]
    assert update["verdict"]["key"] == "killed"
    run, name, urls, change = hub.alerts[-1]
    assert (run, name, urls, change.kind) == (RUN, "digits", ["json://localhost/hook"], "raised")
    with hub.store() as store:
        (kept,), (told,) = store.findings(), update["findings"]
    assert {key: told[key] for key in kept} == kept
    assert set(told) - set(kept) == {"id", "evidence_rows", "confidence", "curve"}


def test_a_stall_waits_for_no_diagnosis(hub: Hub) -> None:
    """However long a diagnosis takes, and however rarely it is done therefore: a stall is told at once."""
    training = Training()
    hub.take(training.start(), training.batch(50))
    for live in hub.pipeline._runs.values():
        live._due_s = hub.now_s + 1000.0
    stall = training.event("stall", rank=0, step=50, phase="data", since_s=1.0, for_s=6.0)
    hub.take(training.batch(0, stall))
    assert [change.kind for *_, change in hub.alerts] == ["raised"]


def test_addresses_of_every_run(hub: Hub) -> None:
    """Alerts go to the run's own addresses and to those that the pipeline was given."""
    hub.addresses = ["json://everybody"]
    hub.restart()
    training = Training()
    hub.take(training.start(alerts=["json://its-own"]), training.batch(25, training.killed()))
    assert hub.alerts[-1][2] == ["json://everybody", "json://its-own"]


def test_alert_addresses_are_secret(hub: Hub) -> None:
    """Addresses hold passwords: no viewer gets to see them, and a hub that starts anew knows them."""
    training = Training()
    hub.take(training.start(alerts=["json://user:secret@host"]), training.batch(25))
    with hub.store() as store:
        assert "secret" not in str([store.meta(), store.events(), store.facts()])
    assert "secret" not in str(hub.updates) + str(hub.pipeline.snapshot(RUN))
    hub.restart()
    hub.take(training.batch(5, training.killed()))
    assert hub.alerts[-1][2] == ["json://user:secret@host"]


def test_diagnosis_once_a_second(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """The doctor looks once a second, and always at the end."""
    from monitor.diagnosis.core import doctor

    looked: list[float] = []
    examine = doctor.examine
    monkeypatch.setattr(doctor, "examine", lambda window: looked.append(hub.now_s) or examine(window))
    training = Training()
    hub.take(training.start(), *(training.batch(5) for _ in range(5)), training.batch(1, training.end()))
    assert looked == [0.5, 1.5, 2.5, 3.5]
    hub.take(training.batch(0, training.event("attach", rank=0)), training.batch(1, training.end()))
    assert looked[4:] == [4.5]


def test_a_broken_doctor(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """When diagnosis fails, everything else goes on, and the end is recorded."""

    def broken(_window: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr("monitor.diagnosis.core.doctor.examine", broken)
    training = Training()
    update = hub.take(training.start(), training.batch(5), training.batch(5, training.end()))
    assert update["status"] == "finished"
    assert report.build(hub.folder / RUN)["status"] == "finished"


def test_restart(hub: Hub) -> None:
    """A hub killed and started anew misses nothing, raises nothing twice, and numbers on."""
    training = Training()
    batches = [training.start(), *(training.batch(25) for _ in range(4))]
    before = hub.take(*batches)
    hub.restart()
    after = hub.take(*batches[3:], training.batch(25))
    assert after["seq"] == before["seq"] + 1
    assert after["steps"] == 125
    with hub.store() as store:
        assert store.rows("rank/0", [], 0, 999)["row"].tolist() == list(range(125))
        assert store.rows("run", [], 0, 99)["row"].tolist() == list(range(store.streams()["run"]))


def test_restart_keeps_findings(hub: Hub) -> None:
    """What was raised before a restart is neither lost nor raised again."""
    training = Training()
    stall = training.event("stall", rank=0, phase="data", step=24, since_s=0.5, threshold_s=10.0)
    update = hub.take(training.start(), training.batch(25), training.batch(0, stall, idle_s=12.0))
    assert update["status"] == "stalled"
    hub.restart()
    again = hub.take(training.batch(0, idle_s=1.0))
    assert again["status"] == "stalled"
    assert [(f["code"], f["raised_at_s"]) for f in again["findings"]] == [
        (f["code"], f["raised_at_s"]) for f in update["findings"]
    ]
    assert len([alert for alert in hub.alerts if alert[3].kind == "raised"]) == 1


def test_snapshot(hub: Hub) -> None:
    """Who comes late gets the present state with the newest rows, live or from the store."""
    training = Training()
    update = hub.take(training.start(), *(training.batch(50) for _ in range(5)))
    live = hub.pipeline.snapshot(RUN)
    assert live is not None
    assert live.keys() == update.keys()
    assert live["seq"] == update["seq"]
    assert len(live["rows"]["run"]["t_s"]) == 5
    hub.pipeline.close()
    stored = Pipeline(hub.folder).snapshot(RUN)
    assert stored is not None
    for key in ("steps", "tiles", "now_s", "seq", "name"):
        assert stored[key] == live[key]
    known = {key: values for key, values in live["rows"]["run"].items() if set(values) != {None}}
    assert stored["rows"] == {"run": known}
    assert hub.pipeline.snapshot("nobody") is None


def test_two_runs_at_once(hub: Hub) -> None:
    """Several threads feed several runs; each is whole."""
    runs = [Training(run=f"run-{i}") for i in range(4)]
    feeds = [[run.start(), *(run.batch(30) for _ in range(12))] for run in runs]
    threads = [threading.Thread(target=hub.take, args=feed) for feed in feeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for run in runs:
        with Store(hub.folder / run.run / "store.sqlite") as store:
            assert store.streams()["rank/0"] == 360
        assert [u["seq"] for u in hub.updates if u["run"] == run.run] == list(range(1, 14))


def test_silence(hub: Hub) -> None:
    """An agent that says nothing for ten seconds is told as lost, once, and as back when it is."""
    training = Training()
    hub.take(training.start(), training.batch(25))
    run = hub.pipeline._runs[RUN]
    hub.pipeline.tick()
    assert len(hub.updates) == 2
    run.data_unix_s -= 11
    hub.pipeline.tick()
    hub.pipeline.tick()
    assert [update["notices"] for update in hub.updates[2:]] == [["agent_lost"]]
    assert hub.take(training.batch(25))["notices"] == []


def test_many_runs(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that ended make room for new ones, and come back when somebody asks."""
    monkeypatch.setattr("monitor.pipeline.RUNS", 2)
    for i in range(5):
        training = Training(run=f"run-{i}")
        hub.take(training.start(), training.batch(9, training.end()))
    assert len(hub.pipeline._runs) <= 2
    snapshot = hub.pipeline.snapshot("run-0")
    assert snapshot is not None
    assert (snapshot["status"], snapshot["steps"]) == ("finished", 9)


def test_unknown_run_has_no_batches(hub: Hub) -> None:
    """Asking for a run that there is not makes none."""
    assert hub.pipeline.last_seq("nobody", "h") == 0
    assert not hub.folder.exists()
