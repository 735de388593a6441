"""Follow: a run's store, live or over, as rows and findings for a target elsewhere."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from monitor import report
from monitor.store import Store

#: Seconds between two looks at a live run: rows of the run come about once a second.
POLL_S = 1.0
#: Rows of a stream that are read at a time.
ROWS = 2_000
#: Steps whose times are read at a time, and how finely they are remembered, in seconds.
STEPS, STEP_S = 50_000, 0.25
#: Kinds of streams that are sent: all but single steps, of which there are too many for any such tool.
KINDS = ("run", "proc", "gpu", "host", "user")


class Target(Protocol):
    """Where it goes."""

    def row(self, step: int, unix_s: float, values: Mapping[str, float]) -> None:
        """Numbers at a step; only those that were measured."""

    def finding(self, finding: Mapping[str, Any], step: int, unix_s: float) -> None:
        """A finding (the contract's form) was raised, or has ended where `cleared_at_s` is set."""

    def close(self, found: Mapping[str, Any]) -> None:
        """The run is over or nobody follows any more; `found` is its report."""


def follow(store: Store, target: Target, wait: Callable[[float], bool]) -> None:
    """Send all there is, then what comes, until the run is over.

    Args:
        store: the run's, open for reading.
        target: takes it; closed at the end, whatever happens.
        wait: called with seconds between two looks; True ends it.
    """
    tail = _Tail(store)
    try:
        while True:
            over = report.outcome(store, store.meta())[0] in report.OVER
            tail.send(target)
            if over or wait(POLL_S):
                return
    finally:
        target.close(report.build(store))


class _Tail:
    """What of a run has been sent."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sent: dict[str, int] = {}
        self._sent_findings: dict[tuple[Any, ...], Any] = {}
        self._steps = _Steps(store)
        self._began = float(store.meta().get("started_unix_s") or 0.0)

    def send(self, target: Target) -> None:
        """What is new since the last time."""
        self._steps.refresh()
        for name in self._store.streams():
            if name.split("/")[0] in KINDS:
                for t_s, values in self._rows(name):
                    target.row(self._steps.at(t_s), self._began + t_s, values)
        for finding in self._store.findings():
            key = (finding["code"], finding["cause"], finding["raised_at_s"])
            cleared = finding.get("cleared_at_s")
            if key not in self._sent_findings or self._sent_findings[key] != cleared:
                self._sent_findings[key] = cleared
                at = finding["raised_at_s"] if cleared is None else cleared
                target.finding(finding, self._steps.at(at), self._began + at)

    def _rows(self, stream: str) -> Iterator[tuple[float, dict[str, float]]]:
        """New rows, oldest first: their time and what was measured."""
        span, keys = self._store.span(stream), self._store.keys(stream)
        if span is None:
            return
        for first in range(max(self._sent.get(stream, 0), span["first_row"]), span["last_row"] + 1, ROWS):
            block = self._store.rows(stream, keys, first, min(first + ROWS - 1, span["last_row"]))
            for i, t_s in enumerate(block["t_s"]):
                values = {_named(stream, key): float(block[key][i]) for key in keys}
                known = {name: value for name, value in values.items() if math.isfinite(value)}
                if known:
                    yield float(t_s), known
        self._sent[stream] = span["last_row"] + 1


class _Steps:
    """The first rank's newest step at any time, known to a quarter of a second."""

    def __init__(self, store: Store) -> None:
        self._store, self._next = store, 0
        self._times: list[float] = []
        self._steps: list[int] = []

    def refresh(self) -> None:
        """Take in the steps since the last look."""
        span = self._store.span("rank/0")
        if span is None:
            return
        for first in range(max(self._next, span["first_row"]), span["last_row"] + 1, STEPS):
            block = self._store.rows("rank/0", [], first, min(first + STEPS - 1, span["last_row"]))
            _, kept = np.unique((block["t_s"] / STEP_S).astype(np.int64), return_index=True)
            self._times += block["t_s"][kept].tolist()
            self._steps += block["row"][kept].tolist()
        self._next = span["last_row"] + 1

    def at(self, t_s: float) -> int:
        """0 before the first."""
        index = bisect.bisect_right(self._times, t_s)
        return self._steps[index - 1] if index else 0


def _named(stream: str, key: str) -> str:
    """`run` and numbers of the user's own go by their name, all else by what it was measured at."""
    kind, _, source = stream.partition("/")
    if kind in ("run", "user") and source in ("", "0"):
        return key
    return f"{stream}/{key}"
