"""Numbers of the user's own are thinned, never lost."""

from __future__ import annotations

import pytest

from monitor.probe.user_metrics import EVERY_NS, NAMES, UserMetrics


class Clock:
    """Time that only a test moves."""

    def __init__(self) -> None:
        self.ns = 0

    def __call__(self) -> int:
        return self.ns


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def written() -> list[dict[str, float]]:
    return []


def test_what_comes_seldom_is_written_at_once(clock: Clock, written: list[dict[str, float]]) -> None:
    """Each name for itself, so two logged one after the other are both there."""
    numbers = UserMetrics(written.append, clock)
    numbers.log({"a": 1})
    numbers.log({"b": 2})
    assert written == [{"a": 1.0}, {"b": 2.0}]


def test_what_comes_fast_is_averaged(clock: Clock, written: list[dict[str, float]]) -> None:
    """A loop that logs every step writes four times a second, with the mean of what came since."""
    numbers = UserMetrics(written.append, clock)
    for step in range(101):
        clock.ns = step * EVERY_NS // 50
        numbers.log({"a": float(step)})
    assert [event["a"] for event in written] == [0.0, sum(range(1, 51)) / 50, sum(range(51, 101)) / 50]


def test_the_rest_is_written_at_the_end(clock: Clock, written: list[dict[str, float]]) -> None:
    """Once."""
    numbers = UserMetrics(written.append, clock)
    for value in (1.0, 2.0, 4.0):
        numbers.log({"a": value})
    numbers.flush()
    numbers.flush()
    assert written == [{"a": 1.0}, {"a": 3.0}]


def test_names_are_bounded(clock: Clock, written: list[dict[str, float]]) -> None:
    """A name made of a counter fills no disk; names that are known go on."""
    numbers = UserMetrics(written.append, clock)
    for number in range(2 * NAMES):
        numbers.log({f"a{number}": 1.0})
    clock.ns = EVERY_NS
    numbers.log({"a0": 2.0})
    assert len(written) == NAMES + 1
