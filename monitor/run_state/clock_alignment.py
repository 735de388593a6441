"""Every host counts seconds from when it joined the run; here all count from when the run began.

The hosts' wall clocks say how far apart they began, as well as those agree. Within a host nothing changes.
"""

from __future__ import annotations

import dataclasses
import math
from array import array
from collections.abc import Mapping
from typing import Any

from monitor.batch import Batch

#: A host that began so long before or after the run has a wall clock that is wrong, seconds.
BELIEVED_S = 30 * 24 * 3600.0

#: Times in events, beside `t_s`, that are counted from the run's beginning.
TIMES = ("t_s", "since_s", "failed_s")


class ClockAlignment:
    """Puts all hosts' batches on one time.

    Attributes:
        shifts: host -> seconds that are added to its times.
    """

    def __init__(self) -> None:
        self.shifts: dict[str, float] = {}

    def align(self, batch: Batch, began_unix_s: Any) -> Batch:
        """The batch on the run's time.

        Args:
            batch: as its host sent it; the first one has a `run` event with `started_unix_s`.
            began_unix_s: when the run began; None while nobody has told, and then this host begins it.
        """
        for event in batch.events:
            if event["kind"] == "run":
                self.shifts[batch.host] = _shift(event.get("started_unix_s"), began_unix_s)
        shift_s = self.shifts.get(batch.host, 0.0)
        return _shifted_batch(batch, shift_s) if shift_s else batch


def _shift(started: Any, began: Any) -> float:
    if not (_number(started) and _number(began)):
        return 0.0
    apart = float(started) - float(began)
    return apart if abs(apart) <= BELIEVED_S else 0.0


def _shifted_batch(batch: Batch, by_s: float) -> Batch:
    blocks = tuple(
        dataclasses.replace(block, t_s=array("d", [t_s + by_s for t_s in block.t_s]))
        for block in batch.blocks
    )
    events = tuple(shifted(event, by_s) for event in batch.events)
    return dataclasses.replace(batch, sent_s=batch.sent_s + by_s, blocks=blocks, events=events)


def shifted(event: Mapping[str, Any], by_s: float) -> dict[str, Any]:
    """An event with all its times later by so much."""
    return {**event, **{key: event[key] + by_s for key in TIMES if _number(event.get(key))}}


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
