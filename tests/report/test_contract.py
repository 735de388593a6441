"""Findings in the contract's form, and nothing that JSON has no word for."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from monitor.diagnosis.core.finding import Finding, gain_from_share
from monitor.diagnosis.core.lifecycle import Record
from monitor.diagnosis.core.messages import message
from monitor.report.contract import finding_form, record_of, without_templates
from monitor.strict_json import plain

FINDING = Finding(
    "data_starvation",
    "warning",
    "The loop waits",
    "num_workers=0",
    {"data_share": 0.31, "waits": np.float32(2.5)},
    "Load in workers.",
    "DataLoader(train, num_workers=2)",
    gain_from_share(0.31, "it waited 31 %"),
    ranks=(0, 1),
    first_step=20,
    last_step=99,
    location="train.py:31",
)
KEYS = (
    "code severity title cause evidence advice snippet gain ranks"
    " first_step last_step raised_at_s cleared_at_s location"
).split()
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.binary() | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
)


def test_form() -> None:
    """Every key of the contract is there, in plain values."""
    form = finding_form(Record(FINDING, 4.1))
    assert list(form) == KEYS
    assert form["ranks"] == [0, 1]
    assert form["gain"].keys() == {"speedup", "share_of_step", "basis"}
    json.dumps(form, allow_nan=False)


def test_there_and_back() -> None:
    """A hub that starts anew reads its own findings."""
    form = finding_form(Record(FINDING, 4.1, 9.0))
    assert finding_form(record_of(form)) == form
    assert record_of(form).finding.identity == FINDING.identity
    bare = finding_form(Record(Finding("stall", "critical", "No progress", "stalled in data"), 1.0))
    assert finding_form(record_of(json.loads(json.dumps(bare)))) == bare


@given(ANYTHING)
def test_plain_is_json(value: object) -> None:
    """Anything becomes JSON, NaN and infinity null."""
    text = json.dumps(plain(value), allow_nan=False)
    assert plain(json.loads(text)) == json.loads(text)


def test_plain_numpy() -> None:
    """numpy's numbers and arrays become plain ones."""
    assert plain({"a": np.arange(2), "b": np.float64("nan"), "c": np.int64(3)}) == {
        "a": [0, 1],
        "b": None,
        "c": 3,
    }


def test_what_was_said_travels_with_its_template() -> None:
    """A hub that starts anew still knows how its sentences were made; a report need not."""
    said = replace(
        FINDING, cause=message("slower {phase}", phase="data"), gain=gain_from_share(0.5, message("{n}", n=1))
    )
    form = finding_form(Record(said, 4.1))
    assert form["i18n"] == {"cause": ["slower {phase}", {"phase": "data"}], "basis": ["{n}", {"n": "1"}]}
    assert form["cause"] == "slower data"
    stored = json.loads(json.dumps(form))
    assert finding_form(record_of(stored)) == form
    assert list(without_templates(form)) == KEYS
    assert without_templates(None) is None
