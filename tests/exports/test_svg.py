"""Charts as text."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.exports.svg import MAX_LINES, Line, bar, chart, short, ticks

T = [0.0, 1.0, 2.0, 3.0]


def drawn(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(f"<div>{text}</div>")


def test_a_chart_is_well_formed_and_tells_its_ends_in_words():
    """Who cannot see it hears where each line begins and ends."""
    found = drawn(chart("Step <time>", "ms", [Line("p50", T, [1.0, 2.0, 3.0, 4.0])]))
    assert found.find(".//svg").get("aria-label") == "Step <time>: p50 from 1 to 4 ms"
    assert found.find(".//figcaption").text == "Step <time> (ms)"


def test_a_gap_stays_a_gap():
    """No line is drawn across what was not measured."""
    found = drawn(chart("x", "", [Line("a", T, [1.0, None, 2.0, 3.0])]))
    assert found.find(".//path[@class='line s0']").get("d").count("M") == 2


def test_what_was_not_measured_has_no_chart():
    """An empty frame would say that there is something to see."""
    assert chart("x", "", [Line("a", T, [None] * 4), Line("b", [], [])]) == ""


def test_several_lines_have_a_legend_and_bands():
    """Told apart by class, which carries colour and dash; the band only where minimum and maximum differ."""
    lines = [Line("a", T, [1.0] * 4, [0.5] * 4, [2.0] * 4), Line("b", T, [2.0] * 4, [2.0] * 4, [2.0] * 4)]
    found = drawn(chart("x", "", lines))
    assert [span.find("svg").tail.strip() for span in found.findall(".//span[@class='legend']/span")] == [
        "a",
        "b",
    ]
    assert [path.get("class") for path in found.findall(".//path") if "band" in path.get("class")] == [
        "band s0"
    ]


def test_no_more_lines_than_can_be_told_apart():
    """A seventh would look like the first."""
    found = drawn(chart("x", "", [Line(str(i), T, [1.0] * 4) for i in range(9)]))
    assert len(found.findall(".//figure/svg/path[@class]")) - MAX_LINES <= 10
    assert not [p for p in found.findall(".//path") if p.get("class") == f"line s{MAX_LINES}"]


def test_infinity_is_left_out():
    """A diverged loss does not flatten the rest."""
    found = chart("loss", "", [Line("a", T, [1.0, math.inf, 2.0, "NaN"])])  # type: ignore[list-item]
    assert "inf" not in found
    assert "nan" not in found.lower()


def test_the_bar_is_as_long_as_its_shares():
    """In per cent of the whole, one after another."""
    rects = drawn(bar({"data": 0.25, "h2d": 0.0, "forward": None, "other": 0.75})).findall(".//rect")
    assert [(r.get("class"), r.get("x"), r.get("width")) for r in rects] == [
        ("p-data", "0.00", "25.00"),
        ("p-other", "25.00", "75.00"),
    ]
    assert bar({"data": None}) == ""


@given(st.floats(-1e12, 1e12), st.floats(1e-6, 1e12))
def test_ticks_lie_inside_and_are_few(low: float, width: float):
    """From the first to the last, at most eleven, however far from zero."""
    high = low + width
    if high - low < 1e-9 * abs(low):
        return
    found = ticks(low, high)
    assert len(found) <= 11
    assert all(low - width * 1e-6 <= tick <= high + width * 1e-6 for tick in found)


@pytest.mark.parametrize(
    ("value", "told"), [(0.0042, "0.0042"), (1234.0, "1.234k"), (3.5e7, "35M"), (2e9, "2G")]
)
def test_numbers_are_short(value: float, told: str):
    """An axis has room for five letters."""
    assert short(value) == told
