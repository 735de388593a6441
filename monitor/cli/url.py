"""`torchvitals url`: the address of the dashboard that runs, with its token."""

from __future__ import annotations

import argparse

from monitor import state
from monitor.cli import UsageError

HELP = "print the address of the running dashboard, with its token"
EXAMPLE = "  torchvitals url"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--run-dir", metavar="DIR", help="where the runs are kept")


def run(args: argparse.Namespace) -> int:
    """Print the address; exit status 2 when no dashboard runs."""
    runs = state.run_dir(args.run_dir)
    hub = state.load_hub(runs)
    if hub is None or not state.held(state.hub_files(runs)[1]):
        raise UsageError(f"no dashboard serves {runs}; start one with: torchvitals serve --run-dir {runs}")
    print(hub.url)
    return 0
