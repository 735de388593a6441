"""One file a command. `main` finds the command, imports its file alone, and runs it.

A command's file has HELP (one line), EXAMPLE (shown by --help), configure(parser) and
run(args) -> exit status. A user's mistake is a `UsageError`: one line, exit status 2.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from monitor import __version__

COMMANDS = ("run", "report", "compare", "serve", "ls", "url", "bridge", "alert-test")
#: Started by us, not by people.
HIDDEN = ("agent",)

USAGE = 2


class UsageError(Exception):
    """Bad input. The message says what is wrong and what to do, in one line."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] in (["-V"], ["--version"]):
        print(f"torchvitals {__version__}")
        return 0
    if not words or words[0] in ("-h", "--help", "help"):
        print(_overview())
        return 0 if words else USAGE
    name = words[0]
    if name not in COMMANDS + HIDDEN:
        return _complain(f"unknown command {name!r}; one of: {', '.join(COMMANDS)}")
    module = importlib.import_module(f"monitor.cli.{name.replace('-', '_')}")
    parser = argparse.ArgumentParser(
        prog=f"torchvitals {name}",
        description=module.HELP,
        epilog=f"example:\n{module.EXAMPLE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.configure(parser)
    return _guarded(module.run, parser.parse_args(words[1:]))


def _guarded(run: object, args: argparse.Namespace) -> int:
    assert callable(run)
    try:
        return int(run(args))
    except UsageError as error:
        return _complain(str(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


def _complain(text: str) -> int:
    print(f"torchvitals: {text}", file=sys.stderr)
    return USAGE


def _overview() -> str:
    rows = [
        (name, importlib.import_module(f"monitor.cli.{name.replace('-', '_')}").HELP) for name in COMMANDS
    ]
    lines = [f"  {name:<12}{text}" for name, text in rows]
    return "\n".join(
        [
            "usage: torchvitals COMMAND …",
            "",
            *lines,
            "",
            "Every command answers --help with an example.",
            "example:",
            "  torchvitals run train.py --epochs 3",
        ]
    )
