"""Ranks whose training loaders have different numbers of batches, known before anything hangs.

With DistributedDataParallel every backward pass waits for all ranks, so the ranks with more batches wait
for ever once another one is done. That is no finding: a loop may stop at the same step on all ranks, which
nothing tells beforehand. So it is said as what it is, and only where no fact speaks against it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Facts = Mapping[str, Any]


def uneven_batches(ranks: Sequence[Facts]) -> tuple[int, int] | None:
    """Least and most batches that ranks have, where they differ.

    None where they do not, and where it cannot be told: fewer than two ranks, no DistributedDataParallel on
    one, several or no training loaders on one, loaders of different places in the code (each rank then has
    its own part), a length that is not known, training inside `Join`, or a framework that will stop all ranks
    at the same step.

    Args:
        ranks: every rank's facts, none left out.
    """
    batches = [_batches(facts) for facts in ranks]
    known = [one for one in batches if one is not None]
    plans = {_steps(facts) for facts in ranks}
    if len(batches) < 2 or len(known) < len(batches) or len({location for location, _ in known}) > 1:
        return None
    if len(plans) == 1 and plans != {None}:
        return None
    least, most = min(length for _, length in known), max(length for _, length in known)
    return (least, most) if least < most else None


def _batches(facts: Facts) -> tuple[Any, int] | None:
    """Where the rank's one training loader was made, and its length."""
    ddp = facts.get("ddp")
    if not isinstance(ddp, Mapping) or ddp.get("join"):
        return None
    loaders = [
        fact for name, fact in facts.items() if name.startswith("loader/") and isinstance(fact, Mapping)
    ]
    trained = [loader for loader in loaders if loader.get("role") == "train"]
    length = trained[0].get("length") if len(trained) == 1 else None
    if not isinstance(length, int) or isinstance(length, bool) or length < 1:
        return None
    return trained[0].get("location"), length


def _steps(facts: Facts) -> Any:
    plan = facts.get("plan")
    return plan.get("steps") if isinstance(plan, Mapping) else None
