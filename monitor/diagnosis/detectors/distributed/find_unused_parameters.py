"""DDP searches every step for unused parameters, and there are none.

What: DDP was told to look for unused parameters, and no rank has had any for 20 steps. Information.
Why it costs: the graph is walked after every forward pass.
How to see it: `unused_parameters` is 0.
How to fix it: drop the flag.
How sure we are: certain for the steps that were seen; a branch taken later would need the flag.

Facts: ddp: `find_unused_parameters`, `unused_parameter_size`, `iterations`, `location`
"""

from __future__ import annotations

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.facts import fact, numbers, ranks_where

CODE = "find_unused_parameters"
NEEDS = frozenset({"ddp", "steps"})

#: Iterations after which a branch that is taken now and then would have shown itself (own; torch's own
#: warning comes after the first).
ITERATIONS = 20


def detect(window: Window) -> Finding | None:
    """Information: the search costs little on most models (no clear slowdown in ddp_find_unused)."""
    ranks = ranks_where(window, _searches_for_nothing)
    if not ranks or len(ranks) < len(ranks_where(window, lambda rank: bool(fact(rank, "ddp")))):
        return None
    ddp = fact(ranks[0], "ddp")
    return Finding(
        CODE, "info", "DDP searches for unused parameters", "find_unused_parameters=True",
        {"unused_parameters": 0, "iterations": int(_iterations(ranks[0]))},
        "Drop the flag: every parameter is used in every step, and the search walks the whole graph each "
        "time.",
        snippet="DistributedDataParallel(model)",
        ranks=numbers(ranks), location=ddp.get("location"),
    )  # fmt: skip


def _searches_for_nothing(rank: Rank) -> bool:
    ddp = fact(rank, "ddp")
    if not ddp.get("find_unused_parameters") or ddp.get("unused_parameter_size") is None:
        return False
    return not ddp["unused_parameter_size"] and _iterations(rank) >= ITERATIONS


def _iterations(rank: Rank) -> float:
    return float(fact(rank, "ddp").get("iterations") or rank.count)
