"""The whole run as JSON."""

from __future__ import annotations

import json

from monitor import report
from monitor.exports.as_json import POINTS, SCHEMA, write
from monitor.exports.choice import Choice
from monitor.store import Store

WHOLE = Choice()


def refuse(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def document(store: Store, choice: Choice = WHOLE) -> dict:
    return json.loads(b"".join(write(store, choice)), parse_constant=refuse)


def test_it_holds_the_report_and_every_stream(store: Store):
    """A script needs no second file."""
    found = document(store)
    assert (found["schema"], found["report"]) == (SCHEMA, report.build(store))
    assert set(found["series"]) == set(store.streams())
    assert found["meta"]["config"]["lr"] == 0.1


def test_series_are_a_charts_worth(store: Store):
    """At most POINTS a stream, whatever the run's length; unknown values are null."""
    series = document(store)["series"]["rank/0"]
    assert 0 < len(series["t"]) <= POINTS
    assert series["series"]["loss"]["mean"][-1] is None


def test_a_choice_narrows_the_series_only(store: Store):
    """The report stays that of the whole run."""
    found = document(store, Choice("rank/1", 1.0, 2.0))
    assert list(found["series"]) == ["rank/1"]
    assert 1.0 <= found["series"]["rank/1"]["t"][0] <= found["series"]["rank/1"]["t"][-1] <= 2.0
    assert found["report"]["steps"] == 5000
