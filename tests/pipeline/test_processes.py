"""The pipeline as processes meet it: killed in the middle, and looked at from outside."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from batches import RUN, Training

from monitor import report
from monitor.pipeline import Pipeline
from monitor.store import Store

SUPPORT = Path(__file__).parent.parent / "support"

FEEDER = """
import sys
sys.path.insert(0, sys.argv[2])
from batches import Training
from monitor.pipeline import Pipeline
pipeline, training = Pipeline(sys.argv[1]), Training()
pipeline.take(training.start())
while True:
    pipeline.take(training.batch(25))
    if training.seq == 40:
        print("far enough", flush=True)
"""


def killed_feeder(folder: Path) -> None:
    """A hub that was killed with -9 while it took batches."""
    command = [sys.executable, "-c", FEEDER, str(folder), str(SUPPORT)]
    feeder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert feeder.stdout is not None
    assert feeder.stdout.readline() == "far enough\n"
    feeder.send_signal(signal.SIGKILL)
    feeder.wait()
    feeder.stdout.close()


def test_killed_and_started_anew(tmp_path: Path) -> None:
    """kill -9 of the hub: the agent sends again what was not stored, and nothing is missing or double."""
    killed_feeder(tmp_path)
    pipeline, training = Pipeline(tmp_path), Training()
    last = pipeline.last_seq(RUN, "h")
    assert last >= 40
    batches = [training.start(), *(training.batch(25) for _ in range(last + 19))]
    for batch in batches[last - 10 :]:
        pipeline.take(batch)
    pipeline.take(training.batch(25, training.end()))
    pipeline.close()
    with Store(tmp_path / RUN / "store.sqlite") as store:
        assert store.rows("rank/0", [], 0, 10**9)["row"].tolist() == list(range(training.steps))
        run = store.rows("run", ["steps_per_s"], 0, 10**9)
        assert run["row"].tolist() == list(range(len(run["row"])))
        assert abs(run["steps_per_s"] - 50).max() < 1e-3
        assert [event["kind"] for event in store.events()] == ["run", "agent", "attach", "rank_end"]
    found = report.build(tmp_path / RUN)
    assert (found["status"], found["steps"], found["dropped_records"]) == ("finished", training.steps, 0)


def test_seen_from_another_process(tmp_path: Path) -> None:
    """A hub shows a run that an agent of its own writes (`--no-dashboard`): the present state, each time."""
    writer, training, hub = Pipeline(tmp_path), Training(), Pipeline(tmp_path)
    writer.take(training.start())
    for steps in (30, 60, 90):
        writer.take(training.batch(30))
        seen = hub.snapshot(RUN)
        assert seen is not None
        assert (seen["steps"], seen["name"]) == (steps, "digits")
    writer.take(training.batch(10, training.killed()))
    seen = hub.snapshot(RUN)
    assert seen is not None
    assert seen["status"] == "killed"
    assert [finding["code"] for finding in seen["findings"]] == ["process_died"]
    writer.close()
