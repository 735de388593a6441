"""nn.DataParallel where DistributedDataParallel belongs.

What: `nn.DataParallel` wraps the model. A warning with two GPUs or more, else information.
Why it costs: it copies the model to every GPU in each step and drives them all from one interpreter.
How to see it: the model's class.
How to fix it: `DistributedDataParallel`, one process per GPU; with one device no wrapper.
How sure we are: certain.

Facts: model: `data_parallel`, `location`; env: `gpus`
"""

from __future__ import annotations

from monitor.diagnosis.core.finding import Finding, Severity
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.facts import fact, facts_of, numbers, ranks_where

CODE = "data_parallel"
NEEDS = frozenset({"model"})

#: With so many devices it really copies the model in every step; with fewer it only stands in the way
#: (own).
SEVERAL = 2


def detect(window: Window) -> Finding | None:
    """Structural: torch's own documentation recommends DistributedDataParallel even on one machine."""
    ranks = ranks_where(
        window, lambda rank: any(model.get("data_parallel") for model in facts_of(rank, "model"))
    )
    if not ranks:
        return None
    model = next(one for one in facts_of(ranks[0], "model") if one.get("data_parallel"))
    devices = _devices(ranks[0])
    severity: Severity = "warning" if devices >= SEVERAL else "info"
    return Finding(
        CODE, severity, "nn.DataParallel is used", "nn.DataParallel",
        {"model": model.get("class"), "gpus": devices},
        "Use DistributedDataParallel, one process per GPU: DataParallel copies the model to every GPU in "
        "every step and runs them from one interpreter. With one device drop the wrapper.",
        snippet="# torchrun --nproc-per-node=N train.py\n"
        "model = DistributedDataParallel(model, device_ids=[local_rank])",
        ranks=numbers(ranks), location=model.get("location"),
    )  # fmt: skip


def _devices(rank: Rank) -> int:
    return int(fact(rank, "env").get("gpus") or 0)
