"""`torchvitals compare BASELINE CANDIDATE`: what changed, and which predictions came true."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from monitor import runs, state
from monitor.cli import UsageError
from monitor.compare import lines, side_by_side
from monitor.report.text import harmless
from monitor.store import StoreError

HELP = "what changed between two runs, and which predictions came true"
EXAMPLE = """  torchvitals compare 20261130-0316 latest
  torchvitals compare baseline candidate --fail-if-slower 5
  torchvitals compare before with-2-workers with-4-workers"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("baseline", metavar="BASELINE", help="a run's id, name or folder")
    parser.add_argument(
        "candidates",
        metavar="CANDIDATE",
        nargs="+",
        help="the run after the change, or several, each by itself",
    )
    parser.add_argument("--json", metavar="FILE", help="write JSON to FILE ('-': to the standard output)")
    parser.add_argument("--run-dir", metavar="DIR", help="where the runs are kept")
    parser.add_argument(
        "--fail-if-slower",
        type=float,
        metavar="PCT",
        help="exit status 1 when the candidate is surely more than PCT percent slower",
    )


def run(args: argparse.Namespace) -> int:
    """Print the comparison, or write it."""
    folder = state.run_dir(args.run_dir)
    try:
        found = side_by_side([runs.resolve(name, folder) for name in (args.baseline, *args.candidates)])
    except (runs.NoSuchRunError, StoreError) as error:
        raise UsageError(str(error)) from None
    pairs = found["comparisons"]
    if args.json is None:
        sys.stdout.write(harmless("\n\n".join("\n".join(lines(pair)) for pair in pairs)) + "\n")
    else:
        _write(args.json, pairs[0] if len(pairs) == 1 else {"schema": found["schema"], "comparisons": pairs})
    limit = args.fail_if_slower
    return 1 if limit is not None and any(_slower(pair["speed"], limit) for pair in pairs) else 0


def _write(target: str, found: dict[str, Any]) -> None:
    content = json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if target == "-":
        sys.stdout.write(content)
        return
    try:
        Path(target).write_text(content, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror}; give another file to --json") from None


def _slower(speed: dict[str, Any], percent: float) -> bool:
    """Whether even the favourable end of the interval is slower by more than `percent`."""
    best = speed["high"] if speed["high"] is not None else speed["speedup"]
    return best is not None and best < 1 - percent / 100
