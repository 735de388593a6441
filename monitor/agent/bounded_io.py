"""Files are asked for on a thread of their own: on a mount that is dead, the asking never comes back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

#: Threads that may be stuck at once; beyond that nothing more is asked.
STUCK = 4
_stuck: list[threading.Thread] = []

T = TypeVar("T")


def within(seconds: float, call: Callable[[], T], otherwise: T) -> T:
    """What `call` returns, or `otherwise` where that takes longer or fails with OSError."""
    _stuck[:] = [thread for thread in _stuck if thread.is_alive()]
    if len(_stuck) >= STUCK:
        return otherwise
    answer: list[T] = []

    def ask() -> None:
        try:
            answer.append(call())
        except OSError:
            answer.append(otherwise)

    thread = threading.Thread(target=ask, name="patience", daemon=True)
    thread.start()
    thread.join(seconds)
    if answer:
        return answer[0]
    if thread.is_alive():
        _stuck.append(thread)
    return otherwise
