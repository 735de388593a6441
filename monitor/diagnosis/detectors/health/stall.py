"""The run makes no progress. The agent sees it from outside; here it becomes a finding.

What: no step for far longer than usual. Critical while it lasts; afterwards a warning, with when it ended.
Why it costs: the run stands still.
How to see it: rank, phase, and the innermost line of your own code.
How to fix it: what that line waits for: a dead mount, a lock, a socket without timeout, a rank that has
    left.
How sure we are: seen from outside the process. The rank that merely waits for another one is not named as
    the cause.

Events: `stall`: `step`, `phase`, `since_s`, `cause`, `cause_code` (`collective` waits for another rank),
    `waits_for`, `location`, `function`; `stall_over`; `exhausted`, `epoch`, `rank_end`, `flight`: `dump`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.window import Window
from monitor.diagnosis.signals.missing_ranks import WAITING, Missing, missing

CODE = "stall"
NEEDS = frozenset({"recording"})
CURVE = ("run", "steps_per_s")

#: While the main thread waits for a batch, the fault is on the loader's side, and so on.
_ADVICE = {
    "data": "The loop waits for a batch: see what the loader's workers are doing (a dead mount, a lock, "
    "a download). DataLoader(timeout=…) turns such a wait into an error with a traceback.",
    "comm": "This rank waits in a collective for another one: see which rank is missing, and whether all "
    "ranks have equally many batches.",
    "backward": "Under DistributedDataParallel backward waits for the other ranks: see which one is missing, "
    "and whether all ranks have equally many batches.",
    "checkpoint": "Saving does not come back: look at the file system it writes to.",
    "eval": "Evaluation does not come back: look at the stack of the main thread.",
}
_ELSE = (
    "Look at the main thread's innermost line: a call there does not come back. Give network and lock "
    "calls a timeout."
)


def detect(window: Window) -> Finding | None:
    """The stall that is going on, else the newest that is over. The rank that merely waits is not blamed."""
    stalls = window.events_of("stall")
    if not stalls:
        return None
    overs = window.events_of("stall_over")
    ends = [(stall, _over_at(window, stall, stalls, overs)) for stall in stalls]
    going = [stall for stall, over in ends if over is None]
    over_at_s = None if going else max(over for _, over in ends if over is not None)
    # The last to end is the one that was told of last while it went on.
    newest = going or [stall for stall, over in ends if over == over_at_s]
    chosen = min(
        newest, key=lambda stall: (stall.get("cause_code") == WAITING, _began(stall), stall.get("rank", 0))
    )
    absent = missing(window, [stall for stall in stalls if _together(stall, chosen)])
    return _finding(window, chosen, going or [chosen], over_at_s, absent)


def _finding(
    window: Window,
    stall: Mapping[str, Any],
    alike: list[Mapping[str, Any]],
    over_at_s: float | None,
    absent: Missing | None,
) -> Finding:
    phase = str(stall.get("phase") or "unknown")
    until = window.now_s if over_at_s is None else over_at_s
    evidence = {
        "rank": stall.get("rank", 0),
        "phase": phase,
        "stalled_s": round(max(until - _began(stall), 0.0), 1),
        "usual_step_ms": stall.get("usual_step_ms"),
        "threshold_s": stall.get("threshold_s"),
        "what": stall.get("cause"),
        "function": stall.get("function"),
        "waits_for_ranks": ", ".join(map(str, stall.get("waits_for") or ())) or None,
    }
    step = stall.get("step")
    what = absent.text if absent else message("stalled in {phase}", phase=phase)
    return Finding(
        CODE, "critical" if over_at_s is None else "warning", "No progress",
        what if step is None else message("{what} (step {step})", what=what, step=step),
        {key: value for key, value in evidence.items() if value is not None},
        absent.advice if absent else _ADVICE.get(phase, _ELSE),
        ranks=_ranks(absent.ranks if absent else (), stall, alike), first_step=step, last_step=step,
        location=stall.get("location"), over_at_s=over_at_s,
    )  # fmt: skip


def _ranks(
    absent: tuple[int, ...], stall: Mapping[str, Any], alike: list[Mapping[str, Any]]
) -> tuple[int, ...]:
    """The cause first, then those that stalled with it."""
    first = absent or (int(stall.get("rank", 0)),)
    return (*first, *sorted({int(one.get("rank", 0)) for one in alike} - set(first)))


def _together(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two ranks stand at the same point: one of them may have let go since."""
    steps = one.get("step"), other.get("step")
    return steps[0] == steps[1] or None in steps or abs(int(steps[0] or 0) - int(steps[1] or 0)) <= 1


def _began(stall: Mapping[str, Any]) -> float:
    return float(stall.get("since_s", stall["t_s"]))


def _over_at(
    window: Window, stall: Mapping[str, Any], stalls: list[Mapping[str, Any]], overs: list[Mapping[str, Any]]
) -> float | None:
    """When the stall ended: told by the agent, or by a newer stall of the same rank; None while it lasts.

    A rank that died in its stall never left it.
    """
    rank, began = stall.get("rank", 0), float(stall["t_s"])
    ends = [float(over["t_s"]) for over in overs if over.get("rank", 0) == rank and over["t_s"] >= began]
    newer = [
        _began(other) for other in stalls
        if other.get("rank", 0) == rank and other["t_s"] > began and other.get("step") != stall.get("step")
    ]  # fmt: skip
    return min([*ends, *newer], default=None)
