"""How many steps a run means to take: known or null, never guessed."""

from __future__ import annotations

from typing import Any

import pytest
from batches import Training

from monitor.pipeline.plan import planned_steps
from monitor.run_state import RunState


def state(*facts: tuple[str, Any], config: dict[str, Any] | None = None, **columns: float) -> RunState:
    training = Training()
    told = [training.event("fact", rank=0, name=name, value=value) for name, value in facts]
    made = RunState(training.run)
    made.take(training.start(config=config or {}))
    made.take(training.batch(30, *told, **{"backward_calls": 1.0, **columns}))
    return made


LOADER = ("loader/1", {"role": "train", "length": 50})


def test_a_framework_says_it() -> None:
    """What the trainer was told to do goes before anything in the configuration."""
    assert planned_steps(state(("plan", {"steps": 900}), config={"max_steps": 5})) == 900


@pytest.mark.parametrize("name", ["max_steps", "total_steps", "max_iters"])
def test_the_configuration_says_it(name: str) -> None:
    """Steps by one of their usual names."""
    assert planned_steps(state(config={name: 120})) == 120


def test_epochs_of_a_loader_that_knows_its_length() -> None:
    """Epochs times batches, where a step is a batch."""
    assert planned_steps(state(LOADER, config={"epochs": 4})) == 200


@pytest.mark.parametrize(
    "made",
    [
        state(),
        state(LOADER),
        state(config={"epochs": 4}),
        state(("loader/1", {"role": "train", "length": None}), config={"epochs": 4}),
        state(("loader/1", {"role": "eval", "length": 50}), config={"epochs": 4}),
        state(LOADER, ("loader/2", {"role": "train", "length": 7}), config={"epochs": 4}),
        state(LOADER, config={"epochs": 4}, backward_calls=2.0),
        state(LOADER, config={"epochs": 4}, backward_calls=float("nan")),
    ],
)
def test_nothing_is_guessed(made: RunState) -> None:
    """Without a loader's length, with several loaders, or with accumulation, nobody knows."""
    assert planned_steps(made) is None


@pytest.mark.parametrize("value", [-1, 0, True, 2.5, "100", None, float("inf"), float("nan"), [3]])
def test_nonsense_is_no_plan(value: Any) -> None:
    """Hugging Face's max_steps is −1 when nobody sets it; configurations hold anything."""
    assert planned_steps(state(("plan", {"steps": value}), config={"max_steps": value})) is None
