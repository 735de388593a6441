"""Proof of the token that ends by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.frame_tickets import LASTS_S, holds, issue

TOKEN, NOW = "v" * 32, 1.8e9


@pytest.mark.parametrize("kind", ["ticket", "pass"])
def test_it_holds_until_it_ends(kind):
    """To the second, by the clock of whoever asks."""
    given_out = issue(TOKEN, kind, NOW)
    assert holds(given_out, TOKEN, kind, NOW)
    assert holds(given_out, TOKEN, kind, NOW + LASTS_S[kind] - 1)
    assert not holds(given_out, TOKEN, kind, NOW + LASTS_S[kind])


def test_one_kind_is_not_the_other():
    """A ticket that was seen in a saved notebook opens no path, and a pass cannot be traded for a new one."""
    assert not holds(issue(TOKEN, "ticket", NOW), TOKEN, "pass", NOW)
    assert not holds(issue(TOKEN, "pass", NOW), TOKEN, "ticket", NOW)


def test_another_hubs_does_not_hold():
    """Two hubs of one machine do not open each other."""
    assert not holds(issue("w" * 32, "pass", NOW), TOKEN, "pass", NOW)


def test_its_end_cannot_be_moved():
    """The proof covers it."""
    form, since, proof = issue(TOKEN, "pass", NOW).split(".")
    later = issue(TOKEN, "pass", NOW + 1).split(".")[1]
    assert later != since
    assert holds(".".join([form, since, proof]), TOKEN, "pass", NOW + 1)
    assert not holds(".".join([form, later, proof]), TOKEN, "pass", NOW + 1)


def test_it_does_not_tell_the_token():
    """Nor a part of it."""
    assert TOKEN[:4] not in issue(TOKEN, "ticket", NOW)


@given(st.text(max_size=80))
def test_nothing_else_holds(text: str):
    """Whatever a client sends is only compared."""
    assert not holds(text, TOKEN, "pass", NOW)
