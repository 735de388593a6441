"""Every nanosecond between two laps belongs to exactly one phase."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from monitor.probe.clock import (
    BACKWARD,
    BEFORE,
    CHECKPOINT,
    COMM,
    DATA,
    EVAL,
    FORWARD,
    OPTIMIZER,
    OTHER,
    make_clock,
)
from monitor.schema import PHASES


class Hands:
    """Time that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000

    def __call__(self) -> int:
        return self.now

    def wait(self, nanoseconds: int) -> None:
        self.now += nanoseconds


@pytest.fixture
def hands() -> Hands:
    return Hands()


def spent(**phases: int) -> list[int]:
    """Nanoseconds a phase, in the schema's order."""
    return [phases.get(phase, 0) for phase in PHASES]


def test_the_indices_are_the_schemas() -> None:
    """The phases' numbers are places in schema.PHASES, and the one before all steps is none of them."""
    numbers = (DATA, FORWARD, BACKWARD, OPTIMIZER, CHECKPOINT, EVAL, OTHER)
    names = ("data", "forward", "backward", "optimizer", "checkpoint", "eval", "other")
    assert tuple(PHASES[number] for number in numbers) == names
    assert BEFORE not in range(len(PHASES))


def test_time_before_the_first_step_belongs_to_none(hands: Hands) -> None:
    """What came before `begin` is dropped, phases included."""
    clock = make_clock([0, 0], hands)
    hands.wait(5)
    depth = clock.push(CHECKPOINT)
    hands.wait(7)
    clock.pop(depth)
    clock.begin()
    hands.wait(3)
    assert clock.end_step()[1] == spent(checkpoint=7, other=3)


def test_only_the_first_begin_counts(hands: Hands) -> None:
    """A second loader, a second fit: the clock runs on."""
    clock = make_clock([0, 0], hands)
    clock.begin()
    hands.wait(4)
    clock.begin()
    assert clock.end_step() == (1_004, spent(other=4))


def test_an_inner_phase_takes_its_time_from_the_outer_one(hands: Hands) -> None:
    """A backward pass inside an optimizer's closure is backward, and nothing is counted twice."""
    clock = make_clock([0, 0], hands)
    clock.begin()
    outer = clock.push(OPTIMIZER)
    hands.wait(2)
    inner = clock.push(BACKWARD)
    hands.wait(30)
    clock.pop(inner)
    hands.wait(3)
    clock.pop(outer)
    assert clock.end_step()[1] == spent(optimizer=5, backward=30)


def test_an_outer_pop_closes_what_an_exception_left_open(hands: Hands) -> None:
    """Popping to a depth unwinds everything above it, and a second pop of the same depth does nothing."""
    clock = make_clock([0, 0], hands)
    clock.begin()
    outer = clock.push(FORWARD)
    clock.push(DATA)
    inner = clock.push(BACKWARD)
    clock.pop(outer)
    hands.wait(9)
    clock.pop(inner)
    clock.pop(outer)
    assert clock.end_step()[1] == spent(other=9)


def test_a_lap_closes_everything(hands: Hands) -> None:
    """A phase left open does not reach into the next step."""
    clock = make_clock([0, 0], hands)
    clock.begin()
    clock.push(FORWARD)
    clock.end_step()
    hands.wait(6)
    assert clock.end_step()[1] == spent(other=6)


def test_a_step_can_end_where_it_was_marked(hands: Hands) -> None:
    """After `end_step_at`, what came since the mark belongs to the next step."""
    clock = make_clock([0, 0], hands)
    clock.begin()
    hands.wait(10)
    marked = clock.mark()
    hands.wait(4)
    clock.end_step_at(marked)
    assert (marked, clock.end_step()) == ((1_010, spent(other=10)), (1_014, spent(other=4)))


@pytest.mark.parametrize(("moved", "left"), [(4, 6), (99, 0), (-3, 10)])
def test_time_can_be_moved_to_the_phase_it_belongs_to(hands: Hands, moved: int, left: int) -> None:
    """What is known only afterwards; never more than there is, so that the step stays as long as it was."""
    clock = make_clock([0, 0], hands)
    clock.begin()
    depth = clock.push(BACKWARD)
    hands.wait(10)
    clock.pop(depth)
    clock.reassign(BACKWARD, COMM, moved)
    assert clock.end_step()[1] == spent(backward=left, comm=10 - left)


