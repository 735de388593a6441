"""The report's numbers are those of the whole run."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from batches import STEP, Training
from hypothesis import given, settings
from hypothesis import strategies as st
from scratch import scratch

from monitor.batch import Batch, Block
from monitor.report.measure import Measures, measure, quick_measures
from monitor.schema import PHASES
from monitor.store import Store


def measured(path: Path, *batches: Batch) -> Measures:
    with Store(path, create=True) as store:
        for batch in batches:
            store.append(batch)
        return measure(store)


def test_steady_run(tmp_path: Path) -> None:
    """Every number of a run whose every step is alike."""
    training = Training()
    got = measured(tmp_path / "s", training.start(), training.batch(400), training.batch(800))
    assert got.steps == 1200
    assert got.duration_s == pytest.approx(24.0)
    assert got.throughput == {
        "steps_per_s": pytest.approx(50),
        "samples_per_s": pytest.approx(1600),
        "tokens_per_s": None,
    }
    assert got.step_ms == pytest.approx({"p50": 20.0, "p95": 20.0, "p99": 20.0})
    assert got.time_share == pytest.approx({phase: STEP.get(phase, 0.0) / 20 for phase in PHASES})
    assert got.dropped_records == 0


def test_slow_first_step(tmp_path: Path) -> None:
    """The first step counts for the duration, and for nothing else."""
    training = Training(phases={"forward": 10_000.0})
    first = training.batch(1)
    training.phases = dict(STEP)
    got = measured(tmp_path / "s", first, training.batch(100))
    assert got.duration_s == pytest.approx(12.0)
    assert got.throughput["steps_per_s"] == pytest.approx(50)
    assert got.step_ms["p99"] == pytest.approx(20)
    assert got.time_share["data"] == pytest.approx(0.3)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(*[st.floats(0, 500, width=32)] * len(PHASES)), min_size=2, max_size=60))
def test_shares_sum_to_one(steps: list[tuple[float, ...]]) -> None:
    """Whatever the phases: shares sum to 1, and each is its part of the wall time after the first step."""
    table = np.array(steps, np.float32)
    taken = table.sum(axis=1, dtype=np.float64)
    ends = 1.0 + np.cumsum(taken) / 1e3
    columns = {f"{phase}_ms": array("f", table[:, i]) for i, phase in enumerate(PHASES)}
    columns["step_ms"] = array("f", taken.astype(np.float32))
    with scratch() as folder, Store(Path(folder) / "s", create=True) as store:
        store.append(Batch("r", "h", 1, 1.0, (Block("rank/0", 0, array("d", ends), columns),)))
        got = measure(store)
    if taken[1:].sum() < 1e-3:
        return
    assert sum(value or 0.0 for value in got.time_share.values()) == pytest.approx(1)
    data_ms = table[1:, 0].sum(dtype=np.float64)
    if not table[:, 0].any():
        assert got.time_share["data"] in (0.0, None)
        return
    assert got.time_share["data"] == pytest.approx(data_ms / taken[1:].sum(), abs=1e-3)


def test_time_that_nothing_claims_is_other(tmp_path: Path) -> None:
    """Where the phases do not cover the wall time, the rest is `other`, and no phase grows."""
    ends = array("d", np.arange(1, 11) * 0.1)
    columns = {"data_ms": array("f", [30.0] * 10), "step_ms": array("f", [30.0] * 10)}
    got = measured(tmp_path / "s", Batch("r", "h", 1, 1.0, (Block("rank/0", 0, ends, columns),)))
    assert got.time_share["data"] == pytest.approx(0.3)
    assert got.time_share["other"] == pytest.approx(0.7)


def test_missing_rows(tmp_path: Path) -> None:
    """Rows that were lost are counted, and leave the shares to those that are known."""
    training = Training()
    first = training.batch(100)
    training.batch(300)
    lost = training.event("dropped", records=300)
    got = measured(tmp_path / "s", first, training.batch(100, lost))
    assert got.steps == 500
    assert got.dropped_records == 300
    assert got.throughput["steps_per_s"] == pytest.approx(50)
    assert got.throughput["samples_per_s"] == pytest.approx(1600)
    assert got.time_share["data"] == pytest.approx(0.3)


def test_one_step(tmp_path: Path) -> None:
    """One step has no rate and no shares; null, not zero."""
    got = measured(tmp_path / "s", Training().batch(1))
    assert got.steps == 1
    assert got.duration_s == pytest.approx(0.02)
    assert set(got.throughput.values()) == set(got.time_share.values()) == {None}
    assert got.step_ms["p50"] == pytest.approx(20)


def test_no_step(tmp_path: Path) -> None:
    """A run that took no step has no number at all."""
    got = measured(tmp_path / "s", Training().start())
    assert got == Measures()
    assert list(got.time_share) == list(PHASES)


def test_several_ranks(tmp_path: Path) -> None:
    """Steps are the most of any rank, shares and rates means, samples sums."""
    fast, slow = Training(ranks=2), Training(ranks=2, phases={**STEP, "data": 26.0})
    one, other = fast.batch(400).blocks[0], slow.batch(200).blocks[1]
    got = measured(tmp_path / "s", Batch("r", "h", 1, 8.0, (one, other)))
    assert got.steps == 400
    assert got.throughput["steps_per_s"] == pytest.approx((50 + 25) / 2)
    assert got.throughput["samples_per_s"] == pytest.approx(32 * (50 + 25))
    assert got.time_share["data"] == pytest.approx((6 / 20 + 26 / 40) / 2)


def test_memory(tmp_path: Path) -> None:
    """Memory is the peak of the process tree, else of the main process; null where nobody looked."""
    training = Training()
    assert measured(tmp_path / "none", training.start()).memory["rss_mb"] is None
    samples = [training.sample("proc/0", rss_mb=value) for value in (300.0, 900.0, 400.0)]
    assert measured(tmp_path / "rss", *samples).memory["rss_mb"] == 900
    tree = [training.sample("proc/1", rss_mb=500.0, tree_pss_mb=value) for value in (700.0, 1200.0)]
    assert measured(tmp_path / "tree", *tree).memory["rss_mb"] == 1200
    assert measured(tmp_path / "cuda", *tree).memory["cuda_allocated_mb"] is None


def test_brief(tmp_path: Path) -> None:
    """The list of runs tells steps, rate and duration of the rank that came furthest."""
    training = Training()
    with Store(tmp_path / "s", create=True) as store:
        assert quick_measures(store) == {"steps": 0, "steps_per_s": None, "duration_s": None}
        store.append(training.batch(101))
        assert quick_measures(store) == pytest.approx({"steps": 101, "steps_per_s": 50.0, "duration_s": 2.0})


def test_ranks_told_in_averages_count_in_throughput(tmp_path: Path) -> None:
    """Seven of eight ranks have no rows of their own; samples are those of all, and the report says so."""
    training, rows = Training(ranks=1), 20
    start = training.start(world_size=32)
    told = {"kind": "reduced", "t_s": 0.0, "ranks": list(range(8)), "full": [0]}
    columns = {
        "rank": array("f", [rank for _ in range(rows) for rank in range(8)]),
        "steps": array("f", [50.0] * 8 * rows),
        "all_samples": array("f", [50.0 * (16 if rank else 32) for _ in range(rows) for rank in range(8)]),
    }
    briefs = Block("brief/h", 0, array("d", [1.0 + i // 8 for i in range(8 * rows)]), columns)
    steps = training.batch(1000)
    more = Batch(training.run, "h", training.seq + 1, 20.0, (briefs,), (told,))
    got = measured(tmp_path / "s", start, steps, more)
    assert got.reduced_ranks == 7
    assert got.throughput["samples_per_s"] == pytest.approx(50 * (32 + 7 * 16))
    assert got.throughput["tokens_per_s"] is None


@pytest.mark.parametrize(
    ("cuda", "share"), [(None, 0.0), ({"h2d_watched": True}, 0.0), ({"h2d_watched": False}, None)]
)
def test_copies_that_nothing_could_time_are_not_known(
    tmp_path: Path, cuda: dict[str, Any] | None, share: float | None
) -> None:
    """A loop by hand on a device: its copies are in `other`, and "none" would be invented."""
    training = Training()
    facts = [training.event("fact", rank=0, name="cuda", value=cuda)] if cuda else []
    got = measured(tmp_path / "s", training.start(), training.batch(100, *facts))
    assert got.time_share["h2d"] == share
    assert sum(value or 0.0 for value in got.time_share.values()) == pytest.approx(1)


def test_copies_that_were_timed_are_told(tmp_path: Path) -> None:
    """Also where not every rank's framework could be watched."""
    training = Training(phases={**STEP, "h2d": 5.0})
    fact = training.event("fact", rank=0, name="cuda", value={"h2d_watched": False})
    got = measured(tmp_path / "s", training.start(), training.batch(100, fact))
    assert got.time_share["h2d"] == pytest.approx(0.2)


