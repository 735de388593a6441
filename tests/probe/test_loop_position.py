"""Two events are of one iteration when the program only went forward between them."""

from __future__ import annotations

import itertools

from monitor.probe.loop_position import Position, position, same_iteration

Seen = list[tuple[str, Position]]


def note(seen: Seen, name: str) -> None:
    seen.append((name, position(1)))


def together(seen: Seen) -> list[str]:
    """Pairs of neighbours of which the second comes later in the same iteration."""
    pairs = itertools.pairwise(seen)
    return [a + b for (a, one), (b, other) in pairs if same_iteration(one, other, moved=True)]


def test_a_delayed_optimizer_joins_the_iteration_it_is_in():
    """Critic, critic, actor: the actor belongs to the second critic's iteration."""
    seen: Seen = []
    for number in range(4):
        note(seen, "C")
        if number % 2:
            note(seen, "A")
    assert together(seen) == ["CA", "CA"]


def test_one_loop_after_another_is_no_iteration():
    """Ten steps of one optimizer, then ten of another: none of them belong together."""
    seen: Seen = []
    for _ in range(3):
        note(seen, "D")
    for _ in range(3):
        note(seen, "G")
    assert together(seen) == []


def test_functions_with_loops_of_their_own_are_one_after_another():
    """The same, where each loop stands in a function."""

    def rounds(name: str) -> None:
        for _ in range(2):
            note(seen, name)

    seen: Seen = []
    rounds("D")
    rounds("G")
    assert together(seen) == []


def test_a_loop_inside_an_iteration_is_left_for_what_follows():
    """Five critic steps in a loop, then the generator: it joins the last of them."""
    seen: Seen = []
    for _ in range(2):
        for _ in range(2):
            note(seen, "D")
        note(seen, "G")
    assert together(seen) == ["DG", "DG"]


def test_several_in_the_very_same_place_count_as_one_unless_asked():
    """`for optimizer in optimizers: optimizer.step()`."""
    seen: Seen = []
    for name in "AB":
        note(seen, name)
    (_, first), (_, second) = seen
    assert same_iteration(first, second)
    assert not same_iteration(first, second, moved=True)
