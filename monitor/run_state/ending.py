"""How a run ended, from how its ranks ended: the cause is told, not those it took along."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Mapping
from typing import Any

Event = Mapping[str, Any]

#: What a launcher sends to the ranks that outlive the first death.
_TAKEN_ALONG = signal.SIGTERM

#: What ranks say whose partner has gone (gloo's transport, NCCL's remote errors, torch's stores).
_PEER_GONE = re.compile(
    r"closed by peer|reset by peer|connection refused|broken pipe|remote error|remote process|"
    r"ncclRemoteError|DistBackendError|DistNetworkError|socket timeout|timed out waiting",
    re.IGNORECASE,
)


def ending(ends: Iterable[Event]) -> tuple[str, dict[str, Any]]:
    """Status ("finished", "crashed", "killed") and the report's `exit`, from `rank_end` events.

    The first rank that came to no clean end decides; one that lost its connection to another rank only
    where no other failed, and one that was asked to end (SIGTERM) only where none did either. An unclean
    end of which neither code nor exception is known was a kill.
    """
    ordered = sorted(ends, key=_when)
    bad = [end for end in ordered if not clean(end)]
    if not bad:
        return "finished", _exit(ordered[0] if ordered else {})
    end = min(bad, key=lambda end: (end.get("signal") == _TAKEN_ALONG, _bereft(end)))
    crashed = end.get("signal") is None and (end.get("code") is not None or bool(end.get("exception")))
    return "crashed" if crashed else "killed", _exit(end)


def _when(end: Event) -> tuple[float, int]:
    failed_s = end.get("failed_s")
    at_s = failed_s if isinstance(failed_s, int | float) else end.get("t_s", 0.0)
    return float(at_s), int(end.get("rank", 0))


def _bereft(end: Event) -> bool:
    """Whether it failed because another rank had gone: gloo and NCCL say so in their own words."""
    return bool(_PEER_GONE.search(str(end.get("reason") or "")))


def clean(end: Event) -> bool:
    """Whether a rank ended as it should."""
    known = end.get("clean")
    if isinstance(known, bool):
        return known
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
