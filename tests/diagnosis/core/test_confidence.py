"""How sure a finding is."""

from __future__ import annotations

import pytest

from monitor.diagnosis.core.confidence import confidence
from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.messages import pair_of


def seen(first: int | None, last: int | None) -> Finding:
    return Finding("x", "warning", "", "", first_step=first, last_step=last)


@pytest.mark.parametrize(("steps", "level"), [(50, "low"), (100, "medium"), (1000, "high")])
def test_confidence_grows_with_the_steps_that_were_seen(steps: int, level: str):
    """By orders of magnitude."""
    assert confidence(seen(5, 4 + steps)).level == level


def test_it_says_how_many_steps():
    """So that nobody has to believe a word, in any language."""
    why = confidence(seen(5, 1004)).why
    assert (why, pair_of(why)) == ("seen over 1,000 steps", ["seen over {steps:,} steps", {"steps": "1,000"}])


@pytest.mark.parametrize("steps", [(None, None), (7, 7)])
def test_a_setting_or_an_event_is_certain(steps: tuple[int | None, int | None]):
    """It was read, not measured."""
    assert confidence(seen(*steps)).level == "certain"
