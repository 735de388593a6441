"""How a training process's end is noticed from inside: an exception, the interpreter's end, Ray's word."""

from __future__ import annotations

import atexit
import functools
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol

#: Why a session ends whose process ends with it.
AT_EXIT = "end of the script"


class Watched(Protocol):
    """What is told: a session."""

    def detach(self) -> None:
        """What trains has come to its end."""

    def note_failure(self, kind: type[BaseException], error: BaseException, /) -> None:
        """An exception ended it."""


def watch_exceptions(session: Watched) -> Callable[[], None]:
    """Note an uncaught exception.

    Returns:
        What takes that back. An excepthook that somebody has replaced since is left alone.
    """
    previous = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        try:
            session.note_failure(kind, error)
        except Exception:  # noqa: BLE001 - a signal's handler raised here (torch's, of a worker's death)
            session.note_failure(kind, error)
        finally:
            previous(kind, error, trace)

    def undo() -> None:
        if sys.excepthook is excepthook:
            sys.excepthook = previous

    sys.excepthook = excepthook
    return undo


def watch(session: Watched) -> tuple[Callable[[], None] | None, ...]:
    """Note an uncaught exception, and how a function ends that Ray runs. Returns what takes that back."""
    return watch_exceptions(session), watch_ray_train(session)


@functools.cache
def watch_exit(ended: Callable[[], None]) -> None:
    """Note a clean end of the interpreter. Once in a process: Python keeps the place of one taken back."""
    atexit.register(ended)


def watch_ray_train(session: Watched) -> Callable[[], None] | None:
    """Note how the function ends that Ray Train runs in a thread of its worker.

    Ray catches its exception and ends the worker by itself later, with exit status 1 either way, so that
    the process's end says nothing. The thread tells its runner by a queue: None, or the exception
    (ray.train.v2, `ThreadRunner`; seen in 2.60).

    Returns:
        What takes that back; None where this is no such thread.
    """
    runner = _ray_runner()
    queue: Any = getattr(runner, "_exc_queue", None)
    if queue is None:
        return None

    class ReportingQueue:
        def put(self, error: BaseException | None, *args: Any, **kwargs: Any) -> None:
            undo()
            try:
                if error is None:
                    session.detach()
                else:
                    cause = getattr(error, "_base_exc", error)
                    session.note_failure(type(cause), cause)
            finally:
                queue.put(error, *args, **kwargs)

        def __getattr__(self, name: str) -> Any:
            return getattr(queue, name)

    reporting_queue = runner._exc_queue = ReportingQueue()

    def undo() -> None:
        if runner._exc_queue is reporting_queue:
            runner._exc_queue = queue

    return undo


def _ray_runner() -> Any:
    """The ThreadRunner whose function runs in this thread; None where there is none."""
    if "ray.train" not in sys.modules:
        return None
    frame = sys._getframe(1)
    while (outer := frame.f_back) is not None and outer.f_globals.get("__name__") != "threading":
        frame = outer
    if frame.f_code.co_name != "_run_target" or not str(frame.f_globals.get("__name__")).startswith("ray."):
        return None
    return frame.f_locals.get("self")
