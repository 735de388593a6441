"""The table of events, and what it lets in."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.events import DEPTH, EXACT, KINDS, admit, wrong
from monitor.run_state.event_handlers import HANDLERS


def test_only_declared_kinds_are_handled():
    """Whatever changes a run's state is declared, with its fields."""
    assert set(HANDLERS) <= set(KINDS)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"rank": "0"}, "rank is no whole"),
        ({"rank": True}, "rank is no whole"),
        ({"rank": -1}, "rank is below zero"),
        ({"step": 1.5}, "step is no whole"),
        ({"step": EXACT + 1}, "step is no whole"),
        ({"since_s": float("nan")}, "since_s is no number"),
        ({"since_s": 10**400}, "since_s is no number"),
        ({"since_s": True}, "since_s is no number"),
        ({"again": 1}, "again is no flag"),
        ({"cause": 3}, "cause is no text"),
        ({"threads": [1]}, "threads is no objects"),
        ({"waits_for": [0, "1"]}, "waits_for is no wholes"),
        ({"t_s": None}, "t_s is no number"),
        ({"kind": None}, "its kind is no name"),
        ({"kind": "a b"}, "its kind is no name"),
    ],
)
def test_a_wrong_type_is_refused(fields: dict[str, Any], why: str):
    """Each refusal names the field, and the event's neighbours are let in."""
    sound = {"kind": "stall", "t_s": 1.0, "rank": 0}
    odd = {**sound, **fields}
    admitted = admit([sound, odd, sound])
    assert wrong(odd) == why
    assert [refusal for _, refusal in admitted.refused] == [why]
    assert admitted.events == (sound, sound)


def test_null_and_undeclared_fields_are_let_in():
    """What is not known may be null, and a newer agent may say more than is declared."""
    event = {"kind": "stall", "t_s": 1, "rank": None, "cause": None, "colour": ["blue"]}
    assert admit([event]).events == (event,)


def test_an_unknown_kind_is_let_in_and_named():
    """A newer agent's event is kept, though nobody acts on it; its common fields must be sound."""
    event = {"kind": "weather", "t_s": 1.0, "cause": 3}
    assert admit([event]).unknown == ("weather",)
    assert admit([{**event, "rank": "x"}]).events == ()


def test_what_utf8_cannot_hold_is_replaced():
    """Python's marks for odd bytes in file names would break whoever writes them to a file."""
    event = {"kind": "warn", "t_s": 1.0, "text": "a\udcffb", "more": {"x\ud800": ["\ud800"]}}
    (kept,) = admit([event]).events
    assert kept == {"kind": "warn", "t_s": 1.0, "text": "a\ufffdb", "more": {"x\ufffd": ["\ufffd"]}}


def test_depth_is_bounded():
    """One level too many is refused, one less is not."""

    def nested(levels: int) -> dict[str, Any]:
        inner: Any = 1
        for _ in range(levels - 1):
            inner = [inner]
        return {"kind": "fact", "t_s": 1.0, "name": "x", "value": inner}

    assert wrong(nested(DEPTH)) is None
    assert wrong(nested(DEPTH + 1)) == f"more than {DEPTH} levels of lists and objects"
