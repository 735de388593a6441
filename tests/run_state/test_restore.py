"""A hub that starts anew goes on where the last one was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from batches import Training

from monitor.batch import Batch
from monitor.run_state import RunState
from monitor.run_state.restore import restore
from monitor.store import Store


def stored(path: Path, *batches: Batch) -> tuple[RunState, RunState]:
    """The state that took the batches, and the one restored from their store."""
    state = RunState(batches[0].run)
    with Store(path, create=True) as store:
        for batch in batches:
            row = state.take(batch)
            blocks = batch.blocks if row is None else (*batch.blocks, row)
            store.append(Batch(batch.run, batch.host, batch.seq, batch.sent_s, blocks, batch.events))
        store.set_meta(**state.meta())
        return state, restore(batches[0].run, store)


def test_same_window(tmp_path: Path) -> None:
    """Detectors see what they saw before."""
    training = Training(ranks=2)
    batches = [
        training.start(),
        training.batch(700, training.event("fact", rank=1, name="env", value={"threads": 2}), loss=0.5),
        training.sample("proc/1", rss_mb=500.0),
        training.sample("host/h", cpu_used=1.5),
        training.batch(50, training.event("agent", pid=9, host_facts={"cpu": {"usable": 2}})),
    ]
    before, after = stored(tmp_path / "s", *batches)
    old, new = before.window(), after.window()
    assert (new.now_s, new.world_size, new.finished) == (old.now_s, old.world_size, old.finished)
    assert new.host_facts == old.host_facts
    assert [event["kind"] for event in new.events] == [event["kind"] for event in old.events]
    for number, rank in old.ranks.items():
        again = new.ranks[number]
        assert again.facts == rank.facts
        assert np.array_equal(again.steps["step"], rank.steps["step"])
        assert np.array_equal(again.column("loss"), rank.column("loss"), equal_nan=True)
        assert again.samples.keys() == rank.samples.keys()
    assert after.outcome == before.outcome
    assert after.about == before.about
    assert after.agents == before.agents


def test_run_stream_goes_on(tmp_path: Path) -> None:
    """The run's own rows are numbered on, and no step is told twice."""
    training = Training()
    before, after = stored(tmp_path / "s", training.start(), *(training.batch(50) for _ in range(4)))
    assert after.own.column("steps_per_s").tolist() == before.own.column("steps_per_s").tolist()
    row = after.take(training.batch(50))
    assert row is not None
    assert row.first == before.own.total
    assert round(row.columns["steps_per_s"][0], 3) == 50.0


def test_ended_run(tmp_path: Path) -> None:
    """A run that was over is over, for the same reason."""
    training = Training()
    before, after = stored(tmp_path / "s", training.start(), training.batch(9, training.killed()))
    assert after.outcome == before.outcome
    assert after.outcome[0] == "killed"


def test_rows_with_a_gap(tmp_path: Path) -> None:
    """Rows that never came stay absent; the others keep their numbers."""
    training = Training()
    first = training.batch(10)
    training.steps += 100
    _, after = stored(tmp_path / "s", first, training.batch(10))
    assert after.ranks[0].steps.column("step").tolist() == [*range(10), *range(110, 120)]
