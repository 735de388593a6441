"""`torchvitals ls`: the runs that a folder keeps, newest first."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from monitor import runs, state
from monitor.report.text import duration, harmless, number

HELP = "the runs that a folder keeps, newest first"
EXAMPLE = """  torchvitals ls
  torchvitals ls --run-dir /data/runs --json"""

_HEAD = ("run", "status", "steps", "steps/s", "began", "finding or verdict")
#: Longest sentence of the last column.
_SENTENCE = 60


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--run-dir", metavar="DIR", help="where the runs are kept")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print the table; nothing but a hint where there is no run."""
    folder = state.run_dir(args.run_dir)
    found = runs.summaries(folder)
    if args.json:
        sys.stdout.write(json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    elif not found:
        sys.stdout.write(f"No runs in {folder}. Start one with: torchvitals run train.py\n")
    else:
        sys.stdout.write(table([_row(summary, time.time()) for summary in found]) + "\n")
    return 0


def _row(summary: Mapping[str, Any], now_unix_s: float) -> tuple[str, ...]:
    began = summary["started_unix_s"]
    verdict = (summary["verdict"] or {}).get("text") or summary.get("error") or ""
    last = " ".join(harmless(str(summary["finding"] or verdict)).split())
    return (
        " ".join(harmless(summary["run"]).split()),
        summary["status"],
        f"{summary['steps']:,}",
        number(summary["steps_per_s"]),
        "–" if began is None else f"{duration(max(round(now_unix_s - began), 0))} ago",
        last if len(last) <= _SENTENCE else last[: _SENTENCE - 1] + "…",
    )


def table(rows: Sequence[tuple[str, ...]]) -> str:
    """Columns of equal width, numbers to the right."""
    lines = [_HEAD, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEAD))]
    right = {2, 3}
    return "\n".join(
        "  ".join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