def test_waiting_that_no_loader_could_tell_is_not_known(tmp_path: Path) -> None:
    """Batches from somewhere unwatched are in `other`, and "none" would be invented; stacks may tell them."""
    training = Training(phases={"forward": 1.0, "backward": 1.0, "other": 18.0})
    got = measured(tmp_path / "s", training.start(), training.batch(100))
    assert got.time_share["data"] is None
    assert got.time_share["other"] == pytest.approx(0.9)
    assert got.samples == {}
    stack = {"step_source": "for x in batches():", "leaf_file": "/me/data.py", "count": 80}
    event = training.event("other_stack", rank=0, total=80, in_modules=0, frames=[stack])
    got = measured(tmp_path / "t", training.start(), training.batch(100, event))
    assert got.time_share["data"] == pytest.approx(0.9)
    assert got.time_share["other"] == pytest.approx(0.0, abs=1e-9)
    assert got.samples == {"data": 80}


def test_a_loader_that_was_asked_once_was_heard_of(tmp_path: Path) -> None:
    """One batch that is trained on again and again: the later steps waited for nothing, and that is known."""
    ends = array("d", np.arange(1, 11) * 0.1)
    columns = {"data_ms": array("f", [30.0] + [0.0] * 9), "other_ms": array("f", [70.0] * 10)}
    columns["step_ms"] = array("f", [100.0] + [70.0] * 9)
    got = measured(tmp_path / "s", Batch("r", "h", 1, 1.0, (Block("rank/0", 0, ends, columns),)))
    assert got.time_share["data"] == 0.0


