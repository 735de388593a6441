"""Every rank's time by phase, over the whole run, in bounded memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.run_state.rank_timeline import COLUMNS, KEYS, RECENT_S, RankTimeline
from monitor.schema import PHASES


def steps(ends: list[float], **ms: float) -> dict[str, list[float]]:
    """Columns of equal steps."""
    table = {key: [ms.get(key.removesuffix("_ms"), 0.0)] * len(ends) for key in KEYS if key != "step_ms"}
    return {**table, "step_ms": [sum(ms.values())] * len(ends)}


def fed(ends: list[float], rank: int = 0, **ms: float) -> RankTimeline:
    timeline = RankTimeline()
    timeline.add(rank, ends, steps(ends, **ms))
    return timeline


def test_means_and_the_phase_that_takes_most() -> None:
    """A column tells the mean of its steps, and in which phase most of its time went."""
    seen = fed([0.1, 0.2, 1.1, 1.2], forward=60.0, comm=40.0).between(0.0, 2.0, 2)
    assert seen.t.tolist() == pytest.approx([0.5, 1.0 + 0.25], abs=0.3)
    assert seen.mean("step_ms")[0] == pytest.approx([100.0, 100.0])
    assert seen.mean("comm_ms")[0] == pytest.approx([40.0, 40.0])
    assert seen.phase()[0].tolist() == [PHASES.index("forward")] * 2


def test_a_hang_is_empty_from_then_on() -> None:
    """Where a rank ended no step there is no value, and none is invented."""
    timeline = fed([0.1, 0.2, 0.3], forward=100.0)
    timeline.add(1, [9.9], steps([9.9], forward=100.0))
    seen = timeline.between(0.0, 10.0, 10)
    assert np.isfinite(seen.mean("step_ms")[0]).tolist() == [True] + [False] * 9
    assert np.isnan(seen.phase()[0][1:]).all()


def test_a_long_step_stands_in_all_it_covers() -> None:
    """A step of four seconds that ended at five fills the columns from the first second on."""
    seen = fed([5.0], comm=4000.0).between(0.0, 5.5, 11)
    known = np.isfinite(seen.mean("step_ms")[0])
    assert known.tolist() == [t > 1.0 for t in seen.t]
    assert set(seen.phase()[0][known].tolist()) == {float(PHASES.index("comm"))}


@pytest.mark.parametrize("until_s", [10.0, 30.0, 119.0])
def test_a_stretch_of_many_steps_stands_in_all_it_covers(until_s: float) -> None:
    """A rank that is told in averages over longer than a column worked all the time: no hole is invented."""
    timeline, ends = RankTimeline(), np.arange(0.8, 120.0, 0.8)
    for rank, late_s in ((0, 0.0), (1, 0.004)):  # the same steps end a little later elsewhere
        rows = {**steps(ends.tolist(), forward=75.0, comm=25.0), "steps": np.full(len(ends), 8.0)}
        timeline.add_mixed(np.full(len(ends), rank), ends + late_s, rows)
    seen = timeline.between(0.0, until_s, 120)
    inside = seen.t < until_s - 0.8
    assert inside.sum() > 15
    for values in (seen.phase(), seen.mean("step_ms"), seen.mean("comm_ms")):
        assert np.isfinite(values[:, inside]).all()
    assert seen.mean("step_ms")[:, inside] == pytest.approx(100.0)


def test_a_pause_between_stretches_stays_empty() -> None:
    """Only the time that its steps took is filled: a rank that stood still for ten seconds shows it."""
    timeline = RankTimeline()
    rows = {**steps([1.6, 12.4], forward=100.0), "steps": [8.0, 8.0]}
    timeline.add_mixed(np.array([0, 0]), np.array([1.6, 12.4]), rows)
    seen = timeline.between(0.0, 13.0, 120)
    empty = np.isnan(seen.phase()[0])
    assert empty[(seen.t > 2.0) & (seen.t < 11.4)].all()
    assert not empty[(seen.t > 11.8) & (seen.t < 12.4)].any()


def test_the_last_minutes_stay_fine_while_the_whole_gets_coarse() -> None:
    """A run of hours keeps few columns, and its last minute is still told by half seconds."""
    ends = [float(second) for second in range(1, 7201)]
    timeline = fed(ends, forward=1000.0)
    assert len(timeline.between(0.0, 7200.0, 2 * COLUMNS).t) <= COLUMNS
    assert timeline.between(7140.0, 7200.0, 240).column_s == RECENT_S
    assert timeline.between(0.0, 7200.0, 240).mean("step_ms")[0] == pytest.approx(1000.0)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0.0, 5000.0), min_size=1, max_size=300), st.integers(1, 240))
def test_no_step_is_lost_or_counted_twice(ends: list[float], columns: int) -> None:
    """However it is asked, a picture of the whole run has every step once."""
    seen = fed(sorted(ends), backward=10.0).between(0.0, 5001.0, columns)
    assert len(seen.t) <= columns
    assert seen.steps.sum() == len(ends)
    assert seen.over("step_ms")[0] == pytest.approx(10.0)


def test_a_row_may_stand_for_several_steps() -> None:
    """Means over a stretch weigh as many steps as they are of; a row of no steps counts nothing."""
    timeline = RankTimeline()
    table = {key: [10.0, 20.0, 99.0] for key in KEYS}
    timeline.add_mixed(np.array([4, 4, 7]), np.array([0.1, 0.2, 0.2]), {**table, "steps": [1.0, 3.0, 0.0]})
    seen = timeline.between(0.0, 0.2, 1)
    assert seen.ranks.tolist() == [4]
    assert seen.over("step_ms")[0] == pytest.approx(17.5)


def test_what_was_not_measured_is_not_zero() -> None:
    """A column that a rank does not have is unknown, and takes no part in which phase is longest."""
    timeline = RankTimeline()
    timeline.add(0, [0.1], {"step_ms": [5.0]})
    seen = timeline.between(0.0, 0.2, 1)
    assert seen.over("step_ms").tolist() == [5.0]
    assert np.isnan(seen.over("comm_ms")).all()
    assert np.isnan(seen.phase()).all()


def test_nothing_yet() -> None:
    """A run without a step has a picture without ranks."""
    timeline = RankTimeline()
    timeline.add(0, [], {})
    seen = timeline.between(0.0, 10.0, 100)
    assert (len(seen.ranks), seen.mean("step_ms").shape[0]) == (0, 0)


def test_a_time_beyond_all_reason_moves_nothing() -> None:
    """One mad clock does not make the whole run one column."""
    timeline = fed([0.1, 1e300], forward=1.0)
    assert timeline.between(0.0, 1.0, 10).steps.sum() == 1


@pytest.mark.parametrize("end_s", [float("inf"), 1e300, 1e12])
def test_an_end_beyond_all_time(end_s: float) -> None:
    """A damaged store's last time may be any: what was measured is shown."""
    assert fed([0.1, 0.2], forward=60.0).between(0.0, end_s, 10).steps.sum() == 2
