"""Where no loader is heard of, waiting for data is told from stacks, or is not known: never 0.0 for that."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.diagnosis.signals.unwatched_data import Waiting, fetches, waiting

MINE = "/home/me/train.py"
QUEUE = "/usr/lib/python3.11/multiprocessing/queues.py"


def frame(
    step_source: str, count: int = 1, leaf_file: str = MINE, source: str | None = None
) -> dict[str, Any]:
    own = step_source if source is None else source
    return {"file": MINE, "source": own, "step_source": step_source, "leaf_file": leaf_file, "count": count}


def event(*frames: dict[str, Any], in_modules: int = 0) -> dict[str, Any]:
    return {
        "frames": frames,
        "total": in_modules + sum(one["count"] for one in frames),
        "in_modules": in_modules,
    }


@pytest.mark.parametrize(
    "one",
    [
        frame("for x, y in batches(400):", source="time.sleep(0.004)"),
        frame("async for x in stream():"),
        frame("for step, (x, y) in enumerate(tqdm(stream)):"),
        frame("x, y = next(source)"),
        frame("while (x := ready.get()) is not None:"),
        frame("x = pipe.recv()"),
        frame("x = wait()", leaf_file=QUEUE),
        frame("", source="x = next(it)"),
    ],
)
def test_the_head_of_the_loop_and_calls_that_take_fetch(one: dict[str, Any]) -> None:
    """What runs there makes the next batch, wherever it stands inside."""
    assert fetches(one) is True


@pytest.mark.parametrize(
    "source",
    [
        "loss.backward()",
        "optimizer.zero_grad()",
        "loss = F.mse_loss(model(x), y)",
        "print(f'loss {loss:.3f}')",
    ],
)
def test_lines_that_train_make_no_batch(source: str) -> None:
    """Nor does what logs."""
    assert fetches(frame(source)) is False


@pytest.mark.parametrize(
    "source", ["x = images[rows]", "x, y = get_batch()", "obs, reward = env.step(action)", ""]
)
def test_what_may_make_a_batch_is_not_known(source: str) -> None:
    """Neither fetching nor not: the share is then no number."""
    assert fetches(frame(source)) is None


GENERATOR = frame("for x in batches():", 78, source="time.sleep(0.004)")


def test_a_share_that_many_stacks_agree_on_is_told() -> None:
    """The unclaimed time is the waiting; the number of stacks is told beside it."""
    assert waiting(event(GENERATOR), other=0.9, forward=0.03) == Waiting(0.9, 78)
    many = {**GENERATOR, "count": 299}
    got = waiting(event(many, frame("loss.backward()", 1), in_modules=20), other=0.9, forward=0.03)
    assert (got.share, got.samples) == (pytest.approx(0.9 * 299 / 300), 300)


@pytest.mark.parametrize(
    ("told", "other"),
    [
        (None, 0.9),
        (event(frame("for x in batches():", 8)), 0.9),
        (event(GENERATOR), 0.4),
        (event(GENERATOR, frame("loss.backward()", 20)), 0.9),
        (event(frame("x = images[rows]", 78)), 0.9),
        (event(frame("x = images[rows]", 78)), 0.3),
        (event(GENERATOR), 0.1),
    ],
    ids=["no stack", "few", "little of it", "they differ", "may be", "may be, a little", "sampled before"],
)
def test_what_cannot_be_told_is_null(told: dict[str, Any] | None, other: float) -> None:
    """Never 0.0: that would be a claim."""
    assert waiting(told, other, forward=0.03).share is None


@pytest.mark.parametrize(
    ("told", "other"),
    [
        (None, 0.15),
        (None, 0.02),
        (event(frame("x = images[rows]", 3)), 0.1),
        (event(frame("print(loss)", 78)), 0.8),
    ],
    ids=["below what is sampled", "nothing unclaimed", "sampled before", "all of it logs"],
)
def test_none_is_told_where_nothing_can_have_waited(told: dict[str, Any] | None, other: float) -> None:
    """The unclaimed time is small, or it is known to be something else."""
    assert waiting(told, other, forward=0.3).share == 0.0


def test_without_forward_passes_modules_are_unclaimed() -> None:
    """Then what waited is a smaller part of the unclaimed time."""
    told = event(GENERATOR, in_modules=78)
    assert waiting(told, other=0.9, forward=0.0).share is None
