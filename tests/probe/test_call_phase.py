"""A model in evaluation mode that is called without gradients: evaluated, or acting in an environment."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from loops import data, error, learn, loader, net, sgd
from torch import nn
from watching import Watch, watching

#: Calls in evaluation mode between two rounds of training.
CALLS = 8


class Batch(nn.Module):
    """Called with a dict, as language models are."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = net()

    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.inner(batch["features"])


def rounds(watch: Watch, rows: int, model: nn.Module | None = None) -> None:
    """Three rounds of calls in evaluation mode, of `rows` rows each, and of training on whole batches."""
    inner = getattr(model, "inner", None) or net()
    model = model or inner
    watch.see(model)
    optimizer, whole = sgd(inner), data()[:]
    for _ in range(3):
        model.eval()
        for _ in range(CALLS):
            with torch.no_grad():
                model(whole[0][:rows] if model is inner else {"features": whole[0][:rows]})
        model.train()
        for _ in range(4):
            optimizer.zero_grad()
            out = model(whole[0] if model is inner else {"features": whole[0]})
            (out - whole[1]).square().mean().backward()
            optimizer.step()


@pytest.mark.parametrize("model", [None, "dict"])
def test_a_policy_that_acts_is_not_evaluated(model: str | None, tmp_path: Path) -> None:
    """One observation at a time, and whole batches of them to train on: a rollout."""
    with watching(tmp_path) as watch:
        rounds(watch, 1, Batch() if model else None)
    assert watch.steps == 12
    assert [row["eval_ms"] for row in watch.rows[1:]] == [0.0] * 11
    assert watch.rows[4]["forward_ms"] > 0


@pytest.mark.parametrize("model", [None, "dict"])
def test_evaluation_of_slices_is_evaluation(model: str | None, tmp_path: Path) -> None:
    """As many rows at a time as are trained on, without any loader."""
    with watching(tmp_path) as watch:
        rounds(watch, len(data()), Batch() if model else None)
    assert watch.steps == 12
    assert [index for index, row in enumerate(watch.rows) if row["eval_ms"] > 0] == [0, 4, 8]


def test_small_batches_of_a_loader_are_evaluated(tmp_path: Path) -> None:
    """A validation loader may give one sample at a time: that is evaluation still."""
    with watching(tmp_path) as watch:
        model = net()
        watch.see(model)
        optimizer, one_by_one = sgd(model), loader(batch_size=1, shuffle=False)
        for _ in range(3):
            for batch in loader():
                model.train()
                learn(model, optimizer, batch)
            for batch in one_by_one:
                model.eval()
                with torch.no_grad():
                    error(model, batch)
    steps = watch.steps // 3
    evaluated = [index for index, row in enumerate(watch.rows) if row["eval_ms"] > 0]
    assert evaluated == [steps, 2 * steps]
