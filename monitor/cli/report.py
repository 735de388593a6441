"""`torchvitals report RUN`: the report of a finished, running or dead run, and the run as a file."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from monitor import exports, report, runs, state
from monitor.cli import UsageError
from monitor.report.text import harmless
from monitor.store import FILE_NAME, Store, StoreError

HELP = "the report of a finished, running or dead run; the run as a file"
EXAMPLE = """  torchvitals report latest
  torchvitals report 20261130-031620-digits-1f3a --json report.json
  torchvitals report digits --json - | jq .time_share
  torchvitals report latest --html report.html --perfetto trace.json
  torchvitals report latest --html report.html --language zh-CN
  torchvitals report latest --csv steps.csv --stream rank/0 --from 60 --to 120"""

#: Options that take a file and a form of `monitor.exports`. `--json` is the report alone, as it always was.
_FILES = ("html", "csv", "parquet", "perfetto")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "run", metavar="RUN", help="a run's id or the beginning of it, its name, its folder, or 'latest'"
    )
    parser.add_argument("--json", metavar="FILE", help="write JSON to FILE ('-': to the standard output)")
    for name in _FILES:
        parser.add_argument(f"--{name}", metavar="FILE", help=f"write {exports.FORMATS[name].what} to FILE")
    parser.add_argument(
        "--language",
        choices=exports.LANGUAGES,
        default=exports.LANGUAGES[0],
        help="of the texts in --html (default: en)",
    )
    parser.add_argument("--stream", metavar="NAME", help="what --csv and --parquet hold (default: rank/0)")
    parser.add_argument("--from", dest="first_s", type=float, metavar="S", help="leave out what was before")
    parser.add_argument("--to", dest="last_s", type=float, metavar="S", help="leave out what came after")
    parser.add_argument("--run-dir", metavar="DIR", help="where the runs are kept")


def run(args: argparse.Namespace) -> int:
    """Print the report, or write what was asked for."""
    wanted = {name: getattr(args, name) for name in _FILES if getattr(args, name) is not None}
    choice = exports.Choice(args.stream, args.first_s, args.last_s, args.language)
    try:
        folder = runs.resolve(args.run, state.run_dir(args.run_dir))
        for name, file in wanted.items():
            with Store(folder / FILE_NAME) as store:
                _write(name, file, exports.pieces(exports.FORMATS[name], store, choice))
        found = report.build(folder) if args.json is not None or not wanted else {}
    except (
        runs.NoSuchRunError,
        StoreError,
        exports.MissingExtraError,
        exports.NoSuchStreamError,
    ) as error:
        raise UsageError(str(error)) from None
    if args.json is not None:
        _write("json", args.json, [_text(found)])
    elif not wanted:
        sys.stdout.write(harmless(report.text(found)) + "\n")
    return 0


def _text(found: dict[str, Any]) -> bytes:
    return (json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _write(option: str, file: str, pieces: Iterable[bytes]) -> None:
    if file == "-":
        sys.stdout.flush()
        _pour(sys.stdout.buffer, pieces)
        return
    try:
        with Path(file).open("wb") as target:
            _pour(target, pieces)
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}; give another file to --{option}") from None


def _pour(target: IO[bytes], pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        target.write(piece)
    target.flush()
