"""Recompiling again and again is told with its reason; learning once that a size changes is not."""

from __future__ import annotations

from typing import Any

import pytest
from windows import window

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.graph.recompiles import INFO, WARNING, detect

SHAPE = "tensor 'x' size mismatch at index 1. expected 40, actual 77"


def recompiled(*recompiles: dict[str, Any], **compiled: Any) -> Finding | None:
    return detect(window(facts={"compile": {"used": True, "recompiles": list(recompiles), **compiled}}))


def of(count: int, reason: str = SHAPE, **more: Any) -> dict[str, Any]:
    return {"function": "forward", "location": "net.py:5", "count": count, "reason": reason, **more}


@pytest.mark.parametrize(
    ("count", "severity"), [(INFO - 1, None), (INFO, "info"), (WARNING - 1, "info"), (WARNING, "warning")]
)
def test_it_speaks_from_its_thresholds_on(count: int, severity: str | None):
    """One or two are normal, more are a word, still more a fault."""
    one = recompiled(of(count))
    assert (one.severity if one else None) == severity


def test_functions_are_counted_apart():
    """Ten functions compiled twice each are no function compiled ten times."""
    assert recompiled(*({**of(1), "function": f"f{at}"} for at in range(10))) is None


def test_what_follows_a_graph_break_goes_with_it():
    """The rest of a broken function is compiled anew for every value that broke it."""
    assert recompiled({**of(8), "function": "torch_dynamo_resume_in_forward_at_20"}) is None


def test_reasons_of_one_function_add_up():
    """Four different reasons make four recompilations."""
    one = recompiled(*(of(1, reason=f"{SHAPE}{at}") for at in range(4)))
    assert one is not None
    assert one.evidence["recompiles"] == 4


@pytest.mark.parametrize(
    ("reason", "cause", "advised"),
    [
        (SHAPE, "input shapes change", "dynamic=True"),
        ("GLOBAL_STATE changed: grad_mode", "gradient mode changes", "TORCH_LOGS"),
        ("___check_obj_id(L['flag'], 7)", "a guard fails", "TORCH_LOGS"),
        ("", "reason unknown", "TORCH_LOGS"),
    ],
)
def test_advice_fits_the_reason(reason: str, cause: str, advised: str):
    """Changing shapes have a remedy of their own."""
    one = recompiled(of(8, reason=reason))
    assert one is not None
    assert (one.cause, advised in one.advice) == (cause, True)


def test_place_and_surrender_are_told():
    """Where the function is, and that the compiler gave up."""
    one = recompiled(of(8, last_step=30), limit_hit=True)
    assert one is not None
    assert (one.location, one.last_step, one.evidence["gave_up"]) == ("net.py:5", 30, True)
