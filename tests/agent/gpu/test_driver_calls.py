"""Asking with care: failures are said once, slow calls come rarely, garbage is no value."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.agent.gpu.driver_calls import COST, EVENTS, PAUSE_S, RARE_S, DriverCalls, within


class Clock:
    """Seconds that pass only when told."""

    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


class Call:
    """A call that takes its time, and answers with how often it was made."""

    def __init__(self, clock: Clock, took_s: float) -> None:
        self.clock, self.took_s, self.count = clock, took_s, 0

    def __call__(self) -> int:
        self.clock.s += self.took_s
        self.count += 1
        return self.count


def failing(error: Exception) -> Callable[[], Any]:
    def read() -> Any:
        raise error

    return read


def test_a_failure_is_said_once_for_each_device_and_call() -> None:
    """And the answer is None."""
    calls = DriverCalls()
    for gpu, call in [("0", "power"), ("0", "power"), ("1", "power"), ("0", "clock")]:
        assert calls.ask(gpu, call, failing(KeyError("x"))) is None
    assert [(event["gpu"], event["call"]) for event in calls.events()] == [
        ("0", "power"), ("1", "power"), ("0", "clock"),
    ]  # fmt: skip
    assert calls.events() == []


def test_a_quiet_failure_is_not_said() -> None:
    """What is normal on many devices is not worth a word."""
    calls = DriverCalls()
    assert calls.ask("0", "MIG mode", failing(ValueError()), quiet=True) is None
    assert calls.events() == []


@pytest.mark.parametrize("name", ["NVMLError_GpuIsLost", "NVMLError_GpuNotFound", "NVMLError_ResetRequired"])
def test_a_device_that_is_gone_is_an_error(name: str) -> None:
    """Also where the call would fail quietly; once, however many calls fail."""
    calls, gone = DriverCalls(), type(name, (Exception,), {})
    calls.ask("0", "power", failing(gone("gone")), quiet=True)
    calls.ask("0", "clock", failing(gone("gone")))
    (event,) = calls.events()
    assert (event["kind"], event["lost"]) == ("gpu_error", True)


def test_a_quick_call_is_made_every_time() -> None:
    """Three a second cost nothing."""
    clock = Clock()
    calls, call = DriverCalls(clock), Call(clock, 0.0005)
    for _ in range(10):
        clock.s += 0.3
        calls.paced("0", "power", call)
    assert call.count == 10


def test_a_slow_call_costs_no_more_than_its_share() -> None:
    """Between two calls the last answer stands."""
    clock = Clock()
    calls, call = DriverCalls(clock), Call(clock, 0.02)
    answers = []
    for _ in range(200):
        clock.s += 1.0
        answers.append(calls.paced("0", "PCIe", call))
    assert call.count * 0.02 / 200 <= 1.2 * COST
    assert answers[:8] == [1, 2, 2, 2, 2, 2, 2, 2]
    assert answers == sorted(answers)


def test_one_delay_is_the_machine_s() -> None:
    """Only what is slow twice in a row is slow."""
    clock = Clock()
    calls, call = DriverCalls(clock), Call(clock, 0.0005)
    for number in range(10):
        call.took_s = 0.5 if number % 3 == 1 else 0.0005
        clock.s += 1.0
        calls.paced("0", "power", call)
    assert call.count == 10


def test_a_call_that_hangs_for_long_is_asked_again() -> None:
    """The pause has an end."""
    clock = Clock()
    calls, call = DriverCalls(clock), Call(clock, 5.0)
    for _ in range(4):
        calls.paced("0", "power", call)
        clock.s += PAUSE_S
    assert call.count == 4


def test_what_hardly_changes_is_asked_for_now_and_then() -> None:
    """However quick it is."""
    clock = Clock()
    calls, call = DriverCalls(clock), Call(clock, 0.0001)
    answers = []
    for _ in range(21):
        answers.append(calls.paced("0", "power limit", call, rare=True))
        clock.s += 1.0
    assert (call.count, answers[:2], answers[-1]) == (1 + 20 // round(RARE_S), [1, 1], 3)


def test_events_are_bounded() -> None:
    """A driver that reports without end fills no memory."""
    calls = DriverCalls()
    for number in range(EVENTS + 50):
        calls.note({"kind": "gpu_error", "xid": number})
    assert len(calls.events()) == EVENTS


@given(st.lists(st.floats() | st.integers() | st.text() | st.none(), max_size=4))
def test_a_row_has_all_its_keys_whatever_was_answered(answer: list[Any]) -> None:
    """Values are within their limits, or NaN."""
    row = within({"a": (0, 100), "b": (-5, 5)}, answer)
    assert list(row) == ["a", "b"]
    assert math.isnan(row["a"]) or 0 <= row["a"] <= 100
    assert math.isnan(row["b"]) or -5 <= row["b"] <= 5


def test_no_answer_is_no_value() -> None:
    """NaN, which nobody takes for 0."""
    assert math.isnan(within({"a": (0, 1)}, None)["a"])
