"""Which rank the others wait for in a collective. The one that merely waits is never blamed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Window
from monitor.diagnosis.signals import flight_recorder

#: What the agent calls a rank that only waits for another one.
WAITING = "collective"


@dataclass(frozen=True)
class Missing:
    """Who does not come.

    Attributes:
        ranks: those that are waited for.
        text: a stable phrase that says what became of them.
        advice: what to do.
    """

    ranks: tuple[int, ...]
    text: str
    advice: str


_UNEVEN = (
    "Give all ranks equally many batches: DistributedSampler(drop_last=True), or an equal number of steps. "
    "Where that cannot be, train inside Join([model])."
)
_ENDED = "That rank's process has ended; the others wait in a collective for it. See how it ended."
_FLIGHT = "See the stack of that rank: it has not come to the collective in which the others wait."


def missing(window: Window, stalls: Sequence[Mapping[str, Any]]) -> Missing | None:
    """Who the stalled ranks wait for; None where none waits in a collective, or nobody can tell.

    Args:
        stalls: `stall` events that belong together.
    """
    waits = [stall for stall in stalls if stall.get("cause_code") == WAITING]
    if not waits:
        return None
    waiting, at_s = (
        {int(stall.get("rank", 0)) for stall in waits},
        max(float(stall["t_s"]) for stall in waits),
    )
    others = [rank for rank in sorted(window.ranks) if rank not in waiting]
    left = tuple(rank for rank in others if _left(window, rank, at_s))
    if left and not any(_left(window, rank, at_s) for rank in waiting):
        return Missing(left, message("{ranks} without a further batch", ranks=_names(left)), _UNEVEN)
    ended = tuple(rank for rank in others if _ended(window, rank, at_s))
    if ended:
        return Missing(ended, message("{ranks} ended", ranks=_names(ended)), _ENDED)
    hang = flight_recorder.analyse(_dumps(window))
    if hang is not None:
        return Missing(
            hang.culprits, message("{ranks} {what}", ranks=_names(hang.culprits), what=hang.text), _FLIGHT
        )
    return None


def _left(window: Window, rank: int, at_s: float) -> bool:
    """Whether its loader had no batch left by then, and it has taken no step since."""
    events = [event for event in window.events_of("exhausted", "epoch", rank=rank) if event["t_s"] <= at_s]
    if not events or events[-1]["kind"] != "exhausted":
        return False
    ends = np.asarray(window.ranks[rank].steps.get("t_s", ()))
    return not ((ends > events[-1]["t_s"]) & (ends <= at_s)).any()


def _ended(window: Window, rank: int, at_s: float) -> bool:
    ended = window.ranks[rank].ended
    return ended is not None and float(ended.get("t_s", 0.0)) <= at_s


def _dumps(window: Window) -> dict[int, Mapping[str, Any]]:
    """The newest flight recording of each rank."""
    recordings = window.events_of("flight")
    return {
        int(one.get("rank", 0)): one["dump"] for one in recordings if isinstance(one.get("dump"), Mapping)
    }


def _names(ranks: tuple[int, ...]) -> str:
    return f"rank {', '.join(map(str, ranks[:8]))}{', …' if len(ranks) > 8 else ''}"
