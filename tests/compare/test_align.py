"""Curves on one axis, and the loss where both runs have been."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from finished_runs import keep, steps

from monitor.compare import read
from monitor.compare.align import POINTS, curves, losses
from monitor.compare.side import Side


def falling(count: int, rate: float) -> np.ndarray:
    """A loss that falls by `rate` a step, from 2."""
    return 2.0 * np.exp(-rate * np.arange(count))


@pytest.fixture
def sides(tmp_path: Path) -> list[Side]:
    """One of 1000 steps of 20 ms, and one of 500 steps of 40 ms that learns twice as fast a step."""
    quick = keep(tmp_path, "quick", np.full(1000, 20.0), loss=falling(1000, 0.002))
    slow = keep(tmp_path, "slow", np.full(500, 40.0), loss=falling(500, 0.004))
    return [read(quick), read(slow)]


def test_by_step(sides: list[Side]) -> None:
    """Both run along step numbers, in points of the same width, each as far as it came."""
    quick, slow = curves(sides, "step")
    assert (quick["run"], slow["run"]) == ("quick", "slow")
    assert len(quick["x"]) <= POINTS
    assert quick["x"][:100] == slow["x"][:100]
    assert quick["x"][-1] == pytest.approx(1000, rel=0.01)
    assert slow["x"][-1] == pytest.approx(500, rel=0.02)
    assert set(quick["step_ms"]) == {20.0}


def test_by_time(sides: list[Side]) -> None:
    """Both run along seconds of training; here they took as long as each other."""
    quick, slow = curves(sides, "time")
    assert quick["x"][-1] == pytest.approx(20.0, rel=0.01)
    assert slow["x"][-1] == pytest.approx(20.0, rel=0.01)


def test_every_step_is_in_its_point(tmp_path: Path) -> None:
    """A point is the mean of its steps; where no loss was measured it is null, not zero."""
    loss = np.where(np.arange(600) < 300, 1.5, np.nan)
    (curve,) = curves([read(keep(tmp_path, "a", np.arange(600) + 1.0, loss=loss))], "step")
    assert curve["step_ms"][0] == pytest.approx(1.5)
    assert curve["loss"][0] == 1.5
    assert curve["loss"][-1] is None


def test_loss_at_equal_step(sides: list[Side]) -> None:
    """At the last step that both took, as the mean of the ten before it."""
    found = losses(*sides, "step")
    assert found["loss_at"]["step"] == 499
    quick, slow = found["loss_at"]["loss"]
    assert quick == pytest.approx(falling(1000, 0.002)[490:500].mean(), rel=1e-4)
    assert slow == pytest.approx(falling(500, 0.004)[490:500].mean(), rel=1e-4)
    assert found["loss"][0] == pytest.approx(falling(1000, 0.002)[-10:].mean(), rel=1e-4)


def test_loss_at_equal_time(sides: list[Side]) -> None:
    """The shorter one's end: here both have their last."""
    found = losses(*sides, "time")
    assert found["loss_at"]["time_s"] == pytest.approx(20.0, rel=0.01)
    assert found["loss_at"]["loss"][1] == pytest.approx(found["loss"][1], rel=0.01)


def test_no_loss(tmp_path: Path) -> None:
    """Where one of them has none, there is nothing to compare."""
    found = losses(read(keep(tmp_path, "a", loss=1.0)), read(keep(tmp_path, "b")), "step")
    assert found == {"loss": [1.0, None], "loss_at": None}


def test_no_steps(tmp_path: Path) -> None:
    """A run without steps has an empty curve."""
    sides = [read(keep(tmp_path, "a", np.empty(0))), read(keep(tmp_path, "b", steps(50)))]
    for align in ("step", "time"):
        assert curves(sides, align)[0] == {"run": "a", "x": [], "step_ms": [], "loss": []}
        assert losses(*sides, align)["loss_at"] is None
