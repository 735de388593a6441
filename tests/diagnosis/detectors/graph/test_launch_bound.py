"""A GPU that is done as soon as the host is waits for launches; one that is behind does not."""

from __future__ import annotations

from typing import Any

import pytest
from devices import on_gpu

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.graph.launch_bound import LOW_UTIL, detect
from monitor.diagnosis.signals.cuda_device import CAUGHT_UP, STARVED_SHARE

#: A step of 20 ms on the GPU, 17 of them in phases at whose end it was done.
STARVED = {
    "gpu_step_ms": 20,
    "gpu_forward_ms": 7,
    "gpu_backward_ms": 9,
    "gpu_starved_ms": 17,
    "gpu_caught_up": 1.0,
}


def found(util: float = 35, facts: Any = None, **rows: Any) -> Finding | None:
    return detect(on_gpu(rows={**STARVED, **rows}, gpu={"gpu_util": util}, other=0.0, facts=facts))


def test_it_tells_what_was_seen() -> None:
    """An upper bound, called that, and no promise."""
    one = found()
    assert one is not None
    assert (one.severity, one.gain) == ("warning", None)
    assert one.evidence["starved_share_at_most"] == pytest.approx(0.85)
    assert one.evidence["utilisation_percent"] == 35


@pytest.mark.parametrize("util", [LOW_UTIL + 1, float("nan")])
def test_a_gpu_that_is_busy_all_the_same_gets_a_hint(util: float) -> None:
    """Kernels may fill the time even so; where utilisation is unknown nobody can tell."""
    one = found(util)
    assert one is not None
    assert one.severity == "info"
    assert ("utilisation_percent" in one.evidence) == (util == util)


@pytest.mark.parametrize(("factor", "speaks"), [(0.98, False), (1.02, True)])
def test_it_speaks_from_its_thresholds_on(factor: float, speaks: bool) -> None:
    """Nearly every step, and most of its time."""
    assert (found(gpu_caught_up=CAUGHT_UP * factor) is not None) == speaks
    assert (found(gpu_starved_ms=20 * STARVED_SHARE * factor) is not None) == speaks


def test_rows_count_by_the_steps_they_timed() -> None:
    """One row with one odd step outweighs nothing."""
    timed, done = [1] + [18] * 20, [0.0] + [1.0] * 20
    assert found(gpu_timed=timed, gpu_caught_up=done) is not None


def test_compiled_models_get_other_advice() -> None:
    """Who compiles already needs no "compile it"."""
    one = found(facts={"compile": {"used": True}})
    assert one is not None
    assert "or torch.compile" not in one.advice
