"""`torchvitals report RUN`: the report of a finished, running or dead run."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from monitor import report, runs, state
from monitor.cli import UsageError
from monitor.store import StoreError

HELP = "the report of a finished, running or dead run"
EXAMPLE = """  torchvitals report latest
  torchvitals report 20261130-031620-digits-1f3a --json report.json
  torchvitals report digits --json - | jq .time_share"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "run", metavar="RUN", help="a run's id or the beginning of it, its name, its folder, or 'latest'"
    )
    parser.add_argument("--json", metavar="FILE", help="write JSON to FILE ('-': to the standard output)")
    parser.add_argument("--run-dir", metavar="DIR", help="where the runs are kept")


def run(args: argparse.Namespace) -> int:
    """Print the report, or write it."""
    try:
        found = report.build(runs.resolve(args.run, state.run_dir(args.run_dir)))
    except (runs.NoSuchRunError, StoreError) as error:
        raise UsageError(str(error)) from None
    if args.json is None:
        sys.stdout.write(report.text(found) + "\n")
        return 0
    content = json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if args.json == "-":
        sys.stdout.write(content)
        return 0
    try:
        Path(args.json).write_text(content, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {args.json}: {error.strerror}; give another file to --json") from None
    return 0