@pytest.mark.parametrize("end", ["lap", "cut"])
def test_a_steps_end_ends_the_evaluation(hands: Hands, end: str) -> None:
    """An evaluation that was left early does not swallow the steps after it."""
    clock = make_clock([0, 0], hands)
    clock.begin()
    clock.set_base_phase(EVAL)
    hands.wait(2)
    assert clock.base_phase[0] == EVAL
    if end == "lap":
        clock.end_step()
    else:
        clock.end_step_at(clock.mark())
    hands.wait(3)
    assert (clock.base_phase[0], clock.end_step()[1]) == (OTHER, spent(other=3))


def test_the_live_area_says_what_runs_now(hands: Hands) -> None:
    """The agent reads the phase and when it was entered: -1 before the first step, whatever ran then."""
    live = [7, 7]
    clock = make_clock(live, hands)
    seen = [tuple(live)]
    hands.wait(1)
    clock.pop(clock.push(CHECKPOINT))
    seen.append(tuple(live))
    clock.begin()
    hands.wait(1)
    clock.push(DATA)
    seen.append(tuple(live))
    clock.end_step()
    seen.append(tuple(live))
    assert seen == [(-1, 1_000), (-1, 1_001), (DATA, 1_002), (OTHER, 1_002)]


phases = st.integers(0, len(PHASES) - 1)


class AnySequence(RuleBasedStateMachine):
    """Beside the clock runs the same in the plainest words: what is open, and a ledger."""

    def __init__(self) -> None:
        super().__init__()
        self.hands = Hands()
        self.clock = make_clock([0, 0], self.hands)
        self.clock.begin()
        self.open: list[int] = []
        self.base_phase = OTHER
        self.ledger = [0] * len(PHASES)
        self.marked: tuple[int, list[int]] | None = None
        self.ended_ns = self.hands.now

    @rule(nanoseconds=st.integers(0, 10**12))
    def wait(self, nanoseconds: int) -> None:
        self.hands.wait(nanoseconds)
        self.ledger[self.open[-1] if self.open else self.base_phase] += nanoseconds

    @rule(phase=phases)
    def push(self, phase: int) -> None:
        assert self.clock.push(phase) == len(self.open)
        self.open.append(phase)

    @rule(depth=st.integers(0, 6))
    def pop(self, depth: int) -> None:
        self.clock.pop(depth)
        del self.open[depth:]

    @rule(source=phases, sink=phases, nanoseconds=st.integers(-5, 10**12))
    def reassign(self, source: int, sink: int, nanoseconds: int) -> None:
        """What an open phase has spent since it was entered is not booked yet, and stays."""
        booked = self.clock.mark()[1][source]
        self.marked = None
        self.clock.reassign(source, sink, nanoseconds)
        moved = min(max(nanoseconds, 0), booked)
        self.ledger[source] -= moved
        self.ledger[sink] += moved

    @rule(phase=st.sampled_from([EVAL, OTHER]))
    def set_base_phase(self, phase: int) -> None:
        self.clock.set_base_phase(phase)
        self.base_phase = phase

    @rule()
    def mark(self) -> None:
        self.marked = self.clock.mark()

    @rule()
    def end_step(self) -> None:
        """The step's phases are the ledger's."""
        end_ns, taken = self.clock.end_step()
        assert taken == self.ledger
        self.open, self.ledger, self.base_phase, self.marked = [], [0] * len(PHASES), OTHER, None
        self.ends(end_ns, taken)

    @precondition(lambda self: self.marked is not None)
    @rule()
    def end_step_at(self) -> None:
        """The rest stays for the next step."""
        assert self.marked is not None
        self.clock.end_step_at(self.marked)
        end_ns, taken = self.marked
        self.ledger = [now - then for now, then in zip(self.ledger, taken, strict=True)]
        self.base_phase, self.marked = OTHER, None
        self.ends(end_ns, taken)

    def ends(self, end_ns: int, taken: list[int]) -> None:
        """A step's phases add up to the time since the last step's end, exactly; none is negative."""
        assert sum(taken) == end_ns - self.ended_ns
        assert min(taken) >= 0
        self.ended_ns = end_ns


test_any_sequence_accounts_for_every_nanosecond = AnySequence.TestCase
