"""The device's time for each phase: right, never waited for, and never more than a thousandth of the run.

The device is a stand-in (tests/support/fakecuda.py): no machine that runs these tests has one.
"""

from __future__ import annotations

import pytest
from fakecuda import MS, FakeDevice, Hands

from monitor.probe.clock import BACKWARD, DATA, FORWARD, OPTIMIZER, Clock, make_clock
from monitor.probe.cuda.timing import EVERY_NS, MARKS, PENDING, REST, Timing, summed


class Loop:
    """A training loop on a clock of its own, with a device that works off what it launches."""

    def __init__(self) -> None:
        self.now = Hands()
        self.device = FakeDevice(self.now)
        self.clock: Clock = make_clock([0] * 8, self.now)
        self.timing = Timing(self.device, self.clock.trace, self.now)
        self.clock.begin()

    def phase(self, phase: int, host_ms: float, device_ms: float) -> None:
        """The host is in a phase for so long, and launches so much work there."""
        depth = self.clock.push(phase)
        if device_ms:
            self.device.launch(device_ms)
        self.now.on(host_ms)
        self.clock.pop(depth)

    def step(self, *, fetch: float = 1, host: float = 1, forward: float = 0, backward: float = 0) -> None:
        """Fetch, forward, backward, optimizer: milliseconds of the host, and of the device."""
        self.phase(DATA, fetch, 0)
        self.phase(FORWARD, host, forward)
        self.phase(BACKWARD, host, backward)
        self.phase(OPTIMIZER, host, 1)
        self.clock.end_step()
        self.timing.step(self.now())

    def steps(self, count: int, **parts: float) -> None:
        """Several alike."""
        for _ in range(count):
            self.step(**parts)


def test_each_phase_gets_what_was_launched_in_it() -> None:
    """In a loop whose device is always behind, exactly that."""
    loop = Loop()
    loop.device.launch(5)
    loop.step(forward=20, backward=40)
    loop.step(forward=20, backward=40)
    loop.now.on(500)
    found = loop.timing.take()
    assert found["gpu_forward_ms"] == pytest.approx(20)
    assert found["gpu_backward_ms"] == pytest.approx(40)
    assert found["gpu_optimizer_ms"] == pytest.approx(1)
    assert found["gpu_step_ms"] == pytest.approx(61)
    assert found["gpu_timed"] == 1


def test_a_device_that_is_behind_was_never_idle() -> None:
    """It had work when the backward pass was issued, and while the host fetched the next batch."""
    loop = Loop()
    loop.device.launch(5)
    loop.steps(2, forward=20, backward=40)
    loop.now.on(500)
    found = loop.timing.take()
    assert found["gpu_idle_ms"] == found["gpu_gap_ms"] == found["gpu_starved_ms"] == 0
    assert found["gpu_caught_up"] == 0


def test_a_device_that_waits_for_batches_is_idle_for_so_long() -> None:
    """Nothing is launched while a batch is fetched: that time is idle to the last millisecond."""
    loop = Loop()
    loop.steps(2, fetch=30, forward=1, backward=1, host=2)
    loop.now.on(500)
    assert loop.timing.take()["gpu_idle_ms"] == pytest.approx(30)


def test_a_device_that_waits_for_launches_is_starved() -> None:
    """It had nothing left at the end of forward, backward and optimizer: it waited in there."""
    loop = Loop()
    loop.steps(2, fetch=0, host=10, forward=1, backward=1)
    loop.now.on(500)
    found = loop.timing.take()
    assert found["gpu_starved_ms"] == pytest.approx(30)
    assert found["gpu_caught_up"] == 1


def test_the_parts_of_a_step_are_the_step() -> None:
    """Every stay between two events belongs to one phase."""
    loop = Loop()
    loop.steps(9, fetch=7, forward=3, backward=11)
    loop.now.on(500)
    found = loop.timing.take()
    parts = ("data", "forward", "backward", "optimizer", "other")
    assert sum(found.get(f"gpu_{part}_ms", 0) for part in parts) == pytest.approx(found["gpu_step_ms"])


def test_what_lies_between_steps_is_the_gap() -> None:
    """From the last of the computing to the next forward pass; not what lies inside it."""
    other = 8
    phases = [DATA, other, FORWARD, other, BACKWARD, OPTIMIZER, other]
    found = summed(phases, [1, 2, 4, 8, 16, 32, 64], [False] * 7)
    assert found["gpu_gap_ms"] == 1 + 2 + 64
    assert found["gpu_idle_ms"] == 1


def test_a_step_without_computing_is_all_gap() -> None:
    """Nothing divides by what is not there."""
    assert summed([DATA, 8], [3, 4], [True, True])["gpu_gap_ms"] == 7


def test_nothing_is_read_before_the_device_is_past_it() -> None:
    """Asked too early, an event raises; here it is not asked, and the step comes with a later row."""
    loop = Loop()
    loop.device.launch(10_000)
    loop.steps(2)
    assert "gpu_timed" not in loop.timing.take()
    assert loop.device.calls[-1] == "event.query"
    loop.now.on(11_000)
    assert loop.timing.take()["gpu_timed"] == 1
    assert loop.timing.broken is None


