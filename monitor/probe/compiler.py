"""What torch.compile did: graphs, breaks, recompilations, as its own records tell. Imports none of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from monitor.probe import torch_compat
from monitor.probe.source_location import foreign, short

#: Breaks, and recompiled functions, that are told of; the most frequent first.
REASONS = 12
#: Letters of a reason that are kept: the first lines say what it was, the rest is general advice.
REASON_CHARS = 600

_ENTRY = re.compile(r"^\d+(/\d+)+: ")
#: How torch says that it will not compile a function again: the words of 2.4, of 2.9, and of 2.13 and 2.15.
_GAVE_UP = re.compile(r"cache_size_limit reached|recompile_limit reached|recompile limit exceeded")


class Compiler:
    """Reads torch's records now and then, and adds up what those keep only for a while."""

    def __init__(self) -> None:
        self._read: object = None
        self._facts: dict[str, Any] | None = None
        self._since_us = 0
        self._count = 0
        self._place: str | None = None
        self._again: dict[tuple[str, str | None], dict[str, Any]] = {}
        self._limit_hit = False

    def facts(self, step: int) -> dict[str, Any] | None:
        """The fact "compile"; None where torch.compile was never used.

        Keys: used, called, unique_graphs, frames, compilations, limit_hit, location (the first function of
        the user's that was compiled), graph_breaks [{reason, location, count}] and recompiles
        [{function, reason, location, count, last_step}], both bounded.

        Args:
            step: steps done so far.
        """
        if not torch_compat.loaded(torch_compat.COMPILATION_METRICS):
            return None
        counters = torch_compat.value(torch_compat.DYNAMO_COUNTERS)
        entries = torch_compat.value(torch_compat.COMPILATION_METRICS)()
        newest = max(map(_start_us, entries), default=0)
        state = newest, sum(counters["frames"].values()), sum(counters["graph_break"].values())
        if state == self._read:
            return self._facts
        self._read = state
        self._take(entries, step)
        if not self._count and not counters["stats"] and not counters["frames"]:
            return None
        gave_up = [text for kind in ("unimplemented", "graph_break") for text in counters[kind]]
        self._limit_hit = self._limit_hit or any(_GAVE_UP.search(str(text)) for text in gave_up)
        again = sorted(self._again.values(), key=lambda one: -one["count"])
        self._facts = {
            "used": True,
            "called": True,
            "unique_graphs": counters["stats"].get("unique_graphs", 0),
            "frames": dict(counters["frames"]),
            "compilations": self._count,
            "limit_hit": self._limit_hit,
            "location": self._place,
            "graph_breaks": breaks(counters, torch_compat.value_or(torch_compat.GRAPH_BREAK_REASONS, ())),
            "recompiles": [dict(one) for one in again[:REASONS]],
        }
        return self._facts

    def _take(self, entries: Iterable[Any], step: int) -> None:
        """Add the compilations since the last time. Torch keeps the newest 64."""
        for entry in entries:
            started = _start_us(entry)
            if started <= self._since_us:
                continue
            self._since_us = started
            if getattr(entry, "co_filename", None) is None:
                continue
            self._count += 1
            own = not foreign(entry.co_filename)
            place = f"{short(entry.co_filename)}:{entry.co_firstlineno}" if own else None
            self._place = self._place or place
            if reason := _reason(entry):
                self._recompiled(str(entry.co_name), place, str(reason), step)

    def _recompiled(self, function: str, place: str | None, reason: str, step: int) -> None:
        one = self._again.setdefault((function, place), {"function": function, "location": place, "count": 0})
        one["reason"] = _ENTRY.sub("", reason)[:REASON_CHARS]
        one["count"] += 1
        one["last_step"] = step


def _start_us(entry: Any) -> int:
    """When a compilation began; 0 for a backward pass, of which torch 2.4 has an entry without a time."""
    return int(getattr(entry, "start_time_us", None) or 1e6 * (getattr(entry, "start_time", None) or 0))


def _reason(entry: Any) -> str | None:
    """Why a function was compiled again; None the first time. Before torch 2.5 it stands beside the entry."""
    if hasattr(entry, "recompile_reason"):
        reason: str | None = entry.recompile_reason
        return reason
    if not entry.cache_size:
        return None
    place = entry.co_filename, entry.co_firstlineno, entry.co_name
    for code, reasons in list(torch_compat.value_or(torch_compat.GUARD_FAILURES, {}).items()):
        if reasons and (code.co_filename, code.co_firstlineno, code.co_name) == place:
            return str(reasons[-1])
    return None


def breaks(counters: Any, records: Iterable[Any]) -> list[dict[str, Any]]:
    """Where graphs broke, with torch's reason: from its records of breaks, else from its counters."""
    found: Counter[tuple[str, str | None]] = Counter()
    for record in list(records):
        found[str(record.reason)[:REASON_CHARS], _users(record.user_stack)] += 1
    known_reasons = {reason for reason, _ in found}
    for reason, count in list(counters["graph_break"].items()):
        if str(reason)[:REASON_CHARS] not in known_reasons:
            found[str(reason)[:REASON_CHARS], None] = count
    return [
        {"reason": reason, "location": place, "count": count}
        for (reason, place), count in found.most_common(REASONS)
    ]


def _users(stack: Any) -> str | None:
    """The innermost line of the user's own code in one of torch's stacks."""
    own = [frame for frame in stack or () if not foreign(frame.filename)]
    return f"{short(own[-1].filename)}:{own[-1].lineno}" if own else None
