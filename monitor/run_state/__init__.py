"""What is known of one run right now, in bounded memory. No clock and no file of its own."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from monitor.batch import Batch, Block
from monitor.diagnosis.core.window import Window
from monitor.diagnosis.signals.clock_offsets import offsets
from monitor.events import KINDS, Admitted
from monitor.panels import with_panels
from monitor.run_state import briefs
from monitor.run_state.clock_alignment import ClockAlignment, shifted
from monitor.run_state.columns import Columns
from monitor.run_state.ending import ending
from monitor.run_state.event_handlers import handle
from monitor.run_state.rank import LEAST_ROWS, LEAST_SAMPLES, RankState, samples
from monitor.run_state.rank_timeline import RankTimeline
from monitor.run_state.run_aggregate import RunAggregator
from monitor.schema import Metric, describe

__all__ = ["RankState", "RunState"]

#: Steps kept in memory: of one rank at most, and of all ranks of a run together (about 110 bytes each).
RANK_ROWS, ALL_ROWS = 131_072, 262_144
#: Samples kept of one process, host or GPU at most, and of all together.
SAMPLE_ROWS, ALL_SAMPLES = 4_096, 65_536
#: Briefs kept of one host at most, and of all together (about 150 bytes each).
BRIEF_ROWS, ALL_BRIEFS = 8_192, 262_144
#: Rows of the stream `run` that are kept (one is about a second).
OWN_ROWS = 600
#: Events kept of a run.
EVENTS = 4_096
#: Notices kept of a run, each a code or a line.
NOTICES = 20
#: Kinds of events counted each by itself, at most; the others together.
COUNTED = 64
#: Streams beyond this many are stored, but not kept in memory.
STREAMS = 10_000

#: Events that only matter now; they are not stored.
PASSING = frozenset({"live"})

_SCHEMA = with_panels(describe())
#: Rates of the run -> what briefs tell of them.
_BRIEFED = {"samples_per_s": "all_samples", "tokens_per_s": "all_tokens"}


class RunState:
    """A run as far as it is kept in memory. Feed it batches; ask for the window, the status, the meta.

    Attributes:
        ranks, hosts, gpus: by rank number, host name, and "host/index".
        users: the user's own numbers, by rank number as text.
        own: the run's own stream, about a row a second.
        timeline: all ranks' time by phase, over the whole run.
        briefs: by host name, its ranks in averages; only in runs of many ranks.
        clocks: puts batches of all hosts on the run's time, before they are taken.
        about: name, world size, start and the like.
        agents: host -> {"pid", "version"} of its agent.
        now_s: newest time known, seconds since the run began.
        unknown, refused: events by kind that nobody knows (they are kept), and that were not let in.
        notices: codes or lines for a person, in the order they came up.
        stalled: whether a stall lasts; whoever diagnoses says so.
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self.about: dict[str, Any] = {"name": run, "world_size": 1, "started_unix_s": None}
        self.ranks: dict[int, RankState] = {}
        self.hosts: dict[str, Columns] = {}
        self.gpus: dict[str, Columns] = {}
        self.users: dict[str, Columns] = {}
        self.host_facts: dict[str, dict[str, Any]] = {}
        self.events: deque[Mapping[str, Any]] = deque(maxlen=EVENTS)
        self.now_s = 0.0
        self.own = Columns(OWN_ROWS)
        self.loss_is_nan = False
        self.notices: list[str] = []
        self.stalled = False
        self.unknown: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.agents: dict[str, dict[str, Any]] = {}
        self.done_hosts: set[str] = set()
        self.aggregator = RunAggregator()
        self.timeline = RankTimeline()
        self.briefs: dict[str, Columns] = {}
        self.clocks = ClockAlignment()
        self._more = dict.fromkeys(_BRIEFED, 0.0)

    def take(self, batch: Batch) -> Block | None:
        """Add a batch; returns the run's own row when it is time for one, to be stored with it."""
        was_over = self.finished
        self.agents.setdefault(batch.host, {})
        for event in batch.events:
            self.note(event, batch.host)
        for block in batch.blocks:
            self.add(block)
        self.now_s = max(self.now_s, batch.sent_s)
        over = self.finished
        return self._next_row(over, last=over and not was_over)

    def _next_row(self, over: bool, *, last: bool) -> Block | None:
        if not self.aggregator.due(self.now_s, last=last):
            return None
        alive = {
            n: rank.steps
            for n, rank in self.ranks.items()
            if (rank.ended is None or over) and not rank.reduced
        }
        row = self.aggregator.next_row(self.now_s, alive, last=last, more=self._more)
        if row is not None:
            self._more = dict.fromkeys(_BRIEFED, 0.0)
            self.own.append(row.first, row.t_s, row.columns)
        return row

    def add(self, block: Block) -> None:
        """Add rows of one stream."""
        kind, _, name = block.stream.partition("/")
        columns = self._columns(kind, name)
        if columns is None:
            return
        columns.append(block.first, block.t_s, block.columns)
        self.now_s = max(self.now_s, block.t_s[-1])
        if kind == "rank":
            self.timeline.add(int(name), block.t_s, block.columns)
            rank = self.ranks[int(name)]
            rank.reduced = False
            rank.step = max(rank.step, block.first + len(block) - 1)
        elif kind == "brief":
            self._on_briefs(name, block)

    def _on_briefs(self, host: str, block: Block) -> None:
        """Ranks in averages. What their own rows tell better is taken from those."""
        table = briefs.unfolded(block.t_s, block.columns)
        if not table:
            return
        for number, end in zip(table["rank"].tolist(), table["end"].tolist(), strict=True):
            if number < STREAMS:
                rank = self.rank(number)
                rank.reduced = not len(rank.steps)
                rank.step = max(rank.step, end - 1)
                rank.process.setdefault("host", host)
        for number, phase, since_s in briefs.phases(table, block.t_s):
            if number < STREAMS:
                self.ranks[number].phase = (phase, since_s)
        alone = np.array([n < STREAMS and self.ranks[n].reduced for n in table["rank"].tolist()], bool)
        table = {key: values[alone] for key, values in table.items()}
        self.timeline.add_mixed(table["rank"], table["end_s"], table)
        for key, column in _BRIEFED.items():
            self._more[key] += float(np.nansum(table[column])) if column in table else 0.0

    def note(self, event: Mapping[str, Any], host: str) -> None:
        """Take in one event."""
        kind = event["kind"]
        handle(self, event, host)
        if kind in KINDS and kind != "fact" and kind not in PASSING:
            self.events.append(event)

    def tally(self, admitted: Admitted) -> None:
        """Count the events of a batch that nobody knows, and those that were refused, which is said once."""
        for kind in admitted.unknown:
            _count(self.unknown, kind)
        for kind, why in admitted.refused:
            if not self.refused:
                self.add_notice(f"an event of kind {kind or '?'} is refused: {why}")
            _count(self.refused, kind)

    @property
    def steps(self) -> int:
        """Steps taken, by the rank that took most."""
        return max((rank.step for rank in self.ranks.values()), default=-1) + 1

    @property
    def finished(self) -> bool:
        """Whether every rank has ended: as many as the run says it has, or all known ones of all hosts."""
        if any(rank.ended is None for rank in self.ranks.values()):
            return False
        all_ranks = len(self.ranks) >= self.about["world_size"] > 0
        return (all_ranks and bool(self.ranks)) or (bool(self.agents) and self.done_hosts >= set(self.agents))

    @property
    def outcome(self) -> tuple[str, dict[str, Any] | None]:
        """The status of the contract, and its `exit` (None while the run goes on)."""
        if not self.finished:
            return ("stalled" if self.stalled else "running"), None
        ahead = self._ahead()
        return ending(
            {**shifted(rank.ended, -ahead.get(str(rank.process.get("host")), 0.0)), "exception": rank.failed}
            for rank in self.ranks.values()
            if rank.ended is not None
        )

    def _ahead(self) -> dict[str, float]:
        """Host -> what its times are ahead of the first host's, where its ranks met others in collectives."""
        hosts = {number: str(rank.process.get("host")) for number, rank in self.ranks.items()}
        if len(set(hosts.values())) < 2:
            return {}
        return {host: offset.ahead_s for host, offset in offsets(self.window(), hosts).items()}

    def window(self) -> Window:
        """What detectors see. Its arrays are views that stand until the next `take`."""
        return Window(
            self.now_s,
            {number: rank.window(number) for number, rank in sorted(self.ranks.items())},
            int(self.about["world_size"]),
            {name: samples(columns) for name, columns in self.hosts.items()},
            self.host_facts,
            {name: samples(columns) for name, columns in self.gpus.items()},
            list(self.events),
            self.finished,
            {name: briefs.kept(columns) for name, columns in self.briefs.items() if len(columns)},
        )

    def meta(self) -> dict[str, Any]:
        """What the store is to remember beside rows, events, facts and the outcome."""
        return {
            "run": self.run,
            **self.about,
            "schema": self._schema(),
            "hosts": sorted(self.agents),
            # Copies: what was written is compared with what is to be written.
            "agents": dict(self.agents),
            "shifts": dict(self.clocks.shifts),
            "events_unknown": dict(self.unknown),
            "events_refused": dict(self.refused),
            "host_facts": {host: dict(facts) for host, facts in self.host_facts.items()},
            "processes": {str(number): rank.process for number, rank in self.ranks.items()},
        }

    def _schema(self) -> dict[str, Any]:
        """The table of metrics, with the user's own numbers as far as they are known."""
        keys = dict.fromkeys(key for columns in self.users.values() for key in columns.keys)
        own = [asdict(Metric(key, "", key, "user")) for key in keys]
        return {**_SCHEMA, "metrics": [*_SCHEMA["metrics"], *own]} if own else _SCHEMA

    def add_notice(self, notice: str) -> None:
        """Add a notice, once."""
        if notice not in self.notices and len(self.notices) < NOTICES:
            self.notices.append(notice)

    def rank(self, number: int) -> RankState:
        """A rank, known from now on. All ranks share what memory there is."""
        found = self.ranks.get(number)
        if found is None:
            found = self.ranks[number] = RankState()
            self._share()
        return found

    def _columns(self, kind: str, name: str) -> Columns | None:
        if kind in ("rank", "proc", "cuda"):
            if not name.isdigit() or (len(self.ranks) >= STREAMS and int(name) not in self.ranks):
                return None
            rank = self.rank(int(name))
            return {"rank": rank.steps, "proc": rank.samples, "cuda": rank.cuda}[kind]
        known = {"host": self.hosts, "gpu": self.gpus, "user": self.users, "brief": self.briefs}
        tables = known.get(kind)
        if tables is None or (name not in tables and len(tables) >= STREAMS):
            return None
        if name not in tables:
            tables[name] = Columns(LEAST_SAMPLES)
            self._share()
        return tables[name]

    def _share(self) -> None:
        rows = min(max(ALL_ROWS // max(len(self.ranks), 1), LEAST_ROWS), RANK_ROWS)
        samplers = [table for rank in self.ranks.values() for table in (rank.samples, rank.cuda)]
        tables = [*self.hosts.values(), *self.gpus.values(), *self.users.values(), *samplers]
        samples = min(max(ALL_SAMPLES // max(len(tables), 1), LEAST_SAMPLES), SAMPLE_ROWS)
        briefs_each = min(ALL_BRIEFS // max(len(self.briefs), 1), BRIEF_ROWS)
        for table in self.briefs.values():
            table.limit(briefs_each)
        for rank in self.ranks.values():
            rank.steps.limit(rows)
        for table in tables:
            table.limit(samples)


def _count(kinds: Counter[str], kind: str) -> None:
    kinds[kind if kind in kinds or len(kinds) < COUNTED else "…"] += 1
