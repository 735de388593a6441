"""The import graph of the rooms as a table, for docs/architecture.md. See scripts/architecture."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from sources import ROOT, imports, modules

BEGIN, END = "<!-- import graph: scripts/architecture -->", "<!-- end of the import graph -->"
#: Page -> the head of its table.
PAGES = {
    ROOT / "docs/architecture.md": "| room | imports | modules | lines |",
    ROOT / "docs/zh-CN/architecture.md": "| 房间 | 导入 | 模块数 | 行数 |",
}


@dataclass
class Room:
    """One module or package directly below `monitor`.

    Attributes:
        imports: other rooms that its modules import, also inside functions and for types.
        modules: how many.
        lines: of all of them, with comments and blank ones.
    """

    imports: set[str] = field(default_factory=set)
    modules: int = 0
    lines: int = 0


def rooms() -> dict[str, Room]:
    """Every room by name, in the order of names."""
    found: dict[str, Room] = defaultdict(Room)
    for module in modules().values():
        room = found[module.room]
        room.modules += 1
        room.lines += len(module.path.read_text().splitlines())
        others = {modules()[name].room for name in imports(module) & set(modules())}
        room.imports |= others - {module.room}
    return dict(sorted(found.items()))


def table(head: str) -> str:
    """The rows below that head; lines in hundreds, so that not every change makes it stale."""
    rows = []
    for name, room in rooms().items():
        others = ", ".join(sorted(room.imports)) or "–"
        rows.append(f"| `{name}` | {others} | {room.modules} | {max(round(room.lines, -2), 100):,} |")
    return "\n".join([head, "| --- | --- | ---: | ---: |", *rows])


def parts(page: Path) -> tuple[str, str, str]:
    """What stands before the table, the table, and what stands after it."""
    found = re.fullmatch(rf"(.*{BEGIN}\n)(.*)(\n{END}.*)", page.read_text(), re.DOTALL)
    assert found, f"{page} lacks the lines {BEGIN} and {END}"
    return found[1], found[2], found[3]


if __name__ == "__main__":
    for page, head in PAGES.items():
        before, _, after = parts(page)
        page.write_text(before + table(head) + after)
