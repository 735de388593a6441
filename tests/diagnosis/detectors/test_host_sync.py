"""Reading values out of tensors one by one is told by the stacks that show it."""

from __future__ import annotations

from typing import Any

import pytest
from windows import event, rank, window

from monitor.diagnosis.detectors.host_sync import LOST_SHARE, detect
from monitor.diagnosis.finding import Finding

STORM = {
    "file": "/home/me/train.py", "line": 36, "func": "main", "count": 2000,
    "source": "scalars[name, kind] = [t.norm().item(), t.mean().item(), t.std().item()]",
    "leaf_func": "norm", "leaf_file": "/venv/lib/python3.11/site-packages/torch/_tensor.py",
}  # fmt: skip


def found(frame: dict[str, Any] = STORM, other: float = 8.0, device: str = "cpu") -> Finding | None:
    told = event("other_stack", total=frame["count"], frames=[frame])
    facts = {"model/1": {"class": "Net", "device": device}}
    return detect(window(rank(other=other, facts=facts), events=[told]))


@pytest.mark.parametrize(("factor", "speaks"), [(0.99, False), (1.01, True)])
def test_it_speaks_from_its_threshold_on(factor: float, speaks: bool):
    """Just below the share that counts it is silent, just above it speaks."""
    share = LOST_SHARE * factor
    assert (found(other=16 * share / (1 - share)) is not None) == speaks


def test_a_storm_of_items_is_found():
    """Norms and means of every weight in every step: line and promise."""
    one = found()
    assert one is not None
    assert one.gain is not None
    assert (one.location, one.gain.speedup) == ("train.py:36", pytest.approx(24 / 16, rel=0.01))


def test_logging_is_not_its_business():
    """A line that logs is logging, though it reads a value too."""
    assert (
        found(
            {**STORM, "source": "print(loss.item())", "leaf_func": "main", "leaf_file": "/home/me/train.py"}
        )
        is None
    )


def test_an_item_a_step_is_fine():
    """Reading one loss takes next to nothing on a CPU (ok_item_each_step)."""
    assert found(other=0.1) is None


def test_on_a_gpu_it_is_information():
    """There the line also waits for the step's own arithmetic, so nothing is promised."""
    one = found(device="cuda:0")
    assert one is not None
    assert (one.severity, one.gain) == ("info", None)