def test_memory_of_the_devices(tmp_path: Path) -> None:
    """Peaks summed over ranks, and the share of what was reserved that lay in pieces."""
    training = Training(ranks=2)
    got = measured(
        tmp_path / "s",
        training.start(),
        training.batch(100),
        training.sample("cuda/0", cuda_peak_mb=60_000, cuda_reserved_mb=66_000, cuda_split_mb=6_000),
        training.sample("cuda/1", cuda_peak_mb=50_000, cuda_reserved_mb=54_000, cuda_split_mb=0),
        training.sample("cuda/0", cuda_peak_mb=61_000, cuda_reserved_mb=60_000, cuda_split_mb=3_000),
    )
    assert got.memory["cuda_allocated_mb"] == pytest.approx(111_000)
    assert got.memory["cuda_reserved_mb"] == pytest.approx(120_000)
    assert got.memory["cuda_fragmentation"] == pytest.approx(9 / 180)
    assert got.memory["rss_mb"] is None


def test_an_allocator_that_tells_no_pieces(tmp_path: Path) -> None:
    """Unmeasured is null, not 0; without a device everything is."""
    training = Training()
    batches = training.start(), training.sample("cuda/0", cuda_peak_mb=5.0, cuda_reserved_mb=9.0)
    got = measured(tmp_path / "s", *batches).memory
    assert (got["cuda_reserved_mb"], got["cuda_fragmentation"]) == (9, None)
    none = measured(tmp_path / "t", training.start(), training.sample("proc/0", rss_mb=5.0)).memory
    assert {key: value for key, value in none.items() if value is not None} == {"rss_mb": 5}
