"""`torchvitals agent`: one run on one host, followed to its end. Started by attach and run, not by people."""

from __future__ import annotations

import argparse
from pathlib import Path

from monitor.agent_process import follow

HELP = "follow one run (started by attach and run)"
EXAMPLE = "  torchvitals agent --spool DIR"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--spool", required=True, type=Path, metavar="DIR")
    parser.add_argument("--lock-fd", type=int, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Follow the run; exit status 0."""
    follow(args.spool, lock=args.lock_fd, signals=True)
    return 0
