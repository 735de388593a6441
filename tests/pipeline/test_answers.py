"""What was worked out a moment ago is given again, and no longer."""

from __future__ import annotations

from monitor.pipeline.answers import Answers


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_an_answer_is_good_for_a_while() -> None:
    """Within it nothing is worked out; after it, anew."""
    clock, made = Clock(), iter(range(10))
    answers: Answers[int] = Answers(1.0, clock)
    assert [answers.get("q", lambda: next(made)) for _ in range(3)] == [0, 0, 0]
    clock.now_s = 1.0
    assert answers.get("q", lambda: next(made)) == 1


def test_questions_are_told_apart_and_the_oldest_forgotten() -> None:
    """Memory is bounded whatever is asked."""
    made = iter(range(10))
    answers: Answers[int] = Answers(1.0, Clock(), kept=2)
    assert [answers.get(question, lambda: next(made)) for question in ("a", "b", "c")] == [0, 1, 2]
    assert answers.get("c", lambda: next(made)) == 2
    assert answers.get("a", lambda: next(made)) == 3
