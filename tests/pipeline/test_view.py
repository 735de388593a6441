"""A run's state as pages draw it."""

from __future__ import annotations

import json

import pytest
from batches import STEP, Training

from monitor.batch import Batch
from monitor.pipeline import view
from monitor.run_state import RunState


def fed(*batches: Batch) -> RunState:
    state = RunState(batches[0].run)
    for batch in batches:
        state.take(batch)
    return state


def test_tiles() -> None:
    """Each number the newest of its kind; sums over ranks and hosts; null where nothing was measured."""
    training = Training(ranks=2)
    state = fed(
        training.start(),
        training.batch(100, loss=0.25),
        training.sample("proc/0", rss_mb=500.0, main_cpu=1.0),
        training.sample("proc/1", rss_mb=600.0, main_cpu=0.5),
        training.sample("host/h", cpu_used=1.5, cpu_usable=2.0),
    )
    tiles = view.tiles(state)
    assert tiles["steps_per_s"] == pytest.approx(50)
    assert tiles["samples_per_s"] == pytest.approx(3200)
    assert tiles["data_share"] == pytest.approx(STEP["data"] / 20)
    assert (tiles["rss_mb"], tiles["main_cpu"]) == (1100, 1.5)
    assert (tiles["cpu_used"], tiles["cpu_usable"]) == (1.5, 2)
    assert tiles["loss"] == 0.25
    assert tiles["gpu"] is tiles["tokens_per_s"] is tiles["tree_pss_mb"] is None


def test_tiles_of_nothing() -> None:
    """Before anything was measured every tile is null: no zero, no invented GPU."""
    assert set(view.tiles(fed(Training().start())).values()) == {None}


def test_loss_that_is_nan() -> None:
    """A loss that is not a number is shown as that, not as unknown."""
    training = Training()
    state = fed(training.start(), training.batch(50, training.event("nan_loss", rank=0, step=3), loss=0.5))
    assert view.tiles(state)["loss"] == "NaN"


def test_gpus() -> None:
    """Each GPU by its name, with what was measured of it."""
    training = Training()
    state = fed(training.start(), training.sample("gpu/h/0", gpu_util=70.0))
    (gpu,) = view.tiles(state)["gpu"]
    assert (gpu["gpu"], gpu["gpu_util"], gpu["gpu_power_w"]) == ("h/0", 70.0, None)
    assert gpu["name"] is None


def test_a_gpu_is_called_by_its_product() -> None:
    """As the agent of its host says; whatever else it says is passed over."""
    training = Training()
    gpus = ["odd", {"gpu": "1", "name": "Other"}, {"gpu": "0", "name": "Big GPU"}]
    told = training.event("agent", pid=1, host_facts={"gpus": gpus})
    state = fed(training.start(), training.batch(0, told), training.sample("gpu/h/0", gpu_util=70.0))
    (gpu,) = view.tiles(state)["gpu"]
    assert gpu["name"] == "Big GPU"


def test_ranks() -> None:
    """Each rank with its last completed step, its phase, and how it ended."""
    training = Training(ranks=2)
    now = training.event("live", rank=0, phase="backward", since_s=0.2)
    state = fed(training.start(), training.batch(10, now, training.killed(1)))
    one, other = view.ranks(state)
    assert one == {"rank": 0, "phase": "backward", "phase_since_s": 0.2, "step": 9, "ended": None}
    assert (other["ended"]["signal"], other["ended"]["last_step"]) == ("SIGKILL", 9)


def test_rows_are_told_once() -> None:
    """Each row is in one update and in no other, JSON-safe."""
    training = Training()
    state, row_counts, times = fed(training.start()), {}, []
    for _ in range(6):
        state.take(training.batch(25))
        state.take(training.sample("proc/0", rss_mb=500.0))
        rows = view.fresh_rows(state, row_counts)
        json.dumps(rows, allow_nan=False)
        times += rows["proc/0"]["t_s"]
    assert times == sorted(set(times))
    assert len(times) == 6
    assert view.fresh_rows(state, row_counts) == {}


def test_newest_rows() -> None:
    """A snapshot has the newest rows of each stream but the ranks' own."""
    training = Training()
    state = fed(training.start(), *(training.batch(50) for _ in range(200)))
    rows = view.newest_rows(state)
    assert list(rows) == ["run"]
    assert len(rows["run"]["t_s"]) == view.SNAPSHOT_ROWS
    assert rows["run"]["t_s"][-1] == pytest.approx(200.0)


def test_epoch() -> None:
    """The newest epoch, None where nobody counts them."""
    training = Training()
    assert view.epoch(fed(training.start(), training.batch(5))) is None
    assert view.epoch(fed(training.batch(5, epoch=2.0), training.batch(5, epoch=3.0))) == 3


def test_inference_is_told_by_what_is_not_trained() -> None:
    """No backward pass and no optimizer step in it; where neither was counted, nothing is claimed."""
    nothing = {"backward_calls": 0.0, "optimizer_steps": 0.0}
    training = Training()
    told = view.inference(fed(training.start(), training.batch(100, **nothing)))
    assert told is not None
    assert told["p50"] == told["p99"] == pytest.approx(20)
    assert (told["batch"], told["samples_per_s"]) == (32, pytest.approx(1600))
    for trained in ({}, {**nothing, "backward_calls": 1.0}, {**nothing, "optimizer_steps": 1.0}):
        training = Training()
        assert view.inference(fed(training.start(), training.batch(100, **trained))) is None


def test_inference_without_batches_has_its_latency_alone() -> None:
    """Requests of unknown size."""
    training = Training()
    nothing = {"backward_calls": 0.0, "optimizer_steps": 0.0, "samples": float("nan")}
    told = view.inference(fed(training.start(), training.batch(100, **nothing)))
    assert told is not None
    assert set(told) == {"p50", "p95", "p99"}
