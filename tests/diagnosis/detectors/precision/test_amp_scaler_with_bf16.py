"""A scaler under bfloat16 does nothing but cost."""

from __future__ import annotations

from typing import Any

import pytest
from windows import rank, window

from monitor.diagnosis.detectors.precision.amp_scaler_with_bf16 import detect

NEEDLESS = {"autocast": True, "autocast_dtype": "bfloat16", "scaler": True, "scaler_location": "train.py:20"}


def test_it_is_found_with_its_place():
    """Both in one run: found where the scaler is."""
    found = detect(window(facts={"precision": NEEDLESS}))
    assert found is not None
    assert (found.location, found.severity) == ("train.py:20", "warning")


@pytest.mark.parametrize("change", [{"scaler": False}, {"autocast_dtype": "float16"}, {"autocast": False}])
def test_either_alone_is_fine(change: dict[str, Any]):
    """A disabled scaler, float16, or no autocast raise nothing."""
    assert detect(window(facts={"precision": {**NEEDLESS, **change}})) is None


def test_only_the_ranks_that_have_both_are_named():
    """Ranks are judged by their own facts."""
    ranks = [rank(number=0, facts={}), rank(number=1, facts={"precision": NEEDLESS})]
    found = detect(window(*ranks))
    assert found is not None
    assert found.ranks == (1,)
