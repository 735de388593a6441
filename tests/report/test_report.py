"""A run → the report of CONTRACT.md."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from batches import RUN, Training

from monitor import report
from monitor.batch import Batch
from monitor.pipeline import Pipeline
from monitor.report.liveness import host_name
from monitor.store import Store, StoreError

KEYS = [
    "schema", "run", "name", "status", "exit", "world_size", "steps", "duration_s", "throughput",
    "step_ms", "time_share", "memory", "findings", "not_checked", "dropped_records", "reduced_ranks",
]  # fmt: skip


def told(folder: Path, *batches: Batch) -> dict:
    """The report of a run that took these batches."""
    pipeline = Pipeline(folder)
    for batch in batches:
        pipeline.take(batch)
    pipeline.close()
    return report.build(folder / RUN)


def test_every_key(tmp_path: Path) -> None:
    """All keys of the contract are there, in its order, whether or not anything is known."""
    training = Training()
    got = told(tmp_path, training.start(), training.batch(50))
    assert list(got)[: len(KEYS)] == KEYS
    assert got["memory"].keys() == {"rss_mb", "cuda_allocated_mb", "cuda_reserved_mb", "cuda_fragmentation"}
    json.dumps(got, allow_nan=False)


def test_finished(tmp_path: Path) -> None:
    """A clean end."""
    training = Training()
    got = told(tmp_path, training.start(), training.batch(50, training.end()))
    assert (got["status"], got["exit"]["code"], got["exit"]["signal"]) == ("finished", 0, None)
    assert (got["run"], got["name"], got["steps"]) == (RUN, "digits", 50)


def test_killed(tmp_path: Path) -> None:
    """The report names the signal, the last step and the last phase, and the finding."""
    training = Training()
    got = told(tmp_path, training.start(), training.batch(50, training.killed()))
    assert got["status"] == "killed"
    assert got["exit"] == {
        "code": None,
        "signal": "SIGKILL",
        "reason": "killed by SIGKILL",
        "rank": 0,
        "last_step": 49,
        "last_phase": "backward",
    }
    assert [finding["code"] for finding in got["findings"]] == ["process_died"]


def test_running(tmp_path: Path) -> None:
    """While a run goes on it has no exit."""
    import os

    training = Training(host=host_name())
    attach = training.event("attach", rank=0, pid=os.getpid())
    got = told(tmp_path, training.start(), training.batch(50, attach))
    assert (got["status"], got["exit"]) == ("running", None)


def test_lost(tmp_path: Path) -> None:
    """Agent and trainer died with no word: not running, not finished, and it says what is known."""
    import subprocess
    import sys

    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    training = Training(host=host_name())
    events = [training.event(kind, rank=0, pid=gone.pid) for kind in ("attach", "agent")]
    got = told(tmp_path, training.start(), training.batch(50, *events))
    assert got["status"] == "killed"
    assert got["exit"]["reason"].startswith("lost: ")
    assert got["exit"]["code"] is got["exit"]["signal"] is None


def test_what_was_not_checked(tmp_path: Path) -> None:
    """A check that could not run stands there with its reason."""
    training = Training()
    got = told(tmp_path, training.start(), training.batch(50))
    assert all(entry.keys() == {"code", "why"} for entry in got["not_checked"])
    assert "data_starvation" in {entry["code"] for entry in got["not_checked"]}


def test_what_the_monitor_says_of_itself(tmp_path: Path) -> None:
    """A recording that broke off: said once, and stalls are not called checked."""
    training = Training()
    gave_up = training.event("warn", rank=0, text="monitoring is off: broken", gave_up=True)
    got = told(tmp_path, training.start(), training.batch(50, gave_up, gave_up, training.end()))
    assert got["notices"] == ["monitoring is off: broken"]
    assert {"code": "stall", "why": "recording broke off on rank 0"} in got["not_checked"]
    assert "  ! monitoring is off: broken" in report.text(got).splitlines()


def test_open_store(tmp_path: Path) -> None:
    """A store that is open already does as well as a folder."""
    training = Training()
    by_folder = told(tmp_path, training.start(), training.batch(50, training.end()))
    with Store(tmp_path / RUN / "store.sqlite") as store:
        assert report.build(store) == by_folder


def test_pairs_are_for_pages(tmp_path: Path) -> None:
    """The contract's report has no templates; who shows it in another language gets them when asking."""
    training = Training()
    plain = told(tmp_path, training.start(), training.batch(50, training.end()))
    assert "i18n" not in plain["verdict"]
    assert report.build(tmp_path / RUN, pairs=True)["verdict"]["i18n"][1] == {"steps": "50"}


def test_no_such_run(tmp_path: Path) -> None:
    """No store, no report."""
    with pytest.raises(StoreError, match="no such run"):
        report.build(tmp_path / "nowhere")


def test_wait_for_the_end(tmp_path: Path) -> None:
    """The launcher gets the report of the ended run as soon as there is one."""
    training, pipeline = Training(), Pipeline(tmp_path)
    pipeline.take(training.start())
    ending = threading.Timer(0.3, lambda: pipeline.take(training.batch(50, training.killed())))
    ending.start()
    got = report.wait(tmp_path / RUN, 30.0)
    ending.join()
    pipeline.close()
    assert got["status"] == "killed"
    assert got["findings"][0]["code"] == "process_died"


def test_wait_no_longer(tmp_path: Path) -> None:
    """What does not end in time is reported as it is; what was never recorded says so."""
    got = report.wait(tmp_path / "nowhere", 0.05)
    assert got["status"] == "killed"
    assert got["exit"]["reason"].startswith("lost: nothing was recorded")
    assert list(got)[: len(KEYS)] == KEYS
    assert report.summary(got)
