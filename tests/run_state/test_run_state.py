"""A run in memory: what batches make of it."""

from __future__ import annotations

from array import array

import numpy as np
import pytest
from batches import Training
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor import run_state
from monitor.batch import Batch, Block
from monitor.run_state import RunState


def fed(*batches: Batch) -> RunState:
    state = RunState(batches[0].run)
    for batch in batches:
        state.take(batch)
    return state


def test_running() -> None:
    """A run goes on until its ranks have ended; until then it has no exit."""
    training = Training()
    state = fed(training.start(), training.batch(30))
    assert state.outcome == ("running", None)
    assert state.steps == 30
    assert state.about["name"] == "digits"


def test_ended() -> None:
    """The last rank's end is the run's."""
    training = Training(ranks=2)
    state = fed(training.start(), training.batch(30, training.end(0)))
    assert state.outcome[0] == "running"
    state.take(training.batch(0, training.killed(1)))
    status, end = state.outcome
    assert status == "killed"
    assert end is not None
    assert (end["rank"], end["signal"], end["last_step"], end["last_phase"]) == (1, "SIGKILL", 29, "backward")


def test_ranks_that_never_attached() -> None:
    """Fewer ranks than announced: the run is over when every host's agent says so."""
    training = Training(ranks=1)
    state = fed(training.start(world_size=4), training.batch(9, training.end()))
    assert not state.finished
    state.take(training.batch(0, training.event("run_end")))
    assert state.outcome[0] == "finished"


def test_two_hosts() -> None:
    """One host's end is not the other's."""
    one, other = Training(ranks=1), Training(ranks=1, host="other")
    state = fed(one.start(world_size=3), other.start(world_size=3))
    state.take(one.batch(1, one.end(), one.event("run_end")))
    assert not state.finished
    state.take(other.batch(0, other.event("run_end")))
    assert state.finished


def test_a_script_that_never_trained() -> None:
    """A run without a rank ends with its agent."""
    training = Training(ranks=0)
    state = fed(training.start(world_size=1), training.batch(0, training.event("run_end")))
    assert state.outcome[0] == "finished"
    assert state.steps == 0


def test_attached_again() -> None:
    """A rank that comes back after its end lives."""
    training = Training()
    state = fed(training.start(), training.batch(9, training.killed()))
    assert state.finished
    state.take(training.batch(5, training.event("attach", rank=0, pid=5)))
    assert state.outcome == ("running", None)
    assert state.steps == 14


def test_stalled() -> None:
    """While a stall lasts, that is the status."""
    training = Training()
    state = fed(training.start(), training.batch(9))
    state.stalled = True
    assert state.outcome == ("stalled", None)


def test_window() -> None:
    """Detectors see steps, samples, facts, events and hosts."""
    training = Training()
    fact = training.event("fact", rank=0, name="loader/1", value={"num_workers": 0})
    host_fact = training.event("agent", pid=9, host_facts={"cpu": {"usable": 2}})
    state = fed(training.start(), training.batch(30, fact, host_fact))
    state.take(training.sample("proc/0", rss_mb=500.0))
    state.take(training.sample("host/h", cpu_used=1.5))
    state.take(training.sample("gpu/h/0", gpu_util=70.0))
    window = state.window()
    rank = window.ranks[0]
    assert rank.steps["step"].tolist() == list(range(30))
    assert rank.column("data_ms").tolist() == [6.0] * 30
    assert rank.samples["rss_mb"].tolist() == [500.0]
    assert set(rank.samples) == {"t_s", "rss_mb"}
    assert rank.facts_of("loader") == {"1": {"num_workers": 0}}
    assert window.hosts["h"]["cpu_used"].tolist() == [1.5]
    assert window.gpus["h/0"]["gpu_util"].tolist() == [70.0]
    assert window.host_facts == {"h": {"cpu": {"usable": 2}}}
    assert [event["kind"] for event in window.events_of("attach", "agent")] == ["agent", "attach", "agent"]
    assert (window.world_size, window.finished) == (1, False)
    assert window.now_s == pytest.approx(0.6)


