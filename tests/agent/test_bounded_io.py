"""Nobody waits for a file system that does not answer."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import finishes

from monitor.agent import bounded_io
from monitor.agent.bounded_io import within


@pytest.fixture
def hung(tmp_path: Path) -> Iterator[Path]:
    """A file that does not come: opening it waits for a writer, as a dead mount waits for its server."""
    path = tmp_path / "hung"
    os.mkfifo(path)
    yield path
    while bounded_io._stuck:
        os.close(os.open(path, os.O_RDWR))  # lets whoever waits in, and go with nothing
        bounded_io._stuck[:] = [thread for thread in bounded_io._stuck if thread.is_alive()]


def test_an_answer_is_an_answer() -> None:
    """What comes in time is returned."""
    assert within(5.0, lambda: 7, 0) == 7


def test_an_error_is_no_answer(tmp_path: Path) -> None:
    """A file that is not there."""
    assert within(5.0, (tmp_path / "none").read_text, "otherwise") == "otherwise"


def test_a_hung_file_is_given_up(hung: Path) -> None:
    """It takes as long as allowed, not as long as the file wants."""
    assert finishes(lambda: within(0.05, hung.read_text, "otherwise")) == "otherwise"


def test_no_more_than_a_few_wait(hung: Path) -> None:
    """Once some are stuck nobody else is sent after them."""
    for _ in range(2 * bounded_io.STUCK):
        within(0.01, hung.read_text, "")
    assert len(bounded_io._stuck) == bounded_io.STUCK
    before = threading.active_count()
    assert within(5.0, lambda: 7, 0) == 0
    assert threading.active_count() == before
