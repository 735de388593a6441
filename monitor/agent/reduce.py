"""Reduces many ranks on their host, so that a hub's load grows with hosts and not with ranks.

In a large run the first rank of each host is told step by step; every rank, that one too, is told in
*briefs*, one row for a stretch of about a second, with means over its steps. The stretches of all ranks end
at the same steps, multiples of a power of two, so that ranks of different hosts can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from monitor.agent.follow import Followed
from monitor.batch import Block
from monitor.schema import BRIEF_STEP_BASE, BY_KEY, PHASES

#: Runs with more ranks are reduced; up to so many a hub carries them step by step (own).
MOST_RANKS = 16
#: A stretch lasts so long at least, in seconds, unless a single step lasts longer …
STRETCH_S = 0.8
#: … and its length in steps is kept while it lasts between these.
KEEP_S = (0.4, 3.2)
#: A rank that ends no stretch is told of so often all the same, in seconds.
STILL_S = 2.0
#: Longest stretch, in steps.
MOST_STEPS = 2**20

_MEANS = frozenset(metric.key for metric in BY_KEY.values() if metric.origin == "step")
#: What is added up over the samples of a second, rather than told as it was last.
_SUMS = frozenset(
    metric.key for metric in BY_KEY.values() if metric.origin == "cuda" and metric.buckets == "sum"
)

Row = dict[str, float]


@dataclass
class _Sum:
    """Steps that belong to one stretch so far: the sum and the number of what was measured, by key."""

    steps: int = 0
    sums: dict[str, float] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    longest_ms: float = math.nan
    least_comm_ms: float = math.nan
    end_s: float = math.nan

    def add(self, t_s: Sequence[float], columns: Mapping[str, Sequence[float]]) -> None:
        self.steps += len(t_s)
        self.end_s = t_s[-1]
        for key, values in columns.items():
            summed, count = math.fsum(values), len(values)
            if summed != summed:
                measured = [value for value in values if value == value]
                summed, count = math.fsum(measured), len(measured)
            if count and key in _MEANS:
                self.sums[key] = self.sums.get(key, 0.0) + summed
                self.known[key] = self.known.get(key, 0) + count
        self.longest_ms = _extreme(max, self.longest_ms, columns.get("step_ms", ()))
        self.least_comm_ms = _extreme(min, self.least_comm_ms, columns.get("comm_ms", ()))

    def row(self) -> Row:
        row = {key: summed / self.known[key] for key, summed in self.sums.items()}
        row |= {f"all_{key}": self.sums[key] for key in ("samples", "tokens") if key in self.sums}
        return {
            **row,
            "steps": self.steps,
            "longest_step_ms": self.longest_ms,
            "least_comm_ms": self.least_comm_ms,
        }


@dataclass
class _Rank:
    """One rank that is reduced.

    Attributes:
        full: whether its steps are told one by one as well.
        done: stretches that ended and were not told yet.
        sample: its process's newest sample.
        told_s: when it was last told of.
    """

    tape: Followed
    full: bool
    open: _Sum = field(default_factory=_Sum)
    next: int = 0
    done: list[tuple[int, _Sum]] = field(default_factory=list)
    sample: Row = field(default_factory=dict)
    sent_s: float = -math.inf


class Reducer:
    """Takes what is known of ranks, and gives rows of one stream for the whole host.

    Args:
        host: its name.
        most_ranks: runs with at most so many are left as they are.
    """

    def __init__(self, host: str, most_ranks: int = MOST_RANKS) -> None:
        self.stream = f"brief/{host}"
        self._most = most_ranks
        self._ranks: dict[int, _Rank] = {}
        self._length = 1

    @property
    def active(self) -> bool:
        """Whether any rank is reduced."""
        return bool(self._ranks)

    def watch(self, tapes: Iterable[Followed]) -> list[dict[str, Any]]:
        """New ranks. The `reduced` event, without time, where that changes who is told how; else nothing."""
        found = [tape for tape in tapes if tape.world_size > self._most]
        for tape in found:
            before = self._ranks.get(tape.rank)
            full = before.full if before else tape.local_rank == 0 and not self._full()
            self._ranks[tape.rank] = _Rank(tape, full, done=before.done if before else [])
        if not found:
            return []
        return [{"kind": "reduced", "ranks": sorted(self._ranks), "full": self._full()}]

    def block(self, tape: Followed, block: Block) -> bool:
        """Take a rank's steps. Whether they need not be told one by one."""
        rank = self._ranks.get(tape.rank)
        if rank is None:
            return False
        self._fit(block.columns.get("step_ms", ()))
        at, first = 0, block.first
        if first != rank.next:
            self._close(rank)
        while at < len(block):
            cut = min(len(block), at + self._length - (first + at) % self._length)
            part = {key: values[at:cut] for key, values in block.columns.items()}
            rank.open.add(block.t_s[at:cut], part)
            rank.next, at = first + cut, cut
            if not rank.next % self._length:
                self._close(rank)
        return not rank.full

    def sample(self, stream: str, values: Mapping[str, float]) -> bool:
        """Take a row of `proc/R` or `cuda/R`. Whether it needs no row of its own."""
        kind, _, number = stream.partition("/")
        rank = self._ranks.get(int(number)) if kind in ("proc", "cuda") and number.isdigit() else None
        if rank is None or rank.full:
            return False
        for key, value in values.items():
            rank.sample[key] = value + (rank.sample.get(key, 0.0) if key in _SUMS else 0.0)
        return True

    def end(self, tape: Followed) -> None:
        """The rank has ended: its last steps make a stretch, however short."""
        rank = self._ranks.get(tape.rank)
        if rank is not None and rank.tape is tape:
            self._close(rank)
            rank.sent_s = -math.inf

    def rows(self, now_s: float, now_ns: int) -> list[Row]:
        """Rows since the last call: of every stretch that ended, and of ranks that have been still.

        Args:
            now_s, now_ns: the time, since the run began and as perf_counter_ns.
        """
        rows = []
        for number, rank in sorted(self._ranks.items()):
            done, rank.done = rank.done, []
            still = not done and now_s - rank.sent_s >= STILL_S and not rank.tape.ended
            for end, interval in [*done, *([(rank.next, _Sum())] if still else [])]:
                rank.sent_s = now_s
                head = self._head(rank, end, now_ns)
                row = {**head, "rank": number, "ago_s": max(now_s - interval.end_s, 0.0), **interval.row()}
                rows.append(row)
        return rows

    def _head(self, rank: _Rank, end: int, now_ns: int) -> Row:
        """What a row tells of a rank beside its steps: its process, where it is, and up to which step."""
        sample, rank.sample = rank.sample, {k: v for k, v in rank.sample.items() if k not in _SUMS}
        high, low = divmod(end, BRIEF_STEP_BASE)
        row = {**sample, "end_high": high, "end_low": low}
        live = rank.tape.live
        if live is not None and live.phase is not None:
            row["phase"] = PHASES.index(live.phase)
            row["phase_for_s"] = max(now_ns - live.since_ns, 0) / 1e9
        return row

    def _close(self, rank: _Rank) -> None:
        if rank.open.steps:
            rank.done.append((rank.next, rank.open))
            rank.open = _Sum()

    def _fit(self, step_ms: Sequence[float]) -> None:
        """Choose the length of a stretch anew where it does not last about a second any more."""
        if not step_ms:
            return
        usual_s = max(sorted(step_ms)[len(step_ms) // 2] / 1e3, 1e-6)
        if usual_s != usual_s or KEEP_S[0] <= self._length * usual_s <= KEEP_S[1]:
            return
        wanted = 2 ** max(math.ceil(math.log2(STRETCH_S / usual_s)), 0)
        self._length = min(wanted, MOST_STEPS)

    def _full(self) -> list[int]:
        return sorted(number for number, rank in self._ranks.items() if rank.full)


def _extreme(choose: Any, before: float, values: Sequence[float]) -> float:
    known = [value for value in (before, *values) if value == value]
    return float(choose(known)) if known else math.nan
