"""Answers: what was worked out a moment ago and may be given again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")

#: Answers that are kept.
KEPT = 64


class Answers(Generic[T]):
    """Answers by question, each good for a while. Safe from any thread.

    Args:
        fresh_s: seconds for which an answer is good.
        clock: seconds, rising.
        kept: answers kept at most; beyond it the oldest go.
    """

    def __init__(self, fresh_s: float, clock: Callable[[], float], kept: int = KEPT) -> None:
        self._fresh_s, self._clock, self._kept = fresh_s, clock, kept
        self._held: OrderedDict[Hashable, tuple[float, T]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, question: Hashable, make: Callable[[], T]) -> T:
        """The answer as it was last, where it is still good, else a new one from `make`."""
        now_s = self._clock()
        with self._lock:
            held = self._held.get(question)
        if held is not None and now_s - held[0] < self._fresh_s:
            return held[1]
        made = make()
        with self._lock:
            self._held[question] = now_s, made
            self._held.move_to_end(question)
            while len(self._held) > self._kept:
                self._held.popitem(last=False)
        return made
