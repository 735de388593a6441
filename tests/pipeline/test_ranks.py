"""Ranks beside each other: worst first, and never against one that only waits."""

from __future__ import annotations

import random
from array import array
from pathlib import Path
from typing import Any

import pytest
from batches import RUN, Training
from finished_runs import LOADER

from monitor.batch import Batch, Block
from monitor.diagnosis.core.finding import Finding
from monitor.pipeline import Pipeline
from monitor.pipeline.ranks import CELLS, Ranks
from monitor.run_state import RunState

ASK: dict[str, Any] = {"begin_s": None, "end_s": None, "columns": 12, "limit": 64, "cells": CELLS}


def late(rank: int, steps: int = 60, ranks: int = 3, comm: float = 8.0, work: float = 12.0) -> RunState:
    """Ranks of equally long steps, of which one works while the others wait."""
    state = RunState(RUN)
    told = [Training(ranks=ranks, phases={}) for _ in range(1)]
    state.take(told[0].start())
    for number in range(ranks):
        mine = (work + comm - 1.0, 1.0) if number == rank else (work, comm)
        training = Training(ranks=1, phases={"backward": mine[0], "comm": mine[1]})
        block = training.rows(f"rank/{number}", steps, {})
        state.take(Batch(RUN, "h", 2 + number, steps * 0.02, (block,)))
    return state


def table(state: RunState, *standing: Finding, **asked: Any) -> dict[str, Any]:
    return Ranks.of(state, standing).table(**{**ASK, **asked})


def test_the_one_the_others_wait_for_comes_first() -> None:
    """It spends the least on communication and comes last to every exchange."""
    seen = table(late(2))
    first = seen["ranks"][0]
    assert (first["rank"], first["last_share"]) == (2, 1.0)
    assert [rank["last_share"] for rank in seen["ranks"][1:]] == [0.0, 0.0]
    assert first["comm_share"] == pytest.approx(0.05)
    assert {rank["worst"] for rank in seen["ranks"]} == {None}


@pytest.mark.parametrize(("waited_for", "order"), [(None, [0, 1, 2, 3, 4, 5]), (4, [4, 0, 1, 2, 3, 5])])
def test_ranks_that_are_alike_keep_their_places(waited_for: int | None, order: list[int]) -> None:
    """What differs by chance orders nothing: else a page that asks every two seconds never stands still."""
    rng = random.Random(3)
    for steps in (60, 75, 90, 105):
        state = RunState(RUN)
        state.take(Training(ranks=6, phases={}).start())
        ends = array("d", [0.02 * (step + 1) for step in range(steps)])
        for number in range(6):
            waits = [rng.uniform(7.0, 9.0) / (4 if number == waited_for else 1) for _ in range(steps)]
            columns = {
                "backward_ms": [20.0 - wait for wait in waits],
                "comm_ms": waits,
                "step_ms": [20.0] * steps,
            }
            block = Block(f"rank/{number}", 0, ends, {key: array("f", of) for key, of in columns.items()})
            state.take(Batch(RUN, "h", 2 + number, steps * 0.02, (block,)))
        assert [rank["rank"] for rank in table(state)["ranks"]] == order


def test_what_findings_blame_is_named() -> None:
    """The same ranks as in the findings, and none that they do not blame."""
    straggler = Finding("straggler", "warning", "t", "rank 1 is late: other", ranks=(1,))
    seen = table(late(1), straggler)
    assert [(rank["rank"], rank["worst"]) for rank in seen["ranks"]] == [(1, "late"), (0, None), (2, None)]


def test_a_finding_about_all_blames_nobody() -> None:
    """Batches of unequal size make all wait in turn; a hang that nobody explains stops all."""
    for code in ("straggler", "stall"):
        everyone = Finding(code, "warning", "t", "batches of unequal size", ranks=(0, 1, 2))
        assert {rank["worst"] for rank in table(late(1), everyone)["ranks"]} == {None}


def test_a_dead_rank_comes_before_all_others() -> None:
    """With how it ended; those that merely ended are no worse than others."""
    state, training = late(2), Training(ranks=3)
    state.note(training.killed(0), "h")
    state.note(training.end(1), "h")
    seen = {rank["rank"]: rank for rank in table(state)["ranks"]}
    assert next(iter(seen)) == 0
    assert (seen[0]["worst"], seen[0]["ended"]["signal"], seen[0]["ended"]["clean"]) == (
        "died",
        "SIGKILL",
        False,
    )
    assert (seen[1]["worst"], seen[1]["ended"]["clean"]) == (None, True)
    assert seen[0]["phase"] is None


