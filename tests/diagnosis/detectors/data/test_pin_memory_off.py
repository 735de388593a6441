"""Pageable batches are told of where copying them costs something, by what the loader handed over."""

from __future__ import annotations

from typing import Any

import pytest
from devices import MODEL, on_gpu
from windows import loader

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.data.pin_memory_off import COPY_SHARE, LEAST_SHARE, MB_PER_MS, detect

PAGEABLE = {"mb": 20.0, "device": "cpu", "pinned": False, "pageable_mb": 20.0}


def found(
    batch: dict[str, Any] = PAGEABLE,
    watched: bool = False,
    model: Any = MODEL,
    pin: bool = False,
    **more: Any,
) -> Finding | None:
    facts = {
        **loader(pin_memory=pin, call="DataLoader(data, batch_size=32)"),
        "batch/1": batch,
        "model/1": model,
    }
    return detect(on_gpu(facts=facts, cuda={"h2d_watched": watched}, **more))


def test_it_shows_the_user_s_own_call() -> None:
    """Information where the copy can only be estimated, and it is called that."""
    one = found()
    assert one is not None
    assert (one.severity, one.gain, one.cause) == ("info", None, "pin_memory=False")
    assert "DataLoader(data, batch_size=32, pin_memory=True)" in one.snippet
    assert one.evidence == {"batch_mb": 20.0, "copy_share_estimated": pytest.approx(0.067, abs=0.002)}


@pytest.mark.parametrize(("h2d", "severity"), [(2.0, "info"), (4.0, "warning")])
def test_a_copy_that_was_measured_is_judged(h2d: float, severity: str) -> None:
    """From a twentieth of the step on it is a fault."""
    one = found(watched=True, h2d=h2d, other=30.0 - h2d)
    assert one is not None
    assert one.severity == severity
    assert one.evidence["copy_share"] == pytest.approx(h2d / 50, abs=1e-3)
    assert 0.04 < COPY_SHARE < 0.08


@pytest.mark.parametrize(("factor", "speaks"), [(0.95, False), (1.05, True)])
def test_small_batches_are_left_alone(factor: float, speaks: bool) -> None:
    """Copying them takes no time that is worth a word."""
    mb = LEAST_SHARE * 50 * MB_PER_MS * factor
    assert (found({**PAGEABLE, "pageable_mb": mb}) is not None) == speaks


@pytest.mark.parametrize(
    "batch", [{**PAGEABLE, "pinned": True, "pageable_mb": 0.0}, {**PAGEABLE, "device": "cuda:0"}]
)
def test_what_is_pinned_or_on_the_gpu_is_fine(batch: dict[str, Any]) -> None:
    """The batch itself tells, not the loader's argument."""
    assert found(batch) is None


def test_a_model_on_the_cpu_copies_nothing() -> None:
    """Even on a machine with a GPU in use."""
    assert found(model={**MODEL, "device": "cpu"}) is None


def test_a_batch_that_cannot_be_pinned() -> None:
    """The flag is on and did nothing: then the class is the matter, and no flag is advised."""
    one = found(pin=True)
    assert one is not None
    assert (one.cause, one.snippet) == ("batches that cannot be pinned", "")
    assert "pin_memory() method" in one.advice
