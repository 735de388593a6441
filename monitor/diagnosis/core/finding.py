"""One pitfall, seen in numbers, with what to change and what that brings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Severity = Literal["info", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "critical")


@dataclass(frozen=True)
class Gain:
    """What removing the finding's cost brings, all else equal.

    Attributes:
        share_of_step: share of wall time that would go, 0 to 1.
        speedup: steps per second after ÷ before; never above 1 ÷ (1 − share_of_step).
        basis: how it was worked out, in one sentence with this run's numbers.
    """

    share_of_step: float
    speedup: float
    basis: str


def gain_from_share(share: float, basis: str) -> Gain:
    """Amdahl's law: all of `share` goes, the rest stays. `share` is clamped to 0 … 0.99."""
    share = min(max(share, 0.0), 0.99)
    return Gain(share, 1 / (1 - share), basis)


@dataclass(frozen=True)
class Finding:
    """What a detector returns. One per code, ranks and cause; updated while it lasts.

    Attributes:
        code: a finding code of the contract.
        severity: info never counts as an alarm.
        title: a few words.
        cause: a short stable token or phrase ("num_workers=0"); part of the finding's identity,
            so it holds no changing numbers.
        evidence: what was seen: names with units -> numbers (or short strings).
        advice: the one thing to change, as a sentence.
        snippet: code made from the user's own arguments; "" when there is none.
        gain: None where nothing can be promised.
        ranks: the ranks concerned.
        first_step, last_step: steps it was seen at; None when it has none.
        location: "file.py:31" of the place to change, or None.
        over_at_s: when what it tells of ended, in seconds since the run began, where the events say
            so themselves (a stall that is over); None otherwise.
    """

    code: str
    severity: Severity
    title: str
    cause: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    advice: str = ""
    snippet: str = ""
    gain: Gain | None = None
    ranks: tuple[int, ...] = (0,)
    first_step: int | None = None
    last_step: int | None = None
    location: str | None = None
    over_at_s: float | None = None

    @property
    def identity(self) -> tuple[str, str]:
        """Code and cause: what makes two findings the same one."""
        return self.code, self.cause
