"""The flag is advice when no rank has any unused parameter after long enough."""

from __future__ import annotations

from typing import Any

import pytest
from windows import rank, window

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.distributed.find_unused_parameters import ITERATIONS, detect

FLAG = {"find_unused_parameters": True, "unused_parameter_size": 0, "iterations": 100}


def found(*ddps: dict[str, Any]) -> Finding | None:
    ranks = [rank(60, number, facts={"ddp": {**FLAG, **ddp}}) for number, ddp in enumerate(ddps)]
    return detect(window(*ranks))


def test_a_needless_flag_is_advice():
    """All parameters used in all steps: information for all ranks."""
    one = found({}, {})
    assert one is not None
    assert (one.severity, one.ranks, one.gain) == ("info", (0, 1), None)


@pytest.mark.parametrize(("iterations", "speaks"), [(ITERATIONS - 1, False), (ITERATIONS, True)])
def test_it_waits_long_enough(iterations: int, speaks: bool):
    """A branch that is taken now and then gets the time to show itself."""
    assert (found({"iterations": iterations}) is not None) == speaks


@pytest.mark.parametrize(
    "ddp",
    [{"find_unused_parameters": False}, {"unused_parameter_size": 4096}, {"unused_parameter_size": None}],
)
def test_a_flag_that_is_needed_or_unknown_is_fine(ddp: dict[str, Any]):
    """Off, needed, or not known: nothing is said."""
    assert found(ddp) is None


def test_one_rank_that_needs_it_is_enough():
    """If any rank has unused parameters, all need the flag."""
    assert found({}, {"unused_parameter_size": 64}) is None
