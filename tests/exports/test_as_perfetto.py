"""The phases as a trace."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from batches import RUN, Training
from finished_runs import keep

from monitor.exports import as_perfetto
from monitor.exports.as_perfetto import write
from monitor.exports.choice import Choice
from monitor.schema import PHASES
from monitor.store import Store

WHOLE = Choice()


def trace(store: Store, choice: Choice = WHOLE) -> dict:
    return json.loads(b"".join(write(store, choice)))


def slices(found: dict, rank: int, step: int) -> list[dict]:
    return [
        e for e in found["traceEvents"] if e["ph"] == "X" and (e["tid"], e["args"]["step"]) == (rank, step)
    ]


@pytest.fixture(scope="module")
def whole(run_dir) -> dict:
    """The trace of the whole run."""
    with Store(run_dir / RUN / "store.sqlite") as store:
        return trace(store)


def test_each_rank_has_a_track_with_its_name(whole: dict):
    """As a trace's viewer shows them."""
    names = {e["tid"]: e["args"]["name"] for e in whole["traceEvents"] if e["name"] == "thread_name"}
    assert names == {0: "rank 0", 1: "rank 1"}


def test_a_steps_phases_fill_it_in_their_order(whole: dict):
    """Lengths are those measured; each phase begins where the one before ends; none leaves the step."""
    step, *phases = slices(whole, 1, 7)
    assert [p["name"] for p in phases] == ["data", "forward", "backward", "optimizer"]
    assert [p["dur"] for p in phases] == [12000.0, 4000.0, 7000.0, 1000.0]
    ends = [step["ts"], *(p["ts"] + p["dur"] for p in phases)]
    assert [p["ts"] for p in phases] == pytest.approx(ends[:-1], abs=0.01)
    assert ends[-1] == pytest.approx(step["ts"] + step["dur"], abs=0.01)
    assert step["ts"] + step["dur"] == pytest.approx(8 * 24_000, abs=0.01)


def test_the_trace_says_what_is_schematic(whole: dict):
    """Nobody may read an order out of it that was not measured."""
    told = whole["otherData"]
    assert "schematic" in told["order"]
    assert all(phase in told["order"] for phase in PHASES)
    assert told["steps"] == {"rank 0": "0 to 4999", "rank 1": "0 to 4999"}


def test_findings_are_marked(whole: dict):
    """Where the finding was raised, with what it says."""
    [mark, _] = [e for e in whole["traceEvents"] if e["ph"] == "i" and e["args"]["code"] == "data_starvation"]
    assert (mark["ts"], mark["name"].split(":")[0]) == (1e6, "warning")


def test_a_long_run_keeps_its_newest_steps_and_says_so(store: Store, monkeypatch: pytest.MonkeyPatch):
    """A viewer opens twenty thousand steps in seconds, and ten million never."""
    monkeypatch.setattr(as_perfetto, "STEPS", 300)
    monkeypatch.setattr(as_perfetto, "_BATCH_ROWS", 1000)
    found = trace(store, Choice("rank/0"))
    assert found["otherData"]["steps"] == {"rank 0": "4700 to 4999, the newest of 5000"}
    steps = {e["args"]["step"] for e in found["traceEvents"] if e["ph"] == "X"}
    assert steps == set(range(4700, 5000))


def test_a_range_is_all_that_is_drawn(store: Store):
    """Findings outside it included."""
    found = trace(store, Choice(None, 0.03, 0.08))
    assert {e["args"]["step"] for e in found["traceEvents"] if e["ph"] == "X"} == {1, 2}
    assert [e for e in found["traceEvents"] if e["ph"] == "i"] == []


def test_a_step_never_begins_before_the_last_one_ended(tmp_path):
    """float32 phases that sum to more than the step is long are cut, so that slices nest."""
    training = Training(phases={"data": 30.0})
    with Store(tmp_path / "store.sqlite", create=True) as store:
        store.append(training.start())
        training.phases = {"data": 10.0, "other": 0.1}
        store.append(training.batch(50, forward_ms=25.0))
        events = [e for e in trace(store)["traceEvents"] if e["ph"] == "X"]
    for step in range(1, 50):
        outer, *inner = [e for e in events if e["args"]["step"] == step]
        assert all(e["ts"] + e["dur"] <= outer["ts"] + outer["dur"] + 0.01 for e in inner)
        assert outer["ts"] >= 10_100 * step - 0.01


def test_what_is_no_number_is_left_out(tmp_path: Path):
    """Of a damaged store: an endless phase counts as not measured, a step without a time is no step."""
    odd = np.array([50.0, 50.0, 50.0, np.inf])
    folder = keep(tmp_path, "odd", odd, data_ms=np.array([1.0, np.inf, -np.inf, 1.0]))
    with Store(folder / "store.sqlite") as store:
        text = b"".join(write(store, WHOLE)).decode()

    def no_constant(name: str) -> None:
        raise ValueError(name)

    found = json.loads(text, parse_constant=no_constant)
    assert slices(found, 0, 2)
    assert not slices(found, 0, 3)