def test_the_order_of_questions() -> None:
    """At each change of phase: the stream, whether it is dry, and then the event behind what it holds."""
    loop = Loop()
    loop.step()
    loop.device.calls.clear()
    loop.timing._pool += [loop.device.event() for _ in range(20)]
    loop.device.calls.clear()
    loop.step()
    assert loop.device.calls == ["stream", "query", "record"] * 9


def test_only_some_steps_are_touched() -> None:
    """Between two timed steps no question is asked at all."""
    loop = Loop()
    loop.steps(2)
    loop.device.calls.clear()
    loop.steps(5)
    assert loop.now() < loop.timing.due_ns
    assert loop.device.calls == []
    assert loop.clock.trace == []


def test_at_most_twenty_steps_a_second() -> None:
    """However many the loop makes."""
    loop = Loop()
    began = loop.now()
    loop.steps(1000, fetch=0.2, host=0.2)
    seconds = (loop.now() - began) / 1e9
    loop.now.on(100)
    assert 0.5 * 20 * seconds <= loop.timing.take()["gpu_timed"] <= 20 * seconds + 1


def test_a_slow_driver_is_asked_less() -> None:
    """What the questions cost never is more than a thousandth of the time, whatever the driver takes."""
    loop = Loop()
    loop.device.costs_ms = 0.1
    began = loop.now()
    loop.steps(3000)
    spent_ms = len(loop.device.calls) * 0.1
    assert spent_ms / ((loop.now() - began) / MS) < 1.5 / REST
    assert loop.timing.take()["gpu_timed"] >= 2


def test_a_device_that_never_answers_takes_no_more_events() -> None:
    """The pool is bounded; steps that cannot be timed are counted."""
    loop = Loop()
    loop.device.launch(1e9)
    loop.steps(400)
    made = loop.device.made
    loop.steps(400)
    assert made == loop.device.made <= PENDING * 10
    assert loop.timing.take()["gpu_untimed"] > 0


def test_events_are_used_again() -> None:
    """As soon as they were read."""
    loop = Loop()
    loop.steps(500)
    made = loop.device.made
    loop.steps(500)
    assert loop.device.made == made <= 20


def test_nothing_is_asked_while_a_graph_is_captured() -> None:
    """The stand-in fails at any question then, as the real device would spoil the capture."""
    loop = Loop()
    loop.step()
    depth = loop.clock.push(FORWARD)
    loop.device.captures = True
    loop.phase(BACKWARD, 1, 0)
    loop.clock.pop(depth)
    loop.device.captures = False
    loop.step()
    assert loop.timing.broken is None
    assert loop.timing.take() == {"gpu_untimed": 1.0}


def test_a_captured_step_is_followed_by_timed_ones() -> None:
    """One capture does not end the timing."""
    loop = Loop()
    loop.device.captures = True
    loop.step()
    loop.device.captures = False
    loop.now.on(EVERY_NS / MS)
    loop.steps(2)
    loop.now.on(500)
    assert loop.timing.take()["gpu_timed"] == 1


def test_rows_are_not_settled_while_a_graph_is_captured() -> None:
    """What waits for the device waits on."""
    loop = Loop()
    loop.steps(2)
    loop.device.captures = True
    assert "gpu_timed" not in loop.timing.take()
    loop.device.captures = False
    assert loop.timing.take()["gpu_timed"] == 1


def test_a_step_with_very_many_phases_is_not_timed() -> None:
    """Its events go back to the pool."""
    loop = Loop()
    loop.step()
    for _ in range(MARKS):
        loop.phase(FORWARD, 0, 0)
    loop.step()
    assert loop.timing.take()["gpu_untimed"] == 1
    assert loop.device.made <= MARKS + 1


@pytest.mark.parametrize("steps", [0, 1])
def test_an_error_of_the_device_ends_the_timing_only(steps: int) -> None:
    """The training gets no exception from us, and later steps ask nothing."""
    loop = Loop()
    loop.steps(steps)
    loop.device.broken = True
    loop.step()
    assert "device-side assert" in str(loop.timing.broken)
    loop.device.calls.clear()
    loop.now.on(1000)
    loop.steps(3)
    assert loop.device.calls == []
    assert loop.timing.take() == {}


def test_another_device_gets_events_of_its_own() -> None:
    """A program that goes on on another device is timed there."""
    loop = Loop()
    loop.steps(200)
    loop.now.on(100)
    loop.timing.take()
    loop.device.current = 1
    loop.steps(200)
    loop.now.on(100)
    assert loop.timing.broken is None
    assert loop.timing.take()["gpu_timed"] > 1


def test_an_error_in_reading_ends_the_timing_only() -> None:
    """As when a step ran on two devices, whose events give no time between them."""
    loop = Loop()
    loop.steps(2)
    loop.now.on(500)
    loop.device.broken = True
    assert loop.timing.take() == {}
    assert loop.timing.broken is not None
