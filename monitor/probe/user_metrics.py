"""Numbers of the user's own, on their way to the journal: thinned, so that a loop may log every step."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

#: A number is written at most so often; in between its values are averaged.
EVERY_NS = 250_000_000
#: Numbers of different names that a run takes.
NAMES = 128


class UserMetrics:
    """Averages what comes too fast, and hands on the rest.

    Args:
        write: takes {name: value}.
        now: nanoseconds; handed in, so that tests of time never sleep.
    """

    def __init__(
        self, write: Callable[[dict[str, float]], None], now: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        self._write = write
        self._now = now
        self._written_ns: dict[str, int] = {}
        self._waiting: dict[str, tuple[float, int]] = {}

    def log(self, values: Mapping[str, float]) -> None:
        """Take one value each. Those whose time has come are written, as means since the last writing."""
        due = {}
        now_ns = self._now()
        for name, value in values.items():
            last_ns = self._written_ns.get(name)
            if last_ns is None and len(self._written_ns) >= NAMES:
                continue
            total, count = self._waiting.pop(name, (0.0, 0))
            total, count = total + float(value), count + 1
            if last_ns is not None and now_ns - last_ns < EVERY_NS:
                self._waiting[name] = total, count
            else:
                self._written_ns[name] = now_ns
                due[name] = total / count
        if due:
            self._write(due)

    def flush(self) -> None:
        """Write what waits: the loop is over."""
        if self._waiting:
            due = {name: total / count for name, (total, count) in self._waiting.items()}
            self._waiting.clear()
            self._write(due)
