"""How a training process's end is noticed from inside it."""

from __future__ import annotations

import queue
import sys
import threading
import types
from typing import Any

import pytest

from monitor.process_end import watch_ray_train


class Noted:
    """What a session is told."""

    def __init__(self) -> None:
        self.ends: list[str] = []

    def detach(self) -> None:
        self.ends.append("detached")

    def note_failure(self, kind: type[BaseException], error: BaseException) -> None:
        self.ends.append(f"{kind.__name__}: {error}")


#: Ray's own thread, in short (ray.train.v2 2.60, `ThreadRunner.run`): Ray is too large to be installed here.
RUNNER = """
class ThreadRunner:
    def __init__(self, queue):
        self._exc_queue = queue

    def run(self, target):
        def _run_target():
            try:
                target()
                self._exc_queue.put(None)
            except BaseException as error:
                self._exc_queue.put(error)

        thread = threading.Thread(target=_run_target)
        thread.start()
        thread.join()
"""


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = types.ModuleType("ray.train")
    module.threading = threading  # type: ignore[attr-defined]
    exec(RUNNER, vars(module))
    monkeypatch.setitem(sys.modules, "ray.train", module)
    return module.ThreadRunner(queue.SimpleQueue())  # type: ignore[attr-defined]


def test_ray_trains_and_returns(runner: Any) -> None:
    """The worker's own exit status is 1 all the same: that it went well is known here only."""
    noted, queued = Noted(), runner._exc_queue
    runner.run(lambda: watch_ray_train(noted))
    assert noted.ends == ["detached"]
    assert queued.get_nowait() is None
    assert runner._exc_queue is queued


def test_ray_trains_and_raises(runner: Any) -> None:
    """Ray catches the exception, so that no excepthook sees it."""
    noted, queued = Noted(), runner._exc_queue

    def train() -> None:
        watch_ray_train(noted)
        raise ValueError("no more data")

    runner.run(train)
    assert noted.ends == ["ValueError: no more data"]
    assert isinstance(queued.get_nowait(), ValueError)


def test_ray_watched_no_more(runner: Any) -> None:
    """After detach the runner has its own queue again, and nothing is noted."""
    noted, queued = Noted(), runner._exc_queue

    def train() -> None:
        undo = watch_ray_train(noted)
        assert undo is not None
        assert runner._exc_queue is not queued
        undo()

    runner.run(train)
    assert not noted.ends
    assert runner._exc_queue is queued


def test_other_threads_are_left_alone(runner: Any) -> None:
    """A thread of the script's own is none of Ray's, whatever is imported."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(watch_ray_train(Noted())))
    thread.start()
    thread.join()
    assert found == [None]
