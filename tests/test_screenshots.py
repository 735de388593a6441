"""The pictures in the docs: made by a script, small, and all of them shown."""

from __future__ import annotations

import re

import pytest
from sources import ROOT

screenshots = pytest.importorskip("screenshots", reason="playwright is not installed")

FOLDER = ROOT / "docs" / "screenshots"
MOST_KB = 120


def test_every_picture_is_one_that_the_script_makes() -> None:
    """None is left over, none is missing: all can be made anew."""
    assert {path.name for path in FOLDER.iterdir()} == {f"{name}.webp" for name in screenshots.PICTURES}


def test_pictures_are_small_and_of_their_kind() -> None:
    """A clone stays quick, and a picture is what its name says."""
    for path in FOLDER.iterdir():
        data = path.read_bytes()
        assert (data[:4], data[8:12]) == (b"RIFF", b"WEBP")
        assert len(data) <= MOST_KB * 1024


def test_every_picture_is_shown() -> None:
    """In the README or in docs/, by an address that leads to it."""
    pages = [ROOT / "README.md", ROOT / "README.zh-CN.md", *(ROOT / "docs").rglob("*.md")]
    shown = {
        (page.parent / address).resolve()
        for page in pages
        for address in re.findall(r"\(([\w./-]+\.webp)\)", page.read_text())
    }
    assert shown == set(FOLDER.iterdir())
