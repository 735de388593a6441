"""`torchvitals alert-test [URL]`: sends one test alert, now; without a URL to all addresses that are set."""

from __future__ import annotations

import argparse
import logging
import os
import sys

from monitor import alerts, options, state
from monitor.cli import UsageError

HELP = "send one test alert to an Apprise address"
EXAMPLE = """  torchvitals alert-test ntfy://my-topic
  torchvitals alert-test 'slack://TokenA/TokenB/TokenC/#training'
  torchvitals alert-test        # MONITOR_ALERTS, and "alerts" in settings.json"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("url", metavar="URL", nargs="?", help="where to: any address that Apprise knows")


def run(args: argparse.Namespace) -> int:
    """Send it. Status 0 when every service accepted it, 1 when one did not."""
    logging.basicConfig(format="torchvitals: %(message)s", level=logging.WARNING)
    accepted = [_send(url) for url in ([args.url] if args.url else _set())]
    if all(accepted):
        sys.stdout.write("The test alert was accepted.\n")
        return 0
    sys.stderr.write("torchvitals: the test alert was not accepted; check the address and the network.\n")
    return 1


def _set() -> list[str]:
    """The addresses that alerts of a run begun here would go to."""
    try:
        found = [*options.resolve({}, os.environ).alerts, *(state.settings().get("alerts") or ())]
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from None
    if not found:
        raise UsageError('no address: name one, set MONITOR_ALERTS, or put "alerts" into settings.json')
    return list(dict.fromkeys(map(str, found)))


def _send(url: str) -> bool:
    title, body = "torchvitals: test", "If you can read this, alerts arrive here."
    try:
        return alerts.send_once(url, title, body)
    except ValueError:
        raise UsageError(
            f"{url!r} is no address that Apprise knows; it looks like ntfy://topic or mailto://user:password@host"
        ) from None
