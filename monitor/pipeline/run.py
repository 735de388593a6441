"""One run as the pipeline holds it: its store, its state in memory, the course of its findings."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from monitor.batch import Batch
from monitor.diagnosis.core import doctor
from monitor.diagnosis.core.lifecycle import Change, FindingLifecycle, Record
from monitor.diagnosis.core.verdict import verdict
from monitor.events import ALL, Admitted
from monitor.pipeline import findings, view
from monitor.pipeline.plan import planned_steps
from monitor.pipeline.ranks import Ranks
from monitor.report import LIVE, OVER, outcome
from monitor.report.contract import finding_form, record_of
from monitor.run_state import PASSING, RunState
from monitor.run_state.restore import restore
from monitor.store import FILE_NAME, DiskFullError, Store, StoreError
from monitor.strict_json import plain

_log = logging.getLogger("monitor.pipeline")

#: Seconds between two diagnoses at least, and seconds of rest for each second that one took (so that
#: diagnosis takes 2 % of a core at most), but never more than LATEST_S.
EVERY_S, REST, LATEST_S = 1.0, 50.0, 15.0
#: Batches kept in memory while the store takes none, at most (one is about half a second).
WAITING = 240
#: Where more hosts than FEW feed a run, it is published every so many seconds at most.
FEW, PUBLISH_S = 8, 0.25
#: A run whose agent said nothing for so long has lost it (an agent sends twice a second).
AGENT_LOST_S = 10.0


class LiveRun:
    """One run. Hold `lock` while calling anything here.

    Args:
        name: the run's id.
        folder: where its store lies; made when the first batch comes.
        clock: seconds, rising.
        wall: seconds since 1970.

    Attributes:
        state: what is known of it.
        addresses: where its alerts go.
        touched_s, told_s: `clock` at its last batch, and at its last update.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        *,
        write: bool = True,
    ) -> None:
        self.name, self._folder, self._clock, self._wall = name, folder, clock, wall
        self.lock = threading.RLock()
        self.state = RunState(name)
        self.addresses: list[str] = []
        self.touched_s = clock()
        self._lifecycle = FindingLifecycle()
        self._unchecked: list[dict[str, str]] = []
        self._store: Store | None = None
        self._waiting: deque[Batch] = deque()
        self._trouble: str | None = None
        self._seen: dict[str, int] = {}
        self._queued: dict[str, int] = {}
        self._saved_meta: dict[str, Any] = {}
        self._due_s = 0.0
        self._over = False
        self._published_silence = self._published_over = False
        self.published_s = clock()
        self._seq = 0
        self._sent_rows: dict[str, int] = {}
        self._unsaved: dict[Any, dict[str, Any]] = {}
        self._lost: tuple[str, dict[str, Any] | None] | None = None
        self.data_unix_s = 0.0
        if write:
            self._open()

    @classmethod
    def reopened(cls, name: str, folder: Path) -> LiveRun:
        """A run that nobody feeds here, for one look at it. Raises StoreError."""
        run = cls(name, folder, write=False)
        with Store(folder / FILE_NAME) as store:
            run._load(store)
            status, end = outcome(store, store.meta())
        if status in OVER and not run.state.finished:
            run._lost = status, end
        return run

    @property
    def title(self) -> str:
        """What the run is called."""
        return str(self.state.about["name"])

    @property
    def standing(self) -> list[Record]:
        """Findings that were raised and not cleared."""
        return [record for record in self._lifecycle.records if record.cleared_at_s is None]

    def store(self, batch: Batch, admitted: Admitted = ALL) -> bool:
        """Take a batch, its events as `admitted`, into memory and the store. False where it came before."""
        fresh = batch.seq > self._seen.get(batch.host, 0)
        batch = self.state.clocks.align(self._without_secrets(batch), self.state.about["started_unix_s"])
        kept = tuple(event for event in batch.events if event["kind"] not in PASSING)
        blocks = batch.blocks
        if fresh:
            self._seen[batch.host] = batch.seq
            self.touched_s, self.data_unix_s, self._published_silence = self._clock(), self._wall(), False
            self.state.tally(admitted)
            row = self.state.take(batch)
            blocks = blocks if row is None else (*blocks, row)
        self._enqueue(dataclasses.replace(batch, blocks=blocks, events=kept))
        self._write()
        return fresh

    def diagnose(self, *, at_once: bool = False) -> list[Change]:
        """Let the doctor look, where it is time or asked for, and always at the run's end. Never raises."""
        ended = self.state.finished and not self._over
        self._over = self.state.finished
        began, changes = self._clock(), list[Change]()
        if began < self._due_s and not (ended or at_once):
            return changes
        try:
            changes = self._examined()
        except Exception:  # noqa: BLE001 - logged, and the run goes on
            _log.exception("%s: the examination failed", self.name)
        self._save(changes)
        self._due_s = began + min(max(EVERY_S, REST * (self._clock() - began)), LATEST_S)
        return changes

    def publish_due(self) -> bool:
        """Whether an update is due: after every batch, but for runs of many hosts less often."""
        if self._published_over != self._over or len(self.state.agents) <= FEW:
            return True
        return self._clock() - self.published_s >= PUBLISH_S

    def update(self) -> dict[str, Any]:
        """The run's state, with the rows since the last update; see docs/architecture.md."""
        self._seq += 1
        self.published_s, self._published_over = self._clock(), self._over
        return self._described(view.fresh_rows(self.state, self._sent_rows))

    def snapshot(self) -> dict[str, Any]:
        """The run's state, with the newest rows, for somebody who just came."""
        return self._described(view.newest_rows(self.state))

    def ranks(self) -> Ranks:
        """The run's ranks as they are now; good while the lock is held."""
        return Ranks.of(self.state, self._lifecycle.standing)

    def last_seq(self, host: str) -> int:
        """Number of the last batch of this host in the store. Raises StoreError."""
        if self._store is None:
            self._open()
        if self._store is None:
            raise StoreError(f"{self._folder}: {self._trouble}")
        return self._store.last_seq(host)

    def fell_silent(self) -> bool:
        """Whether the agent has been lost since this was last asked."""
        lost = self._agent_lost() and not self._published_silence
        self._published_silence |= lost
        return lost

    def idle(self, silent_s: float) -> bool:
        """Whether the run has ended, or has been silent for so long."""
        return not self._waiting and (self._over or self._clock() - self.touched_s > silent_s)

    def close(self) -> None:
        """Close the store, after a last try to write what waits."""
        self._write()
        if self._unsaved:
            self._save([])
        if self._store is not None:
            self._store.close()

    # -- store

    def _open(self) -> None:
        try:
            store = Store(self._folder / FILE_NAME, create=True)
        except StoreError as error:
            self._fail(error)
            return
        try:
            if not self._seen:
                self._load(store)
        except StoreError as error:
            self._fail(error)
            store.close()
            return
        self._store = store

    def _load(self, store: Store) -> None:
        hosts = store.hosts()
        self._seen = {host: int(known["seq"]) for host, known in hosts.items()}
        self._queued = dict(self._seen)
        self._seq = sum(self._seen.values())
        self.data_unix_s = max((known["received_unix_s"] for known in hosts.values()), default=0.0)
        meta = store.meta()
        self._unchecked = meta.get("not_checked") or []
        self.addresses = list(store.private("alerts") or ())
        if hosts:
            self.state = restore(self.name, store)
        records = []
        for form in store.findings():
            with contextlib.suppress(KeyError, TypeError):
                records.append(record_of(form))
        self._lifecycle = FindingLifecycle(records)
        self.state.stalled = any(finding.code == "stall" for finding in self._lifecycle.standing)
        self._over = self.state.finished
        self._sent_rows = view.row_counts(self.state)

    def _enqueue(self, batch: Batch) -> None:
        """One that finds no room here either is left to its agent, which sends it again."""
        if batch.seq <= self._queued.get(batch.host, 0):
            return
        if len(self._waiting) >= WAITING:
            self.state.add_notice("records_dropped")
            return
        self._queued[batch.host] = batch.seq
        self._waiting.append(batch)

    def _write(self) -> None:
        """Store what waits, in order, as far as there is room."""
        if self._store is None and self._waiting:
            self._open()
        if self._store is None:
            return
        try:
            while self._waiting:
                self._store.append(self._waiting[0], meta=self._changed_meta())
                self._waiting.popleft()
            self._trouble = None
        except StoreError as error:
            self._saved_meta = {}
            self._fail(error)

    def _fail(self, error: StoreError) -> None:
        code = "store_full" if isinstance(error, DiskFullError) else f"nothing is stored: {error}"
        if code != self._trouble:
            _log.error("%s", error)
        self._trouble = code

    def _changed_meta(self) -> dict[str, Any]:
        meta = self.state.meta()
        changed = {key: value for key, value in meta.items() if self._saved_meta.get(key, ...) != value}
        self._saved_meta = meta
        return changed

    def _without_secrets(self, batch: Batch) -> Batch:
        """Alert addresses hold passwords: they are kept apart from what viewers may read."""
        events = []
        for event in batch.events:
            if event["kind"] == "run" and "alerts" in event:
                self.addresses = list(event["alerts"] or ())
                event = {key: value for key, value in event.items() if key != "alerts"}
                if self._store is not None:
                    with contextlib.suppress(StoreError):
                        self._store.set_private(alerts=self.addresses)
            events.append(event)
        return dataclasses.replace(batch, events=tuple(events))

    # -- diagnosis

    def _examined(self) -> list[Change]:
        found = doctor.examine(self.state.window())
        self._unchecked = found.not_checked
        changes = self._lifecycle.update(
            found.findings,
            self.state.now_s,
            unchecked={entry["code"] for entry in found.not_checked},
            finished=self.state.finished,
        )
        self.state.stalled = any(finding.code == "stall" for finding in self._lifecycle.standing)
        return changes

    def _save(self, changes: list[Change]) -> None:
        """Findings and status in one transaction: a report of a run that is over has all its findings."""
        for change in changes:
            form = finding_form(change.record)
            self._unsaved[form["code"], form["cause"], form["raised_at_s"]] = form
        status, end = self.state.outcome
        meta = {"status": status, "exit": end, "steps": self.state.steps, "not_checked": self._unchecked}
        if self._store is None:
            return
        try:
            self._store.save_findings(self._unsaved.values(), **meta, verdict=self._verdict(status, end))
            self._unsaved.clear()
        except StoreError as error:
            self._fail(error)

    def _verdict(self, status: str, end: dict[str, Any] | None) -> dict[str, Any]:
        cleared = [record.finding for record in self._lifecycle.records if record.cleared_at_s is not None]
        current = verdict(
            status, self._lifecycle.standing, steps=self.state.steps, exit=end, cleared=cleared,
            inference=view.inference(self.state), uncounted=view.uncounted(self.state),
        )  # fmt: skip
        return dict(plain(current))

    # -- what viewers see

    def _described(self, rows: dict[str, Any]) -> dict[str, Any]:
        status, end = self._lost or self.state.outcome
        about, planned = self.state.about, planned_steps(self.state)
        current = self._verdict(status, end)
        return {
            "run": self.name,
            "seq": self._seq,
            "status": status,
            "exit": plain(end),
            "name": self.title,
            "now_s": self.state.now_s,
            "started_unix_s": plain(about["started_unix_s"]),
            "data_unix_s": self.data_unix_s,
            "steps": self.state.steps,
            "world_size": about["world_size"],
            "epoch": view.epoch(self.state),
            "plan_steps": planned,
            "verdict": current,
            **findings.time_left(self.state, current, self._lifecycle.standing, planned, live=status in LIVE),
            "findings": findings.drawn(self._lifecycle.records),
            "not_checked": self._unchecked,
            "tiles": view.tiles(self.state),
            "rows": rows,
            "ranks": view.ranks(self.state),
            "notices": self._notices(),
        }

    def _notices(self) -> list[str]:
        lost = ["agent_lost"] if self._agent_lost() else []
        return [*([self._trouble] if self._trouble else []), *lost, *self.state.notices]

    def _agent_lost(self) -> bool:
        over = self.state.finished or self._lost is not None
        return not over and 0 < self.data_unix_s < self._wall() - AGENT_LOST_S
