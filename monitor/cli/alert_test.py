"""`torchvitals alert-test URL`: sends one test alert, now."""

from __future__ import annotations

import argparse
import logging
import sys

from monitor import alerts
from monitor.cli import UsageError

HELP = "send one test alert to an Apprise address"
EXAMPLE = """  torchvitals alert-test ntfy://my-topic
  torchvitals alert-test 'slack://TokenA/TokenB/TokenC/#training'"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("url", metavar="URL", help="where to: any address that Apprise knows")


def run(args: argparse.Namespace) -> int:
    """Send it. Status 0 when the service accepted it, 1 when it did not."""
    logging.basicConfig(format="torchvitals: %(message)s", level=logging.WARNING)
    title, body = "torchvitals: test", "If you can read this, alerts arrive here."
    try:
        accepted = alerts.send_once(args.url, title, body)
    except ValueError:
        raise UsageError(
            f"{args.url!r} is no address that Apprise knows; it looks like ntfy://topic or mailto://user:password@host"
        ) from None
    if accepted:
        sys.stdout.write("The test alert was accepted.\n")
        return 0
    sys.stderr.write("torchvitals: the test alert was not accepted; check the address and the network.\n")
    return 1
