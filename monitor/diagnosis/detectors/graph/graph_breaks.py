"""Compiled code is cut into pieces by what the compiler cannot follow.

What: compiled code is cut in pieces (two breaks or more; one is information), or was called and never
    compiled at all.
Why it costs: nothing is fused across a break, and each piece has its own overhead.
How to see it: the reason and its line.
How to fix it: keep decisions on the device (`torch.where` instead of `.item()` and `if`), move printing and
    other calls out. `fullgraph=True` turns each break into an error that names it.
How sure we are: counted by the compiler itself.

Facts: compile: `graph_breaks` [{reason, location, count}], `unique_graphs`, `called`, `location`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monitor.diagnosis.core.finding import Finding, Severity
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.facts import fact, numbers, ranks_where

CODE = "graph_breaks"
NEEDS = frozenset({"compile", "steps"})
CURVE = ("run", "run_forward_ms")

#: Breaks from which on it is a fault (own: one break, say around a print, costs little; torch counts one
#: per piece and per compilation).
WARNING = 2


def detect(window: Window) -> Finding | None:
    """The most frequent break, with its line; or compiled code that silently runs uncompiled."""
    ranks = ranks_where(window, lambda rank: _count(rank) > 0)
    if not ranks:
        return _nothing_compiled(window)
    rank = max(ranks, key=_count)
    worst, compiled = _worst(rank), fact(rank, "compile")
    severity: Severity = "warning" if _count(rank) >= WARNING else "info"
    evidence = {
        "graph_breaks": _count(rank),
        "graphs": compiled.get("unique_graphs"),
        "reason": str(worst.get("reason") or "")[:200],
    }
    return Finding(
        CODE, severity, "The compiled graph is broken", _cause(str(worst.get("reason") or "")),
        {key: value for key, value in evidence.items() if value}, _advice(str(worst.get("reason") or "")),
        snippet="torch.compile(model, fullgraph=True)  # names every break as an error",
        ranks=numbers(ranks), location=worst.get("location") or compiled.get("location"),
    )  # fmt: skip


def _nothing_compiled(window: Window) -> Finding | None:
    """`.item()` that steers a Python loop can leave no graph and no break (measurements.md#compiled-code)."""
    ranks = ranks_where(window, _silently_eager)
    if not ranks:
        return None
    return Finding(
        CODE, "warning", "torch.compile compiled nothing", "runs uncompiled", {"graphs": 0},
        "The compiler gave up silently and the code runs as it is: compile with fullgraph=True to see why.",
        snippet="torch.compile(model, fullgraph=True)",
        ranks=numbers(ranks), location=fact(ranks[0], "compile").get("location"),
    )  # fmt: skip


def _silently_eager(rank: Rank) -> bool:
    compiled = fact(rank, "compile")
    return bool(compiled.get("called")) and compiled.get("unique_graphs") == 0


def _breaks(rank: Rank) -> list[Mapping[str, Any]]:
    return [one for one in fact(rank, "compile").get("graph_breaks") or () if isinstance(one, Mapping)]


def _worst(rank: Rank) -> Mapping[str, Any]:
    return max(_breaks(rank), key=lambda one: int(one.get("count") or 0), default={})


def _count(rank: Rank) -> int:
    return sum(int(one.get("count") or 0) for one in _breaks(rank))


def _cause(why: str) -> str:
    lower = why.lower()
    if "item()" in lower or "scalar" in lower or "data-dependent" in lower or "data dependent" in lower:
        return "a tensor's value steers Python"
    if "print" in lower or "logging" in lower:
        return "printing or logging"
    return "a call the compiler cannot follow"


def _advice(why: str) -> str:
    if _cause(why) == "a tensor's value steers Python":
        return "Keep the decision on the device: torch.where or torch.cond instead of .item() and if."
    if _cause(why) == "printing or logging":
        return "Move printing and logging out of the compiled code."
    return "Move the call out of the compiled code, or exclude it on purpose with torch.compiler.disable."
