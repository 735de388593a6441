"""What a person at the terminal is told while a stall lasts: lines that `torchvitals run` prints."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: The file's name in the spool.
NAME = "said"
#: Lines of one run at most: a terminal is no log.
LINES = 200


class Terminal:
    """Lines for whoever watches the terminal of this host's ranks."""

    def __init__(self, spool: Path) -> None:
        self._path = spool / NAME
        self._left = LINES

    def print_event(self, event: Mapping[str, Any]) -> None:
        """Say what an event means, where it means something to a person there. Never raises."""
        text = line(event)
        if text is None or not self._left:
            return
        self._left -= 1
        with contextlib.suppress(OSError), self._path.open("a") as file:
            file.write(f"{text}\n")


def line(event: Mapping[str, Any]) -> str | None:
    """One line for a `stall`, `stall_over` or `on_stall` event; None for any other."""
    if event["kind"] == "stall":
        location = f", at {event['location']}" if event.get("location") else ""
        function = f" ({event['function']})" if location and event.get("function") else ""
        phase = f" in {event['phase']}" if event.get("phase") else ""
        return (
            f"no progress: rank {event['rank']} has made no step for {event['for_s']:g} s{phase}{location}"
            f"{function}: {event['cause']}"
        ).replace("\n", " ")
    if event["kind"] == "stall_over":
        return f"no progress: over on rank {event['rank']} after {event['for_s']:g} s"
    return str(event["text"]).replace("\n", " ") if event["kind"] == "on_stall" else None


class TerminalLines:
    """The other end: the lines that have come since the last look.

    Args:
        spool: the run's spool, which may be gone at any time.
    """

    def __init__(self, spool: Path) -> None:
        self._path = spool / NAME
        self._at = 0

    def new(self) -> list[str]:
        """Whole lines, oldest first."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                found = file.read(1 << 20)
        except OSError:
            return []
        complete = found[: found.rfind(b"\n") + 1]
        self._at += len(complete)
        return complete.decode(errors="replace").splitlines()
