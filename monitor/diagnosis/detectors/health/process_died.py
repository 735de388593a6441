"""A rank came to no clean end: killed, crashed, or left with an exit status of its own.

What: no clean end: a signal, an exception, an exit status, an out-of-memory kill. Critical; information
    when it was stopped by hand.
Why it costs: what was not saved is lost.
How to see it: last step, last phase, last memory, and workers that were left behind.
How to fix it: by cause; the advice stands with the finding.
How sure we are: certain that it died. Who sent a signal is not known.

Columns: `rss_mb`
Events: the rank's end: `code`, `signal`, `reason`, `clean`, `oom_kill`, `last_step`, `last_phase`,
    `orphans`; `exception`: `location`
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any

from monitor.diagnosis.core.finding import Finding, Severity
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Rank, Window

CODE = "process_died"
NEEDS: frozenset[str] = frozenset()
CURVE = ("run", "steps_per_s")

#: Signals by which a user or a scheduler ends a run on purpose. A launcher sends the second one to the
#: ranks that outlive the first death, so they are never taken for the cause.
BY_HAND = {"SIGINT"}
BY_LAUNCHER = {"SIGTERM"}

_ADVICE = {
    "out of memory": "The kernel killed it for lack of memory: see memory_leak and memory_pressure, lower "
    "batch_size or num_workers, or raise the limit.",
    "SIGKILL": "Something sent SIGKILL: look for the out-of-memory killer (dmesg, the container's or the "
    "scheduler's log), a time limit, or a person.",
    "SIGSEGV": "Native code crashed: look at the line it was called from, and at recently changed extension "
    "packages.",
    "SIGABRT": "Native code gave up (a failed assertion, a watchdog of a communication library): what it "
    "said stands on stderr; look at the line it was called from.",
    "on_stall=abort": "It made no progress and was ended, as you asked for: see the finding stall, and the "
    "file with the stacks beside the run.",
    "SIGBUS": "A bus error while training usually means that /dev/shm is full: enlarge it (docker run "
    "--shm-size) or lower num_workers.",
    "SIGTERM": "Something asked the process to end: a scheduler's time limit, a preemption, or a launcher "
    "whose other rank died first.",
    "SIGINT": "Stopped by hand.",
}


def detect(window: Window) -> Finding | None:
    """All deaths are one finding; the first to die without being told to is its cause."""
    dead = [
        (rank, rank.ended)
        for rank in window.ranks.values()
        if rank.ended is not None and _unclean(rank.ended)
    ]
    if not dead:
        return None
    rank, end = min(dead, key=lambda one: (_name(one[1]) in BY_LAUNCHER, one[1].get("t_s", 0.0), one[0].rank))
    cause = _cause(end)
    severity: Severity = "info" if _name(end) in BY_HAND or _interrupted(end) else "critical"
    return Finding(
        CODE, severity, "The training process died", cause, _evidence(window, rank, end),
        _ADVICE.get(cause, "Read the traceback above the exit status; the run's last state is kept here."),
        ranks=tuple(sorted(one.rank for one, _ in dead)),
        last_step=_last_step(rank, end), location=_location(window, rank),
    )  # fmt: skip


def _unclean(end: Mapping[str, Any]) -> bool:
    if end.get("clean") and not end.get("code") and not end.get("signal"):
        return False
    return bool(end.get("code") or end.get("signal") or end.get("oom_kill") or not end.get("clean", True))


def _name(end: Mapping[str, Any]) -> str:
    """Name of the signal it died by, "" for none."""
    number = end.get("signal")
    if isinstance(number, str):
        return number
    code = end.get("code")
    if not number and isinstance(code, int) and (code < 0 or 128 < code < 160):
        number = -code if code < 0 else code - 128
    try:
        return signal.Signals(int(number)).name if number else ""
    except ValueError:
        return message("signal {number}", number=number)


def _interrupted(end: Mapping[str, Any]) -> bool:
    return "KeyboardInterrupt" in str(end.get("reason") or "")


def _cause(end: Mapping[str, Any]) -> str:
    if end.get("on_stall"):
        return "on_stall=abort"
    if end.get("oom_kill"):
        return "out of memory"
    if _name(end):
        return _name(end)
    kind = str(end.get("reason") or "").split(":")[0].strip()
    if kind and kind.replace(".", "").replace("_", "").isalnum():
        return kind
    return message("exit status {code}", code=end["code"]) if end.get("code") else "no clean end"


def _evidence(window: Window, rank: Rank, end: Mapping[str, Any]) -> dict[str, Any]:
    last = rank.phase[0] if rank.phase else None
    known = {
        "rank": rank.rank,
        "exit_code": end.get("code"),
        "signal": _name(end) or None,
        "reason": end.get("reason"),
        "oom_kill": end.get("oom_kill") or None,
        "last_step": _last_step(rank, end),
        "last_phase": end.get("last_phase") or last,
        "function": end.get("function"),
        "last_rss_mb": _last(rank, "rss_mb"),
        "orphans": ", ".join(map(str, end.get("orphans") or ())) or None,
        "ranks_dead": sum(one.ended is not None for one in window.ranks.values()),
    }
    return {key: value for key, value in known.items() if value is not None}


def _last(rank: Rank, key: str) -> float | None:
    column = rank.samples.get(key)
    return (
        None if column is None or not len(column) or column[-1] != column[-1] else round(float(column[-1]), 1)
    )


def _last_step(rank: Rank, end: Mapping[str, Any]) -> int | None:
    if end.get("last_step") is not None:
        return int(end["last_step"])
    return int(rank.steps["step"][-1]) if rank.count else None


def _location(window: Window, rank: Rank) -> str | None:
    thrown = window.events_of("exception", rank=rank.rank)
    location = thrown[-1].get("location") if thrown else None
    location = location or (rank.ended or {}).get("location")
    return str(location) if location else None
