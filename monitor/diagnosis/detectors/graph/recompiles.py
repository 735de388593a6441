"""torch.compile compiles the same code again and again.

What: one function was recompiled four times or more (three are information).
Why it costs: each takes tenths of a second to minutes; after eight torch gives up and runs it uncompiled.
How to see it: the reason and the function.
How to fix it: changing shapes: `dynamic=True`, `mark_dynamic`, or pad to a few lengths. Otherwise keep what
    changes out of the compiled code.
How sure we are: counted by the compiler itself.

Facts: compile: `recompiles` [{function, reason, location, count, last_step}], `limit_hit`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monitor.diagnosis.core.finding import Finding, Severity
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.facts import fact, numbers, ranks_where

CODE = "recompiles"
NEEDS = frozenset({"compile"})
CURVE = ("run", "run_forward_ms")

#: Steps in which something was compiled are slow, and falling back to eager slows all later ones.
EXPLAINS = frozenset({"step_outliers", "throughput_regression"})

#: Recompilations of one function that are too many. torch gives up at 8; one or two are how it learns
#: that a size is dynamic, or that evaluation differs from training.
WARNING = 4

#: So many deserve a word (own).
INFO = 3

#: torch's name for the rest of a function after a graph break.
_AFTER_A_BREAK = "torch_dynamo_resume_in_"


def detect(window: Window) -> Finding | None:
    """The function that was recompiled most often, and why."""
    ranks = ranks_where(window, lambda rank: _times(rank) >= INFO)
    if not ranks:
        return None
    rank = max(ranks, key=_times)
    worst, gave_up = _worst(rank), bool(fact(rank, "compile").get("limit_hit"))
    severity: Severity = "warning" if _times(rank) >= WARNING else "info"
    why = str(worst.get("reason") or "")
    evidence: dict[str, Any] = {
        "recompiles": _times(rank), "function": worst.get("function"),
        "reason": why[:200], "gave_up": gave_up,
    }  # fmt: skip
    return Finding(
        CODE, severity, "torch.compile keeps recompiling", _cause(why),
        {key: value for key, value in evidence.items() if value}, _advice(why),
        snippet="torch.compile(model, dynamic=True)" if _cause(why) == "input shapes change" else "",
        ranks=numbers(ranks), last_step=worst.get("last_step"), location=worst.get("location"),
    )  # fmt: skip


def _known(rank: Rank) -> list[Mapping[str, Any]]:
    """Recompilations, but for those of what follows a graph break: they go with the break."""
    recompiles = fact(rank, "compile").get("recompiles") or ()
    return [
        one for one in recompiles
        if isinstance(one, Mapping) and not str(one.get("function")).startswith(_AFTER_A_BREAK)
    ]  # fmt: skip


def _worst(rank: Rank) -> Mapping[str, Any]:
    return max(_known(rank), key=lambda one: int(one.get("count") or 0), default={})


def _times(rank: Rank) -> int:
    """Recompilations of the function that has most."""
    totals: dict[Any, int] = {}
    for one in _known(rank):
        name = one.get("function"), one.get("location")
        totals[name] = totals.get(name, 0) + int(one.get("count") or 0)
    return max(totals.values(), default=0)


def _cause(why: str) -> str:
    if any(word in why for word in ("size", "shape", "stride")):
        return "input shapes change"
    if "grad_mode" in why or "requires_grad" in why:
        return "gradient mode changes"
    return "a guard fails" if why else "reason unknown"


def _advice(why: str) -> str:
    if _cause(why) == "input shapes change":
        return (
            "Compile with dynamic=True, mark the changing dimension with torch._dynamo.mark_dynamic, or "
            "pad inputs to a few fixed lengths."
        )
    return (
        "Whatever the reason names changes between calls: pass it as a tensor, or keep it out of the "
        "compiled code. TORCH_LOGS=recompiles prints every one."
    )
