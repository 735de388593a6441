"""Saving that takes a large share of the time is told, with how often to save instead."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from windows import event, every, rank, window

from monitor.diagnosis.detectors.time.checkpoint_stall import INFO_SHARE, SHARE, detect

STEP_MS = 16.0


@pytest.mark.parametrize(
    ("share", "severity"),
    [
        (INFO_SHARE * 0.99, None),
        (INFO_SHARE * 1.01, "info"),
        (SHARE * 0.99, "info"),
        (SHARE * 1.01, "warning"),
    ],
)
def test_it_speaks_from_its_thresholds_on(share: float, severity: str | None):
    """About a tenth is advice, a fifth a fault, less is fine."""
    found = detect(window(checkpoint=every(10, 10 * STEP_MS * share / (1 - share), 0.0)))
    assert (found.severity if found else None) == severity


def test_saving_every_step_is_found():
    """78 ms of saving beside 66 ms of training (ckpt_every_step): place, promise, and how often instead."""
    saves = [event("save", ms=78.0, location="train.py:35"), event("save", ms=79.0, location="train.py:35")]
    found = detect(
        window(rank(60, forward=66, backward=0, optimizer=0, data=0, checkpoint=78.0), events=saves)
    )
    assert found is not None
    assert found.gain is not None
    assert found.gain.speedup == pytest.approx(144 / 66, rel=0.01)
    assert (found.location, found.snippet.splitlines()[0]) == ("train.py:35", "if step % 60 == 0:")


@pytest.mark.parametrize("at", [[100], [50, 199]])
def test_a_save_now_and_then_is_fine(at: list[int]):
    """One or two saves, however slow, are no period."""
    saving = np.zeros(200)
    saving[at] = 5_000
    assert detect(window(checkpoint=saving)) is None


@given(when=st.integers(150, 200))
@settings(deadline=None, max_examples=20)
def test_it_does_not_matter_when_it_looks(when: int):
    """Shares are taken over whole periods: just before or after a save the same is found."""
    found = detect(window(rank(when, checkpoint=every(25, 200.0, 0.0, when))))
    assert found is not None
    assert found.evidence["checkpoint_share"] == pytest.approx(200 / 600, abs=0.001)


@given(scale=st.floats(0.05, 50))
@settings(deadline=None, max_examples=20)
def test_scaling_time_changes_nothing(scale: float):
    """The rule is relative."""
    times = {"data": 2 * scale, "forward": 5 * scale, "backward": 8 * scale, "optimizer": scale}
    found = detect(window(checkpoint=every(10, 45 * scale, 0.0), **times))
    assert found is not None
    assert found.severity == "warning"
    assert detect(window(checkpoint=every(10, 17 * scale, 0.0), **times)) is None


def test_one_finding_for_all_ranks_alike():
    """Ranks that save are named together."""
    ranks = [rank(number=number, checkpoint=every(5, 100.0 * number, 0.0)) for number in range(3)]
    found = detect(window(*ranks))
    assert found is not None
    assert (found.ranks, found.evidence["save_ms"]) == ((1, 2), 200.0)
