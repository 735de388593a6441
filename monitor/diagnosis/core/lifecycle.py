"""A finding's life, from the first suspicion until it is gone. It does not flap."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from monitor.diagnosis.core.finding import Finding

#: Examinations in a row (about one a second) that must show a finding before it is raised (own).
CONFIRM = 3

#: A finding seen over this many steps at once needs no second look (own).
ENOUGH_STEPS = 1000

#: Examinations in a row without it before a finding is cleared (own: longer than it took to raise,
#: so that a value which swings about a threshold is told once).
FORGET = 5


@dataclass(frozen=True)
class Record:
    """A finding that was raised.

    Attributes:
        finding: as it was last seen.
        raised_at_s, cleared_at_s: seconds since the run began; `cleared_at_s` is None while it stands.
    """

    finding: Finding
    raised_at_s: float
    cleared_at_s: float | None = None


@dataclass(frozen=True)
class Change:
    """What happened to one record.

    Attributes:
        renamed: it is cleared, or raised, only because its detector has found a better cause for the
            same thing; nothing began or ended.
    """

    kind: Literal["raised", "updated", "cleared"]
    record: Record
    renamed: bool = False


class FindingLifecycle:
    """The life of all findings of one run.

    Args:
        records: what an earlier life of the hub had raised already.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._records = {record.finding.identity: record for record in records}
        self._seen: dict[tuple[str, str], int] = {}
        self._missed: dict[tuple[str, str], int] = {}

    @property
    def records(self) -> list[Record]:
        """Everything that was ever raised, oldest first."""
        return sorted(
            self._records.values(), key=lambda record: (record.raised_at_s, record.finding.identity)
        )

    @property
    def standing(self) -> list[Finding]:
        """Findings raised and not cleared, oldest first."""
        return [record.finding for record in self.records if record.cleared_at_s is None]

    def update(
        self,
        findings: Sequence[Finding],
        now_s: float,
        *,
        unchecked: Collection[str] = (),
        finished: bool = False,
    ) -> list[Change]:
        """Take in one examination.

        Args:
            findings: what it found.
            now_s: its time, seconds since the run began.
            unchecked: codes that it could not check: what stands for them stands on.
            finished: True for the last one, after which nothing can be confirmed or cleared: what it
                shows is raised at once, and what stood before stays.
        """
        changes = [change for finding in findings for change in self._meet(finding, now_s, finished)]
        met = {finding.identity for finding in findings}
        for identity in [identity for identity in self._seen if identity not in met]:
            del self._seen[identity]
        if not finished:
            changes += self._forget(met, now_s, unchecked)
        return changes

    def _meet(self, finding: Finding, now_s: float, finished: bool) -> list[Change]:
        identity = finding.identity
        self._seen[identity] = self._seen.get(identity, 0) + 1
        self._missed.pop(identity, None)
        old = self._records.get(identity)
        if old is not None and (old.cleared_at_s is None or _cleared_after(old, finding.over_at_s)):
            return self._renew(old, finding)
        if finding.over_at_s is not None:
            return self._passed(finding, finding.over_at_s, now_s)
        if not (finished or self._sure(finding)):
            return []
        renamed = [self._clear(other, now_s, renamed=True) for other in self._same_code(finding)]
        return [*renamed, self._keep("raised", Record(finding, now_s), renamed=bool(renamed))]

    def _passed(self, finding: Finding, over_at_s: float, now_s: float) -> list[Change]:
        """Over before it was ever seen going on: news only where nothing told of it by another cause."""
        standing = self._same_code(finding)
        if standing:
            return [self._clear(record, over_at_s) for record in standing]
        alike = [record for record in self._records.values() if record.finding.code == finding.code]
        if any(_cleared_after(record, over_at_s) for record in alike):
            return []
        raised = self._keep("raised", Record(finding, min(now_s, over_at_s)))
        return [raised, self._clear(raised.record, over_at_s)]

    def _same_code(self, finding: Finding) -> list[Record]:
        """Standing records of the same code under another cause: a detector has changed its mind."""
        return [
            r for r in self._records.values() if r.cleared_at_s is None and r.finding.code == finding.code
        ]

    def _renew(self, old: Record, finding: Finding) -> list[Change]:
        first = [step for step in (old.finding.first_step, finding.first_step) if step is not None]
        finding = replace(finding, first_step=min(first, default=None))
        if old.cleared_at_s is None and finding.over_at_s is not None:
            return [self._clear(replace(old, finding=finding), finding.over_at_s)]
        if finding == old.finding:
            return []
        return [self._keep("updated", replace(old, finding=finding))]

    def _sure(self, finding: Finding) -> bool:
        if finding.severity == "critical":
            return True
        first, last = finding.first_step, finding.last_step
        if first is not None and last is not None and last - first >= ENOUGH_STEPS:
            return True
        return self._seen[finding.identity] >= CONFIRM

    def _forget(
        self, met: Collection[tuple[str, str]], now_s: float, unchecked: Collection[str]
    ) -> list[Change]:
        gone = []
        for identity, record in self._records.items():
            if record.cleared_at_s is not None or identity in met or identity[0] in unchecked:
                continue
            self._missed[identity] = self._missed.get(identity, 0) + 1
            if self._missed[identity] >= FORGET:
                gone.append(record)
        return [self._clear(record, now_s) for record in gone]

    def _clear(self, record: Record, at_s: float, *, renamed: bool = False) -> Change:
        """What is over is no emergency any more."""
        self._missed.pop(record.finding.identity, None)
        finding = record.finding
        if finding.severity == "critical":
            finding = replace(finding, severity="warning")
        over = replace(record, finding=finding, cleared_at_s=max(at_s, record.raised_at_s))
        return self._keep("cleared", over, renamed=renamed)

    def _keep(
        self, kind: Literal["raised", "updated", "cleared"], record: Record, *, renamed: bool = False
    ) -> Change:
        self._records[record.finding.identity] = record
        return Change(kind, record, renamed)


def _cleared_after(record: Record, over_at_s: float | None) -> bool:
    """Whether a record that is cleared tells of what was over by then."""
    return over_at_s is not None and record.cleared_at_s is not None and over_at_s <= record.cleared_at_s
