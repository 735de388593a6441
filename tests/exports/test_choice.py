"""What of a run is meant."""

from __future__ import annotations

import pytest

from monitor.exports.choice import Choice, MissingExtraError


@pytest.mark.parametrize(
    ("first", "last", "inside"),
    [(None, None, True), (5.0, None, True), (None, 5.0, True), (5.1, None, False), (None, 4.9, False)],
)
def test_both_ends_belong_to_the_range(first: float | None, last: float | None, inside: bool):
    """And either may be left out."""
    assert Choice(None, first, last).holds(5.0) is inside


def test_the_steps_of_the_first_rank_are_meant_when_nobody_says():
    """That is what most people want to open in a table."""
    assert (Choice().named, Choice("host/a").named) == ("rank/0", "host/a")


def test_the_missing_library_is_the_one_that_could_not_be_imported():
    """Not a part of it, whose name nobody installs."""
    error = MissingExtraError("X", "y", ImportError("no", name="a.b.c"))
    assert str(error) == "X needs a, which is not installed: pip install 'torchvitals[y]'"
