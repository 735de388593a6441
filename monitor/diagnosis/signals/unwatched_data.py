"""Waiting for data where there is no DataLoader, told from sampled stacks: no hook can see it.

A generator, a queue, a thread that fetches ahead: the function that trains stands at the head of its loop, or
at a call that takes the next batch. What it does at another line may be making a batch as well (indexing,
drawing random numbers), so of that only reading values and logging are known to be none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from monitor.diagnosis.signals.stack_attribution import kind_of

#: Up to this share of unclaimed time nothing is sampled (own: as the agent's), and what
#: waits for data there is taken for none.
UNSAMPLED = 0.15
#: A share is told where it is known to within this, with 95 % confidence (own: what a share by hand may
#: differ by); and from this share of unclaimed time on: of less, too much is the loop's own work between its
#: phases, which passes through torch as they do and which py-spy, not pausing the process, sees less often.
WITHIN, MOSTLY = 0.05, 0.6

#: The head of a loop: what runs there is its iterator.
_LOOP_HEAD = re.compile(r"(?:async\s+)?for\s.*\bin\b|.*\bfor\s+\S.*\bin\s.*:\s*\Z")
#: A call that takes the next batch out of something.
_TAKES = re.compile(r"(?<!\w)next\s*\(|\.\s*(?:get|get_nowait|recv|recv_bytes|popleft|__next__)\s*\(")
#: A line that trains or measures: it makes no batch.
_TRAINS = re.compile(
    r"\.backward\s*\(|zero_grad\s*\(|clip_grad|(?:opt\w*|sched\w*|scaler)\.\s*step\s*\(|loss"
)
#: Where a thread waits for what another one puts there.
_QUEUE_FILE = re.compile(
    r"(?:^|[/\\])(?:queue|multiprocessing[/\\](?:queues|connection|pool)|asyncio[/\\]\w+)\.py\Z"
)


@dataclass(frozen=True)
class Waiting:
    """What stacks say of one rank's waiting for data.

    Attributes:
        share: of its time, 0 to 1; None where it cannot be told.
        samples: the stacks that tell it; 0 where none were needed.
    """

    share: float | None
    samples: int


class _Interval(NamedTuple):
    share: float
    low: float


def waiting(event: Mapping[str, Any] | None, other: float, forward: float) -> Waiting:
    """The share of time that a rank waited for data, where no loader was heard of.

    Args:
        event: the newest `other_stack` event of the rank.
        other: the share of its time that nothing claims.
        forward: that of its forward passes; without any, calls of modules are unclaimed as well.
    """
    told = event or {}
    total = _number(told, "total") - (_number(told, "in_modules") if forward else 0)
    if total <= 0:
        return Waiting(0.0 if other <= UNSAMPLED else None, 0)
    seen = {True: 0, False: 0}
    for frame in told.get("frames") or ():
        if isinstance(frame, Mapping) and (fetching := fetches(frame)) is not None:
            seen[fetching] += _number(frame, "count")
    waits, made = (_interval(min(seen[key] / total, 1.0), total) for key in (True, False))
    if other > MOSTLY and other * (1 - waits.low) <= WITHIN:
        return Waiting(other * waits.share, total)
    none = not seen[True] and (other <= UNSAMPLED or other * (1 - made.low) <= WITHIN)
    return Waiting(0.0 if none else None, total)


def fetches(frame: Mapping[str, Any]) -> bool | None:
    """Whether a sampled stack was taken while the loop waited for its next batch; None: it cannot be told."""
    at, leaf_file = (
        str(frame.get("step_source") or frame.get("source") or ""),
        str(frame.get("leaf_file") or ""),
    )
    if _LOOP_HEAD.match(at) or _TAKES.search(at) or _QUEUE_FILE.search(leaf_file):
        return True
    return False if _TRAINS.search(at) or kind_of(frame) != "unknown" else None


def _interval(share: float, samples: int) -> _Interval:
    """A sampled share, and what it is at least, with 95 % confidence (Wilson)."""
    z, n = 1.96, samples
    middle, spread = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return _Interval(share, (middle - spread) / (1 + z * z / n))


def _number(of: Mapping[str, Any], key: str) -> int:
    return int(of.get(key) or 0)
