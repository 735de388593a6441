"""Chains of short kernels: said to be unchecked, until a profile is taken."""

from __future__ import annotations

from monitor.diagnosis.core.doctor import discover, examine
from monitor.diagnosis.core.window import Window
from monitor.diagnosis.detectors.graph import fusion_opportunity


def test_it_is_never_passed_over_in_silence():
    """Every examination lists it with the reason, and none finds it."""
    told = {entry["code"]: entry["why"] for entry in examine(Window(0.0, {})).not_checked}
    assert told[fusion_opportunity.CODE] == fusion_opportunity.UNCHECKED
    assert fusion_opportunity.CODE not in {detector.code for detector in discover()}
