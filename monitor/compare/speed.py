"""Speed: how much faster one run is than another, and whether that can be told from chance."""

from __future__ import annotations

import math
from typing import Any

from monitor.compare.side import MOST_LOST, Side
from monitor.compare.statistics import Ratio, mean_of, ratio_of

#: Relative standard deviation between runs of one and the same thing that no run shows by itself: memory
#: lies elsewhere, threads meet other CPUs (Mytkowicz, Diwan, Hauswirth and Sweeney, Producing Wrong Data
#: Without Doing Anything Obviously Wrong!, ASPLOS 2009; theirs and ours: 0.01 and more).
REPEAT = 0.01
#: The same of a run that lasts one second, from what a machine does at the scale of seconds: clocks,
#: caches, neighbours. It falls with the root of the time (own: the same scripts repeated on two shared
#: cores differed by up to 1.5 times at one to ten seconds, and by 3.7 at an eighth of a second; see
#: docs/compare.md).
REPEAT_OF_A_SECOND = 0.2
#: Work of a step counts as changed when samples a step differ by more than this.
SAME_WORK = 0.01
#: Share of time lost to other processes from which on it is worth a word.
BUSY = 0.02


def speed(before: Side, after: Side) -> dict[str, Any]:
    """The speed of both and their ratio.

    Returns:
        `baseline_steps_per_s`, `candidate_steps_per_s`; `unit` ("steps", or "samples" where a step of the
        two holds a different number of them) and in it `baseline_per_s`, `candidate_per_s`, `speedup`,
        `low` and `high` of its 95 % interval; `effective_steps` of both; `lost_share` of both, by which the
        interval was widened; `verdict`: "faster", "slower", "no difference" (that could be told from
        chance) or "unknown". What cannot be known is null.
    """
    means = [mean_of(side.steps("step_ms")) for side in (before, after)]
    per_s = [1e3 / mean.value if mean else None for mean in means]
    work, unit = _work(before, after)
    ratio = Ratio(float("nan"), None, None)
    if means[0] and means[1]:
        inflated = -math.log(1 - before.lost_share), -math.log(1 - after.lost_share)
        spread = math.hypot(_repeat(before), _repeat(after))
        ratio = ratio_of(means[0], means[1], spread, inflated)
        if max(before.lost_share, after.lost_share) >= MOST_LOST:
            ratio = Ratio(ratio.value, None, None)
    scale = work[1] / work[0]
    known = means[0] is not None and means[1] is not None
    return {
        "baseline_steps_per_s": per_s[0],
        "candidate_steps_per_s": per_s[1],
        "unit": unit,
        "baseline_per_s": per_s[0] and per_s[0] * work[0],
        "candidate_per_s": per_s[1] and per_s[1] * work[1],
        "speedup": ratio.value * scale if known else None,
        "low": ratio.low and ratio.low * scale,
        "high": ratio.high and ratio.high * scale,
        "effective_steps": [mean and round(mean.effective) for mean in means],
        "lost_share": [before.lost_share, after.lost_share],
        "verdict": _verdict(ratio, scale),
    }


def _repeat(side: Side) -> float:
    """Relative standard deviation by which this run would differ from itself, had it been run again."""
    lasted_s = float(side.steps("step_ms").sum()) / 1e3
    return math.hypot(REPEAT, REPEAT_OF_A_SECOND / math.sqrt(max(lasted_s, 1e-3)))


def _work(before: Side, after: Side) -> tuple[tuple[float, float], str]:
    """What a step of each is worth: samples of all ranks where these differ, else one step."""
    first, second = (
        (side.mean("samples") or 0.0) * float(side.report["world_size"] or 1) for side in (before, after)
    )
    if first > 0 and second > 0 and abs(second / first - 1) > SAME_WORK:
        return (first, second), "samples"
    return (1.0, 1.0), "steps"


def _verdict(ratio: Ratio, scale: float) -> str:
    if ratio.low is None or ratio.high is None:
        return "unknown"
    if ratio.low * scale > 1:
        return "faster"
    return "slower" if ratio.high * scale < 1 else "no difference"