def test_where_a_rank_is() -> None:
    """The phase a rank is in comes with the batch, and is no event to keep."""
    training = Training()
    now = training.event("live", rank=0, phase="data", since_s=3.5, step=7)
    state = fed(training.start(), training.batch(0, now))
    assert state.window().ranks[0].phase == ("data", 3.5)
    assert state.steps == 7
    assert state.window().events_of("live") == []


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a run and however many its ranks, memory has a bound that all ranks share."""
    monkeypatch.setattr(run_state, "ALL_ROWS", 8_000)
    training = Training(ranks=4)
    state = fed(training.start(), *(training.batch(1000) for _ in range(6)))
    held = [len(rank.steps) for rank in state.ranks.values()]
    assert max(held) <= 2_000
    assert min(held) >= 1_500
    assert state.window().ranks[0].steps["step"][-1] == 5999


def test_events_are_bounded() -> None:
    """The newest events are kept."""
    training = Training()
    state = RunState("r")
    for number in range(run_state.EVENTS + 10):
        state.note(training.event("save", number=number), "h")
    assert len(state.events) == run_state.EVENTS
    assert state.events[-1]["number"] == run_state.EVENTS + 9


@pytest.mark.parametrize(
    "event",
    [
        {"kind": "attach", "rank": "x", "world_size": "many"},
        {"kind": "attach", "rank": -3},
        {"kind": "rank_end", "rank": None, "last_phase": 7},
        {"kind": "live", "rank": 0, "phase": 3, "since_s": "x", "step": "y"},
        {"kind": "fact", "rank": 0},
        {"kind": "run", "world_size": "x", "name": None},
        {"kind": "agent", "host_facts": 3},
        {"kind": "warn"},
        {"kind": "__init__"},
    ],
)
def test_odd_events(event: dict) -> None:
    """An event that makes no sense harms nothing."""
    training = Training()
    state = fed(training.start(), training.batch(3))
    state.note({"t_s": 1.0, **event}, "h")
    state.window()
    assert state.meta()["world_size"] == 1


@pytest.mark.parametrize("stream", ["rank/x", "proc/-1", "user/loss", "rank/99999999"])
def test_odd_streams(stream: str) -> None:
    """A stream that is nobody's is passed over."""
    training = Training()
    state = fed(training.start())
    state.add(Block(stream, 0, training.rows("rank/0", 1, {}).t_s, {}))
    assert state.steps in (0, 1)


def test_notices() -> None:
    """What a person should know is said once."""
    training = Training()
    warn = training.event("warn", text="a sample failed")
    state = fed(training.start(), training.batch(1, warn, warn, training.event("dropped", records=3)))
    assert state.notices == ["a sample failed", "records_dropped"]


def test_loss_that_is_nan() -> None:
    """A loss that is not a number is told from one that was not measured, until it is finite again."""
    training = Training()
    state = fed(training.start(), training.batch(1, training.event("nan_loss", rank=0, step=1)))
    assert state.loss_is_nan
    state.take(training.batch(1, training.event("loss_finite", rank=0, step=2)))
    assert not state.loss_is_nan


def test_views_cost_nothing() -> None:
    """A window shares memory with the run's columns."""
    training = Training()
    state = fed(training.start(), training.batch(300))
    assert np.shares_memory(state.window().ranks[0].steps["data_ms"], state.ranks[0].steps.column("data_ms"))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 400), min_size=1, max_size=8))
def test_cuts_do_not_matter(sizes: list[int]) -> None:
    """However the rows are cut into batches, detectors see the same."""
    cut, whole = Training(ranks=2), Training(ranks=2)
    one = fed(cut.start(), *(cut.batch(size, loss=0.5) for size in sizes)).window()
    other = fed(whole.start(), whole.batch(sum(sizes), loss=0.5)).window()
    for number, rank in other.ranks.items():
        assert one.ranks[number].steps.keys() == rank.steps.keys()
        for key, values in rank.steps.items():
            assert np.allclose(one.ranks[number].steps[key], values)
    assert one.now_s == pytest.approx(other.now_s)


def logged(training: Training, *rows: dict[str, float]) -> Batch:
    """A batch with one row of `user/0` for each of the given."""
    keys = {key: None for row in rows for key in row}
    columns = {key: array("f", [row.get(key, float("nan")) for row in rows]) for key in keys}
    block = Block("user/0", 0, array("d", [float(i) for i in range(len(rows))]), columns)
    batch = training.batch(0)
    return Batch(batch.run, batch.host, batch.seq, batch.sent_s, (block,))


def test_numbers_of_the_users_own_join_the_schema() -> None:
    """They are kept, and described like every other metric, for a page that opens later."""
    training = Training()
    state = fed(training.start(), logged(training, {"accuracy": 0.5}, {"accuracy": 0.75, "lr": 0.1}))
    assert state.users["0"].newest("accuracy") == 0.75
    own = [metric for metric in state.meta()["schema"]["metrics"] if metric["origin"] == "user"]
    assert [metric["key"] for metric in own] == ["accuracy", "lr"]


def test_a_rank_s_device_is_in_the_window() -> None:
    """Rows of `cuda/R` stand with their rank, in memory and in what detectors see."""
    training = Training(ranks=1)
    state = fed(training.start(), training.batch(30))
    state.add(Block("cuda/0", 0, array("d", [1.0, 2.0]), {"cuda_retries": array("f", [0, 3])}))
    seen = state.window().ranks[0].cuda
    assert seen["cuda_retries"].tolist() == [0, 3]
    assert seen["t_s"].tolist() == [1.0, 2.0]
    assert set(state.window().ranks[0].samples) == set(fed(training.start()).window().ranks[0].samples)
