"""Pipeline: where batches go. `take` is store → diagnose → alert → publish."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cachetools import TTLCache

from monitor.alerts import Alerts, Subject
from monitor.batch import Batch
from monitor.diagnosis.core.lifecycle import Change
from monitor.events import admit
from monitor.pipeline.ranks import Ranks
from monitor.pipeline.run import LiveRun
from monitor.store import FILE_NAME

#: Events that no diagnosis waits with, however busy the machine: somebody is to be told of them.
URGENT = frozenset({"stall", "stall_over", "rank_end"})

Publish = Callable[[str, dict[str, Any]], None]
Alert = Callable[[Subject, Sequence[str], Change], None]

#: Runs kept in memory. Beyond it, those that ended or fell silent first are closed; they come back from
#: their store when somebody asks.
RUNS = 8
#: A run that was silent for so long may be closed.
SILENT_S = 3600.0
#: Seconds for which an answer about ranks is given again, and for which a run that nobody feeds is kept in
#: memory after somebody looked at its ranks; how many there are at most of each.
ANSWER_TTL_S, REOPENED_TTL_S = 1.0, 30.0
MAX_ANSWERS, MAX_REOPENED = 64, 2


class Pipeline:
    """Takes the batches of all runs. Safe from any thread; two runs never wait for one another.

    Args:
        run_dir: the folder that keeps the runs.
        publish: told (run, update) after each batch; must return at once. May be set later.
        alert: told (subject, addresses, change) of findings raised and cleared; sends them through
            Apprise unless given.
        addresses: where the alerts of every run go, besides those that a run brings in its `run` event;
            asked whenever there is something to tell.
        link: address of a run's page, without a token.
        clock: seconds, rising; says when the next diagnosis is due.
    """

    def __init__(
        self,
        run_dir: Path,
        publish: Publish | None = None,
        alert: Alert | None = None,
        *,
        addresses: Callable[[], Sequence[str]] = tuple,
        link: Callable[[str], str | None] = lambda _run: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.publish = publish
        self._run_dir = Path(run_dir)
        self._alerts = Alerts(notice=self._notice)
        self._alert = alert or self._alerts.send_change
        self._addresses, self._link = addresses, link
        self._clock = clock
        self._runs: dict[str, LiveRun] = {}
        self._lock, self._cache_lock = threading.Lock(), threading.Lock()
        self._answers: TTLCache[Any, Any] = TTLCache(MAX_ANSWERS, ANSWER_TTL_S, clock)
        self._reopened: TTLCache[str, LiveRun] = TTLCache(MAX_REOPENED, REOPENED_TTL_S, clock)

    def take(self, batch: Batch) -> None:
        """Store, diagnose, alert, publish. Raises nothing that the caller could mend.

        A batch that comes again changes nothing. One that the store has no room for is kept and
        tried again with the next, while diagnosis goes on; see `last_seq`. Events that are not as
        `monitor.events` declares them are refused, and counted.
        """
        admitted = admit(batch.events)
        batch = dataclasses.replace(batch, events=admitted.events)
        with self._run(batch.run) as run:
            if not run.store(batch, admitted):
                return
            changes = run.diagnose(at_once=any(event["kind"] in URGENT for event in batch.events))
            for change in changes:
                self._alert(self._subject(run), [*self._addresses(), *run.addresses], change)
            if changes or run.publish_due():
                self._publish(run)

    def last_seq(self, run: str, host: str) -> int:
        """Number of the last batch of this run and host that is in the store; 0 before the first.

        Raises:
            StoreError: the store cannot be read.
        """
        with self._lock:
            live = self._runs.get(run)
        if live is None and not (self._run_dir / run / FILE_NAME).exists():
            return 0
        with self._run(run) as opened:
            return opened.last_seq(host)

    def snapshot(self, run: str) -> dict[str, Any] | None:
        """A run's present state, in an update's form with the newest rows; None where there is no such run.

        Raises:
            StoreError: the store cannot be read.
        """
        with self._lock:
            live = self._runs.get(run)
        if live is not None:
            with live.lock:
                return live.snapshot()
        if not (self._run_dir / run / FILE_NAME).exists():
            return None
        return LiveRun.reopened(run, self._run_dir / run).snapshot()

    def ranks(self, run: str, **asked: Any) -> dict[str, Any] | None:
        """A run's ranks beside each other, see `Ranks.table` for what may be asked; None without such a run.

        Raises:
            StoreError: the store cannot be read.
        """
        return self._answered(run, lambda ranks: ranks.table(**asked), "ranks", *_hashable(asked))

    def band(self, run: str, **asked: Any) -> dict[str, Any] | None:
        """A metric's band over a run's ranks, see `Ranks.band`; None where there is no such run.

        Raises:
            StoreError: the store cannot be read.
        """
        return self._answered(run, lambda ranks: ranks.band(**asked), "band", *_hashable(asked))

    def _answered(self, run: str, make: Callable[[Ranks], Any], *question: Any) -> dict[str, Any] | None:
        with self._lock:
            live = self._runs.get(run)
        if live is None and not (self._run_dir / run / FILE_NAME).exists():
            return None

        def compute() -> Any:
            seen = live or self._kept(self._reopened, run, lambda: LiveRun.reopened(run, self._run_dir / run))
            with seen.lock:
                return make(self._kept(self._answers, (run, seen), seen.ranks))

        return self._kept(self._answers, (run, live is None, *question), compute)  # type: ignore[no-any-return]

    def _kept(self, cache: TTLCache[Any, Any], key: Hashable, make: Callable[[], Any]) -> Any:
        """What was made a moment ago, or a new one; the cache itself is not safe from several threads."""
        with self._cache_lock:
            found = cache.get(key)
        if found is None:
            found = make()
            with self._cache_lock:
                cache[key] = found
        return found

    def forget(self, run: str) -> None:
        """Close a run's store, and keep nothing of it in memory. It comes back when somebody asks."""
        with self._lock:
            live = self._runs.pop(run, None)
        if live is not None:
            with live.lock:
                live.close()

    def tick(self) -> None:
        """Publish runs that went silent since their last batch, or were not published after it.

        Call it every few seconds.
        """
        with self._lock:
            runs = list(self._runs.values())
        for run in runs:
            with run.lock:
                if run.fell_silent() or run.touched_s > run.published_s:
                    self._publish(run)

    def close(self, within_s: float = 5.0) -> None:
        """Close every store, and send the alerts that wait, for so long at most."""
        with self._lock:
            runs, self._runs = list(self._runs.values()), {}
        for run in runs:
            with run.lock:
                run.close()
        self._alerts.close(within_s)

    def _subject(self, run: LiveRun) -> Subject:
        about = run.state.about
        return Subject(run.name, run.title, about.get("host"), about["started_unix_s"], self._link(run.name))

    def _publish(self, run: LiveRun) -> None:
        update = run.update()
        if self.publish is not None:
            self.publish(run.name, update)

    def _notice(self, run: str, code: str) -> None:
        """From the thread that sends alerts: shown with the next update."""
        with self._lock:
            live = self._runs.get(run)
        if live is not None:
            live.state.add_notice(code)

    @contextlib.contextmanager
    def _run(self, name: str) -> Iterator[LiveRun]:
        with self._lock:
            run = self._runs.get(name)
            if run is None:
                self._make_room()
                run = self._runs[name] = LiveRun(name, self._run_dir / name, self._clock)
                for record in run.standing:
                    self._alerts.know(name, record)
        with run.lock:
            yield run

    def _make_room(self) -> None:
        idle = [run for run in self._runs.values() if run.idle(SILENT_S)]
        for run in sorted(idle, key=lambda run: run.touched_s)[: max(len(self._runs) + 1 - RUNS, 0)]:
            del self._runs[run.name]
            run.close()


def _hashable(asked: dict[str, Any]) -> list[Any]:
    return [tuple(value) if isinstance(value, list) else value for value in asked.values()]
