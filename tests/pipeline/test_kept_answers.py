"""What was worked out a moment ago is given again, and no longer."""

from __future__ import annotations

from pathlib import Path

from monitor.pipeline import ANSWER_TTL_S, MAX_ANSWERS, Pipeline


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_an_answer_is_good_for_a_while(tmp_path: Path) -> None:
    """Within it nothing is worked out; after it, anew."""
    clock, made = Clock(), iter(range(1, 10))
    pipeline = Pipeline(tmp_path, clock=clock)
    ask = lambda: pipeline._kept(pipeline._answers, "q", lambda: next(made))  # noqa: E731
    assert [ask() for _ in range(3)] == [1, 1, 1]
    clock.now_s = ANSWER_TTL_S
    assert ask() == 2


def test_questions_are_told_apart_and_the_oldest_forgotten(tmp_path: Path) -> None:
    """Memory is bounded whatever is asked."""
    pipeline, made = Pipeline(tmp_path, clock=Clock()), iter(range(1, 1000))
    answers = [pipeline._kept(pipeline._answers, q, lambda: next(made)) for q in range(MAX_ANSWERS + 1)]
    assert answers == list(range(1, MAX_ANSWERS + 2))
    assert pipeline._kept(pipeline._answers, MAX_ANSWERS, lambda: next(made)) == MAX_ANSWERS + 1
    assert pipeline._kept(pipeline._answers, 0, lambda: next(made)) == MAX_ANSWERS + 2
    assert len(pipeline._answers) == MAX_ANSWERS
