"""The report's style sheet."""

from __future__ import annotations

import re

from monitor.exports.style import STYLE
from monitor.exports.svg import MAX_LINES
from monitor.schema import PHASES


def test_every_phase_and_line_has_a_colour_in_both_themes():
    """And is drawn with it."""
    for name in [*PHASES, *(f"s{i}" for i in range(MAX_LINES))]:
        assert len(re.findall(rf"--{name}:#", STYLE)) == 2
        assert f"var(--{name})" in STYLE


def test_every_variable_is_defined():
    """No rule falls back to black."""
    assert set(re.findall(r"var\((--\w+)\)", STYLE)) <= set(re.findall(r"(--\w+):", STYLE))


def test_paper_is_light():
    """The dark theme is for screens only."""
    assert STYLE.count("prefers-color-scheme:dark") == 1
    assert "@media screen and (prefers-color-scheme:dark)" in STYLE
    assert "@media print" in STYLE


def test_lines_are_told_apart_without_colour():
    """Each has a dash of its own."""
    dashes = re.findall(r"stroke-dasharray:([^}]+)", STYLE)
    assert len(set(dashes)) == len(dashes) == MAX_LINES


def test_it_loads_nothing():
    """No font, no picture, no other sheet."""
    assert not re.search(r"url\(|@import|http", STYLE)
