"""Reading values out of tensors one by one is told by the stacks that show it."""

from __future__ import annotations

from typing import Any

import pytest
from devices import on_gpu
from windows import event, rank, window

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.time.host_sync import LOST_SHARE, detect

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


def on_device(storm: bool, gap: float, **rows: Any) -> Finding | None:
    told = [event("other_stack", total=2000, frames=[STORM])] if storm else []
    places = [{"location": "train.py:9", "ms": 1.0}, {"location": "train.py:12", "ms": 700.0}]
    return detect(
        on_gpu(rows={"gpu_gap_ms": gap, **rows}, events=told, facts={"syncs": {"locations": places}})
    )


@pytest.mark.parametrize(("gap", "severity"), [(7.0, "info"), (8.0, "warning")])
def test_on_a_gpu_that_stood_idle_it_is_a_fault(gap: float, severity: str):
    """From the last kernel of a step to the next forward: the host read values meanwhile."""
    one = on_device(True, gap)
    assert one is not None
    assert (one.severity, one.gain, one.evidence["gpu_idle_share_at_most"]) == (severity, None, gap / 50)


def test_waiting_for_data_is_no_idleness_of_its_making():
    """That part of the gap has a finding of its own."""
    one = on_device(True, 20.0, gpu_data_ms=15.0)
    assert one is not None
    assert one.severity == "info"


@pytest.mark.parametrize(("gap", "severity"), [(1.0, "info"), (9.0, "warning")])
def test_explicit_synchronisations_are_counted(gap: float, severity: str):
    """Per step, with the line that waited longest."""
    one = on_device(False, gap, cuda_syncs=40, cuda_sync_ms=500)
    assert one is not None
    assert (one.severity, one.location, one.evidence["synchronisations_per_step"]) == (
        severity,
        "train.py:12",
        2,
    )
    assert one.evidence["waited_share"] == 0.5


def test_a_synchronisation_now_and_then_is_fine():
    """For a log line every hundred steps; or one that hardly waits."""
    assert on_device(False, 9.0, cuda_syncs=1, cuda_sync_ms=900) is None
    assert on_device(False, 9.0, cuda_syncs=20, cuda_sync_ms=20 * 50 * LOST_SHARE * 0.95) is None