def test_where_each_is_now() -> None:
    """The phase that its agent saw it in, and since when."""
    state = late(0)
    state.note({"kind": "live", "t_s": 1.2, "rank": 1, "phase": "comm", "since_s": 1.1, "step": 60}, "h")
    seen = {rank["rank"]: rank for rank in table(state)["ranks"]}
    assert (seen[1]["phase"], seen[1]["phase_since_s"], seen[0]["phase"]) == ("comm", 1.1, None)


def test_cells_stand_in_the_order_of_the_ranks() -> None:
    """One row a rank, one value a column, and only the matrices that were asked for."""
    seen = table(late(2), limit=2, cells=["comm_ms"])
    assert list(seen["cells"]) == ["comm_ms"]
    assert [len(row) for row in seen["cells"]["comm_ms"]] == [len(seen["t"])] * 2
    first, second = (next(v for v in row if v is not None) for row in seen["cells"]["comm_ms"])
    assert (first, second) == pytest.approx((1.0, 8.0))


def test_a_band_has_the_least_the_middle_and_the_greatest() -> None:
    """And says which ranks those are."""
    seen = Ranks.of(late(2), []).band("comm_ms", None, None, 1)
    assert (seen["min"], seen["median"], seen["max"]) == ([1.0], [8.0], [8.0])
    assert (seen["min_rank"], seen["ranks"], seen["unit"]) == ([2], [3], "ms")
    share = Ranks.of(late(2), []).band("comm_share", None, None, 1)
    assert (share["max"], share["unit"]) == ([0.4], "")


def test_a_run_without_a_step_yet() -> None:
    """Ranks are known before they are measured: everything else is null or empty."""
    state = RunState(RUN)
    state.take(Training(ranks=2).start())
    seen = table(state)
    assert [rank["step_ms"] for rank in seen["ranks"]] == [None, None]
    assert [rank["last_share"] for rank in seen["ranks"]] == [None, None]
    band = Ranks.of(state, []).band("step_ms", None, None, 10)
    assert set(band["median"]) <= {None}


def test_a_finished_run_is_told_from_its_store(tmp_path: Path) -> None:
    """As it was told while it lived, also by another hub; and a run that is not there is none."""
    training, asked = Training(ranks=2), {**ASK, "columns": 4}
    pipeline = Pipeline(tmp_path)
    for batch in (training.start(), training.batch(100), training.batch(0, training.end(0), training.end(1))):
        pipeline.take(batch)
    lived = pipeline.ranks(RUN, **asked)
    pipeline.close()
    later = Pipeline(tmp_path)
    assert later.ranks(RUN, **asked) == lived
    assert later.band(RUN, metric="step_ms", begin_s=None, end_s=None, points=4) is not None
    assert later.ranks("nobody", **asked) is None
    later.close()


def test_more_steps_than_are_read_again_are_told_all_the_same(tmp_path: Path) -> None:
    """A long run seen again shows its beginning too."""
    training = Training(phases={"forward": 10.0})
    pipeline = Pipeline(tmp_path)
    for batch in (training.start(), *(training.batch(5000) for _ in range(5))):
        pipeline.take(batch)
    pipeline.close()
    later = Pipeline(tmp_path)
    seen = later.band(RUN, metric="forward_ms", begin_s=None, end_s=None, points=100)
    later.close()
    assert seen is not None
    assert None not in seen["median"]
    assert seen["median"] == pytest.approx([10.0] * len(seen["t"]), rel=1e-3)


def two_ranks(*lengths: int) -> tuple[RunState, Training]:
    """A run whose ranks' training loaders have so many batches."""
    state, training = RunState(RUN), Training(ranks=len(lengths))
    state.take(training.start())
    for rank, length in enumerate(lengths):
        for name, value in (("ddp", {"join": False}), ("loader/1", {**LOADER, "length": length})):
            state.note(training.event("fact", rank=rank, name=name, value=value), "h")
    return state, training


def test_unequal_numbers_of_batches_are_told_while_it_is_not_too_late() -> None:
    """While all ranks go on; once one has ended there is nothing left to be told."""
    state, training = two_ranks(51, 50)
    assert table(state)["batches"] == (50, 51)
    state.note(training.end(1), "h")
    assert table(state)["batches"] is None


def test_equal_numbers_and_ranks_not_seen_are_told_as_nothing() -> None:
    """Of a rank that has not come nobody knows."""
    assert table(two_ranks(50, 50)[0])["batches"] is None
    state, _ = two_ranks(50, 51)
    state.about["world_size"] = 3
    assert table(state)["batches"] is None
