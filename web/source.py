"""What the doors show: runs of one folder, live ones through the pipeline, all through their stores.

The only place where a run's name from outside meets the file system, and it is never made into a
path: it is looked for among the names that the folder has.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from monitor import report, runs
from monitor.batch import Batch
from monitor.runs import NoSuchRunError, trash
from monitor.store import FILE_NAME, Store


class Pipeline(Protocol):
    """What the doors need of `monitor.pipeline.Pipeline`."""

    publish: Callable[[str, dict[str, Any]], None] | None

    def take(self, batch: Batch) -> None:
        """Store, diagnose, alert, publish."""

    def last_seq(self, run: str, host: str) -> int:
        """Number of the last batch that is in the store, of this run and host; 0 before the first."""

    def snapshot(self, run: str) -> dict[str, Any] | None:
        """A run's present state; None when there is no such run."""

    def forget(self, run: str) -> None:
        """Close a run's store, and keep nothing of it in memory."""

    def ranks(self, run: str, **asked: Any) -> dict[str, Any] | None:
        """A run's ranks beside each other; None when there is no such run."""

    def band(self, run: str, **asked: Any) -> dict[str, Any] | None:
        """A metric's band over a run's ranks; None when there is no such run."""


class Source:
    """Reads for pages and scripts.

    Args:
        pipeline: knows the runs that are live.
        run_dir: the folder that keeps all of them.
    """

    def __init__(self, pipeline: Pipeline, run_dir: Path) -> None:
        self._pipeline, self._run_dir = pipeline, run_dir

    @property
    def run_dir(self) -> Path:
        """The folder that keeps the runs."""
        return self._run_dir

    def folder(self, run: str) -> Path:
        """The folder of `run`. Raises NoSuchRunError."""
        try:
            with os.scandir(self._run_dir) as entries:
                for entry in entries:
                    if entry.name == run and os.path.isfile(os.path.join(entry.path, FILE_NAME)):
                        return Path(entry.path)
        except FileNotFoundError:
            pass
        raise NoSuchRunError(f"no run is called {run[:128]!r}; see api/runs")

    def has(self, run: str) -> bool:
        """Whether the folder keeps a run of that name."""
        try:
            self.folder(run)
        except NoSuchRunError:
            return False
        return True

    def runs(self) -> list[dict[str, Any]]:
        """The list of runs, newest first."""
        return runs.summaries(self._run_dir)

    def live(self) -> list[dict[str, Any]]:
        """Runs that go on, newest first."""
        return runs.live(self._run_dir)

    def trash(self) -> list[dict[str, Any]]:
        """Deleted runs that can be brought back. Those whose time is over are removed."""
        trash.empty(self._run_dir)
        return trash.deleted(self._run_dir)

    def forget(self, run: str) -> None:
        """Close a run that is over, so that its folder can be moved."""
        self._pipeline.forget(run)

    def snapshot(self, run: str) -> dict[str, Any] | None:
        """A run's present state, as an update; None when there is no such run."""
        try:
            return self._pipeline.snapshot(self.folder(run).name)
        except NoSuchRunError:
            return None

    def ranks(self, run: str, **asked: Any) -> dict[str, Any] | None:
        """A run's ranks beside each other; None when there is no such run. Raises StoreError."""
        return self._pipeline.ranks(run, **asked) if self.has(run) else None

    def band(self, run: str, **asked: Any) -> dict[str, Any] | None:
        """A metric's band over a run's ranks; None when there is no such run. Raises StoreError."""
        return self._pipeline.band(run, **asked) if self.has(run) else None

    def report(self, run: str) -> dict[str, Any]:
        """A run's report. Raises NoSuchRunError, StoreError."""
        return report.build(self.folder(run))

    @contextmanager
    def store(self, run: str) -> Iterator[Store]:
        """A run's store, opened for reading. Raises NoSuchRunError, StoreError."""
        with closing(Store(self.folder(run) / FILE_NAME)) as store:
            yield store
