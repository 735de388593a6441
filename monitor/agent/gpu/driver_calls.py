"""Calling a driver with care: it may fail or take its time at any call, and must end nothing.

An answer that does not come is no value, and said once. A call that takes long gets a rhythm of its own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

#: Share of a core that one call may take; one that takes 20 ms comes every 7 s (own: as for PSS).
COST = 0.003
#: A call quicker than this is never held back, in seconds: once a second it takes no more than its share.
SLOW_S = 0.003
#: Seconds between two calls of one kind at most, however long they take.
PAUSE_S = 30.0
#: Seconds between two calls for what hardly changes (own): eight devices cost a host eight times as much.
RARE_S = 10.0
#: Events kept until somebody asks for them.
EVENTS = 256

#: What drivers raise for a device that is gone.
GONE = ("GpuIsLost", "GpuNotFound", "ResetRequired")

T = TypeVar("T")
Limits = Mapping[str, tuple[float, float]]


class DriverCalls:
    """Asks, and remembers what failed and what is slow.

    Args:
        now: seconds; handed in, so that tests of time never sleep.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._noted: set[tuple[object, str]] = set()
        self._events: list[dict[str, Any]] = []
        self._last: dict[tuple[object, str], Any] = {}
        self._took_s: dict[tuple[object, str], float] = {}
        self._due_s: dict[tuple[object, str], float] = {}

    def ask(self, gpu: object, call: str, read: Callable[[], T], *, quiet: bool = False) -> T | None:
        """The answer; None where it failed, which is said once unless `quiet`.

        Args:
            gpu: which device, for the event.
            call: what is asked for, in words.
        """
        try:
            return read()
        except Exception as error:  # noqa: BLE001 - drivers raise classes of their own
            if any(gone in type(error).__name__ for gone in GONE):
                self.note_once(gpu, "lost", kind="gpu_error", lost=True, error=reason(error))
            elif not quiet:
                self.note_once(gpu, call, kind="gpu_unread", call=call, error=reason(error))
            return None

    def paced(
        self, gpu: object, call: str, read: Callable[[], T], *, quiet: bool = False, rare: bool = False
    ) -> T | None:
        """Like `ask`; between two calls of a slow one, or of what changes rarely, the last answer stands.

        Slow is what took long twice in a row: a single delay may be the machine's.
        """
        key = gpu, call
        began_s = self._now()
        if began_s < self._due_s.get(key, -math.inf):
            last: T | None = self._last[key]
            return last
        answer = self.ask(gpu, call, read, quiet=quiet)
        took_s = self._now() - began_s
        usual_s = min(took_s, self._took_s.get(key, 0.0))
        self._took_s[key], self._last[key] = took_s, answer
        pause_s = min(usual_s / COST, PAUSE_S) if usual_s > SLOW_S else 0.0
        self._due_s[key] = began_s + max(pause_s, RARE_S if rare else 0.0)
        return answer

    def note_once(self, gpu: object, once: str, *, kind: str, **fields: Any) -> None:
        """Note an event, once for each device and `once`."""
        if (gpu, once) not in self._noted:
            self._noted.add((gpu, once))
            self.note({"kind": kind, "gpu": gpu, **fields})

    def note(self, event: dict[str, Any]) -> None:
        """Note an event."""
        if len(self._events) < EVENTS:
            self._events.append(event)

    def events(self) -> list[dict[str, Any]]:
        """Events since the last call, without their time."""
        events, self._events = self._events, []
        return events


def within(limits: Limits, values: Sequence[Any] | None) -> dict[str, float]:
    """Values under their keys; NaN for those missing, of the wrong kind, or outside their limits.

    Args:
        limits: key -> (least, greatest) the value can be. What lies outside is garbage (some integrated
            boards answer with it).
    """
    known = list(values or ())
    known += [math.nan] * (len(limits) - len(known))
    row = {}
    for (key, (least, greatest)), value in zip(limits.items(), known, strict=False):
        fits = isinstance(value, int | float) and least <= value <= greatest
        row[key] = float(value) if fits else math.nan
    return row


def reason(error: BaseException) -> str:
    """An exception in one line."""
    return f"{type(error).__name__}: {error}"[:300]
