"""How sure a finding is: by how much was seen of it. What is read from the configuration is certain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.lifecycle import ENOUGH_STEPS
from monitor.diagnosis.core.messages import message

Level = Literal["certain", "high", "medium", "low"]

#: From so many steps on it is neither high nor low (own: a tenth; medians move little beyond).
SOME_STEPS = ENOUGH_STEPS // 10


@dataclass(frozen=True)
class Confidence:
    """A level, and why it is that one."""

    level: Level
    why: str


def confidence(finding: Finding) -> Confidence:
    """By the steps from the first to the last one that the finding was seen at."""
    first, last = finding.first_step, finding.last_step
    steps = 0 if first is None or last is None else last - first + 1
    if steps <= 1:
        return Confidence("certain", "an event or a setting that was seen")
    level: Level = "high" if steps >= ENOUGH_STEPS else "medium" if steps >= SOME_STEPS else "low"
    return Confidence(level, message("seen over {steps:,} steps", steps=steps))
