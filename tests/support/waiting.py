"""Waiting for a condition: the one place where a test looks at a clock.

Patience is no bound on how fast something is: it is so long that only what never comes exceeds it, on a
machine that is busy with others, too. How long something may take is measured in `benchmarks/`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: Longest wait for anything, in seconds.
PATIENCE_S = 120.0


def until(condition: Callable[[], T], what: str | Callable[[], str] = "it") -> T:
    """Wait until a condition holds, PATIENCE_S at most; its value.

    Args:
        what: what is waited for, for the message when it does not come.

    Raises:
        AssertionError: it did not come.
    """
    limit = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        if time.monotonic() > limit:
            raise AssertionError(f"waited {PATIENCE_S:.0f} s for {what if isinstance(what, str) else what()}")
        time.sleep(0.01)
    return value


def finishes(call: Callable[[], T]) -> T:
    """Call what must not hang; its value.

    Raises:
        AssertionError: it has not returned after PATIENCE_S. It is left in a thread of its own.
    """
    results: list[T] = []
    thread = threading.Thread(target=lambda: results.append(call()), daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert not thread.is_alive(), f"{call} has not returned in {PATIENCE_S:.0f} s"
    return results[0]
