"""backward inside autocast is found when it was seen more than once."""

from __future__ import annotations

import pytest
from windows import window

from monitor.diagnosis.detectors.precision.amp_backward_in_autocast import SEEN, detect


@pytest.mark.parametrize(("times", "speaks"), [(None, False), (SEEN - 1, False), (SEEN, True)])
def test_it_speaks_from_its_threshold_on(times: int | None, speaks: bool):
    """Never or once is no habit; more often is."""
    facts = {"precision": {"autocast": True, "backward_in_autocast": times}}
    assert (detect(window(facts=facts)) is not None) == speaks


def test_the_place_is_the_call():
    """The finding points at the line that calls backward."""
    facts = {"precision": {"backward_in_autocast": 9, "backward_location": "train.py:26"}}
    found = detect(window(facts=facts))
    assert found is not None
    assert (found.location, found.evidence) == ("train.py:26", {"seen_times": 9})
