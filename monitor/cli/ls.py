"""`torchvitals ls`: the runs that a folder keeps, newest first."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from monitor import runs, state
from monitor.diagnosis.core.quantities import duration, number
from monitor.report.text import harmless

HELP = "the runs that a folder keeps, newest first"
EXAMPLE = """  torchvitals ls
  torchvitals ls --all
  torchvitals ls --run-dir /data/runs --json"""

_HEAD = ("run", "status", "steps", "steps/s", "began", "marks", "finding or verdict")
#: Columns that hold numbers.
_RIGHT = {2, 3}
#: Columns that come to a line of their own where a terminal is too narrow for all.
_FOLDED = (5, 6)
#: Longest marks and longest sentence of the last column, in letters.
_MARKS, _SENTENCE = 40, 60
#: A terminal that cannot tell how wide it is.
_TERMINAL = (80, 24)

Row = tuple[str, ...]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--run-dir", metavar="DIR", help="where the runs are kept")
    parser.add_argument("--all", action="store_true", help="archived runs too")
    parser.add_argument("--json", action="store_true", help="print JSON: all runs, archived ones too")


def run(args: argparse.Namespace) -> int:
    """Print the table; nothing but a hint where there is no run."""
    folder = state.run_dir(args.run_dir)
    found = runs.summaries(folder)
    if args.json:
        sys.stdout.write(json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
        return 0
    listed = [summary for summary in found if args.all or not summary["archived"]]
    if not found:
        sys.stdout.write(f"No runs in {folder}. Start one with: torchvitals run train.py\n")
    if listed:
        width = shutil.get_terminal_size(_TERMINAL).columns if sys.stdout.isatty() else None
        sys.stdout.write(table([_row(summary, time.time()) for summary in listed], width) + "\n")
    if len(listed) < len(found):
        sys.stdout.write(f"archived: {len(found) - len(listed)}; torchvitals ls --all shows them\n")
    return 0


def _row(summary: Mapping[str, Any], now_unix_s: float) -> Row:
    began = summary["started_unix_s"]
    verdict = (summary["verdict"] or {}).get("text") or summary.get("error") or ""
    return (
        _plain(summary["run"]),
        summary["status"],
        f"{summary['steps']:,}",
        number(summary["steps_per_s"]),
        "–" if began is None else f"{duration(max(round(now_unix_s - began), 0))} ago",
        _cut(_marks(summary), _MARKS),
        _cut(_plain(summary["finding"] or verdict), _SENTENCE),
    )


def _marks(summary: Mapping[str, Any]) -> str:
    """As on the page: whether it is the baseline, whether it is archived, its tags."""
    marks = [mark for mark in ("baseline", "archived") if summary[mark]]
    return ", ".join([*marks, *map(_plain, summary["tags"])])


def _plain(text: object) -> str:
    """On one line, without what would steer a terminal."""
    return " ".join(harmless(str(text)).split())


def table(rows: Sequence[Row], width: int | None = None) -> str:
    """Columns of equal width, numbers to the right; a column in which nobody has anything is left out.

    Args:
        rows: a cell for each of the columns.
        width: of the terminal; where it is too narrow for all columns the last come below each line, cut to
            fit. None: the lines are as long as they are, for whatever reads them.
    """
    lines = [_HEAD, *rows]
    there = [i for i in range(len(_HEAD)) if any(row[i] for row in rows)]
    all_columns = _aligned(lines, there)
    if width is None or max(map(_columns, all_columns)) <= width:
        return "\n".join(all_columns)
    first = _aligned(lines, [i for i in there if i not in _FOLDED])
    below = [" · ".join(line[i] for i in _FOLDED if i in there and line[i]) for line in lines]
    return "\n".join(
        f"{line}\n  {_cut(more, width - 2)}" if more else line
        for line, more in zip(first, below, strict=True)
    )


def _aligned(lines: Sequence[Row], columns: Sequence[int]) -> list[str]:
    widths = {i: max(_columns(line[i]) for line in lines) for i in columns}
    return ["  ".join(_padded(line[i], widths[i], i in _RIGHT) for i in columns).rstrip() for line in lines]


def _padded(cell: str, width: int, right: bool) -> str:
    space = " " * (width - _columns(cell))
    return space + cell if right else cell + space


def _cut(text: str, width: int) -> str:
    """The text in at most so many columns of a terminal."""
    if _columns(text) <= width:
        return text
    while text and _columns(text) >= width:
        text = text[:-1]
    return f"{text}…"


def _columns(text: str) -> int:
    """Columns of a terminal that a text takes: a Chinese letter takes two, an accent of its own none."""
    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF")
        for letter in text
    )
