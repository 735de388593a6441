"""JSON without NaN."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.strict_json import dumps, loads, plain

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def strict(text: str) -> Any:
    """Decode as a browser does: no NaN, no Infinity."""

    def refuse(name: str) -> None:
        raise AssertionError(name)

    return json.loads(text, parse_constant=refuse)


@given(VALUES)
def test_every_value_becomes_what_a_browser_reads(value: object):
    """NaN and infinity become null, everything else stays what it was."""
    assert strict(dumps(value)) == plain(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan"), np.array(math.nan)])
def test_what_was_not_measured_is_null(value: object):
    """Alone or deep inside."""
    assert dumps({"a": [1.5, value]}) == '{"a":[1.5,null]}'


def test_arrays_become_lists():
    """numpy never reaches the wire."""
    assert dumps({"t": np.arange(3), "x": np.float32(0.5)}) == '{"t":[0,1,2],"x":0.5}'


def test_the_unknown_becomes_its_text():
    """Nothing that a run stores can keep its page from being sent."""
    assert dumps({1: {2}, "b": object}) == '{"1":[2],"b":"<class \'object\'>"}'


def test_it_reads_as_well():
    """Socket.IO decodes with the same module."""
    assert loads('["a",1]') == ["a", 1]


@given(VALUES)
def test_marks_are_json_too(value: object):
    """No NaN, no infinity: texts in their place, which are read as they were written."""
    assert strict(dumps(value, marks=True)) == plain(value, marks=True)


def test_marks_tell_which_number_it_was():
    """Unknown objects become their text, sets and tuples lists, keys text."""
    assert plain({1: (1, {2}), "x": math.inf, "y": -math.inf, "z": math.nan}, marks=True) == {
        "1": [1, [2]], "x": "Infinity", "y": "-Infinity", "z": "NaN",
    }  # fmt: skip
    assert plain(ValueError("so"), marks=True) == "so"
