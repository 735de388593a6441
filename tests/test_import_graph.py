"""The import graph in docs/architecture.md is what the sources import."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from import_graph import PAGES, parts, rooms

ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \| (\d+) \| ([\d,]+) \|$", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_the_table_is_fresh(page: Path):
    """Rooms and what they import are exact, modules and lines to a fifth. Else: scripts/architecture."""
    shown = {row[0]: row[1:] for row in ROW.findall(parts(page)[1])}
    assert set(shown) == set(rooms()), "run scripts/architecture"
    stale = []
    for name, room in rooms().items():
        imports, count, lines = shown[name]
        close = abs(int(lines.replace(",", "")) - room.lines) <= max(100, room.lines / 5)
        close = close and abs(int(count) - room.modules) <= max(1, room.modules / 5)
        if imports != (", ".join(sorted(room.imports)) or "–") or not close:
            stale.append(name)
    assert not stale, "run scripts/architecture"
