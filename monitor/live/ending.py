"""How a run ended, from how its ranks ended: the cause is told, not those it took along."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping
from typing import Any

Event = Mapping[str, Any]

#: What a launcher sends to the ranks that outlive the first death.
_TAKEN_ALONG = signal.SIGTERM


def ending(ends: Iterable[Event]) -> tuple[str, dict[str, Any]]:
    """Status ("finished", "crashed", "killed") and the report's `exit`, from `rank_end` events.

    The first rank that came to no clean end decides; one that was asked to end (SIGTERM) only where
    no other did. An unclean end of which neither code nor exception is known was a kill.
    """
    told = sorted(ends, key=lambda end: (float(end.get("t_s", 0.0)), int(end.get("rank", 0))))
    bad = [end for end in told if not clean(end)]
    if not bad:
        return "finished", _exit(told[0] if told else {})
    end = min(bad, key=lambda end: end.get("signal") == _TAKEN_ALONG)
    crashed = end.get("signal") is None and (end.get("code") is not None or bool(end.get("exception")))
    return "crashed" if crashed else "killed", _exit(end)


def clean(end: Event) -> bool:
    """Whether a rank ended as it should."""
    told = end.get("clean")
    if isinstance(told, bool):
        return told
    return end.get("signal") is None and end.get("code") in (0, None) and not end.get("exception")


def signal_name(number: Any) -> str | None:
    """ "SIGKILL" for 9; None for None; the text of anything unknown."""
    if number is None or isinstance(number, str):
        return number
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _exit(end: Event) -> dict[str, Any]:
    return {
        "code": end.get("code"),
        "signal": signal_name(end.get("signal")),
        "reason": end.get("reason"),
        "rank": end.get("rank"),
        "last_step": end.get("last_step"),
        "last_phase": end.get("last_phase"),
    }
