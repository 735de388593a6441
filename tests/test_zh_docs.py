"""The documentation in 简体中文: each page has its twin, of the same shape."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sources import ROOT

#: (English page, its twin).
TWINS = [
    (ROOT / "README.md", ROOT / "README.zh-CN.md"),
    *((page, page.parent / "zh-CN" / page.name) for page in sorted((ROOT / "docs").glob("*.md"))),
]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def headings(page: Path) -> list[int]:
    """Level of each heading, in order."""
    return [len(found[1]) for found in re.finditer(r"^(#+) ", FENCE.sub("", page.read_text()), re.MULTILINE)]


def test_every_page_has_its_twin_and_no_twin_is_alone():
    """A page that is added, renamed or removed in one language is so in both."""
    twins = {twin.name for _, twin in TWINS[1:]}
    assert {path.name for path in (ROOT / "docs/zh-CN").glob("*.md")} == twins


@pytest.mark.parametrize(("page", "twin"), TWINS, ids=lambda page: page.name)
def test_twins_have_the_same_headings(page: Path, twin: Path):
    """Of the same levels in the same order: nothing was left out."""
    assert headings(twin) == headings(page)


@pytest.mark.parametrize(("page", "twin"), TWINS, ids=lambda page: page.name)
def test_twins_show_the_same_code(page: Path, twin: Path):
    """Commands, examples and configuration are not translated, so that both are the tested ones."""
    assert FENCE.findall(twin.read_text()) == FENCE.findall(page.read_text())


@pytest.mark.parametrize("twin", [twin for _, twin in TWINS], ids=lambda page: page.name)
def test_links_lead_somewhere(twin: Path):
    """Every relative link of a twin points to a file that exists."""
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", twin.read_text())
    assert [link for link in links if not (twin.parent / link).exists()] == []


def test_every_name_of_the_tables_is_in_both():
    """Options, variables, events, panels and finding codes stand in both languages."""
    for page, twin in TWINS:
        first = set(re.findall(r"^\| `([^`|]+)`", page.read_text(), re.MULTILINE))
        assert first - set(re.findall(r"^\| `([^`|]+)`", twin.read_text(), re.MULTILINE)) == set(), page.name
