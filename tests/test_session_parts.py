"""What a session gives to loops of one's own: step, phase, log, loader."""

from __future__ import annotations

import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader
from training import Seen, digits, network, watching

from monitor.session import Session


def session_of(seen: Seen) -> Session:
    """A session without agent and hub."""
    return Session(None, seen.probe)


class Slow(nn.Module):
    """5 ms a forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.net = network()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(0.005)
        return self.net(x)


@pytest.mark.parametrize("named", [True, False])
def test_inference_is_measured_step_by_step(tmp_path: Path, named: bool) -> None:
    """Under no_grad and eval(): forward is forward, fetching is data, batches are samples, none is `eval`."""
    model = Slow().eval()
    with watching(tmp_path, *([model] if named else [])) as seen:
        session = session_of(seen)
        with torch.no_grad():
            for x, _ in DataLoader(digits(80), 8):
                model(x)
                session.step()
    assert seen.steps == 10
    assert list(seen.columns["samples"][1:]) == [8] * 9
    assert seen.columns["forward_ms"][1:].min() >= 5
    assert seen.columns["eval_ms"][1:].max() == 0
    assert seen.columns["data_ms"][1:].min() > 0


def test_inference_without_a_loader(tmp_path: Path) -> None:
    """Requests that come from anywhere: each step's time is its latency."""
    model = Slow().eval()
    with watching(tmp_path, model) as seen:
        session = session_of(seen)
        for _ in range(5):
            with torch.inference_mode():
                model(torch.zeros(4, 64))
            session.step()
    assert seen.steps == 5
    assert seen.columns["step_ms"][1:].min() >= 5


def test_a_training_loop_that_says_its_steps_still_evaluates(tmp_path: Path) -> None:
    """An optimizer of one's own: backward passes tell it from inference, so evaluation stays evaluation."""
    model = Slow()
    with watching(tmp_path, model) as seen:
        session = session_of(seen)
        for _ in range(2):
            model.train()
            for x, y in DataLoader(digits(32), 8):
                nn.functional.cross_entropy(model(x), y).backward()
                with torch.no_grad():
                    for parameter in model.parameters():
                        parameter -= 0.1 * parameter.grad
                        parameter.grad = None
                session.step()
            model.eval()
            with torch.no_grad():
                for x, _ in DataLoader(digits(16), 8):
                    model(x)
    assert seen.steps == 8
    assert seen.sum("samples") == 64
    assert list(np.flatnonzero(seen.columns["eval_ms"] > 1)) == [4]
    assert seen.columns["eval_ms"][4] >= 10


def test_a_phase_of_the_contract_takes_the_time(tmp_path: Path) -> None:
    """What runs inside counts into that phase."""
    with watching(tmp_path) as seen:
        session = session_of(seen)
        for _ in range(3):
            with session.phase("checkpoint"):
                time.sleep(0.01)
            session.step()
    assert seen.columns["checkpoint_ms"].min() >= 10


def test_a_phase_of_ones_own_is_other_and_a_number(tmp_path: Path) -> None:
    """Charted beside ours; even inside a phase of the contract it is that phase's no more."""
    with watching(tmp_path) as seen:
        session = session_of(seen)
        for _ in range(3):
            with session.phase("data"), session.phase("augment"):
                time.sleep(0.01)
            session.step()
        session.detach()
    assert seen.columns["other_ms"].min() >= 10
    assert np.median(seen.columns["data_ms"]) < 10
    logged = [event["values"]["augment_ms"] for event in seen.of("log")]
    assert min(logged) >= 10


def test_numbers_are_logged(tmp_path: Path) -> None:
    """Plain numbers and what becomes one; anything else is the caller's mistake, said at once."""
    with watching(tmp_path) as seen:
        session = session_of(seen)
        session.log(accuracy=0.5, lr=torch.tensor(0.1))
        with pytest.raises(ValueError, match="high"):
            session.log(accuracy="high")
    assert seen.of("log")[0]["values"] == pytest.approx({"accuracy": 0.5, "lr": 0.1})


def test_nothing_happens_where_nothing_is_monitored() -> None:
    """MONITOR=off leaves a session whose every part may be used."""
    session = Session(loader=[1, 2])
    with session.phase("augment"):
        session.step()
        session.log(a=1)
    assert list(session.loader) == [1, 2]


def train(data: Any, model: nn.Module) -> None:
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x, y in DataLoader(data, 8):
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def test_a_loop_in_a_thread(tmp_path: Path) -> None:
    """Attached here, trained there; and again in another thread after that."""
    with watching(tmp_path) as seen:
        for _ in range(2):
            thread = threading.Thread(target=train, args=(digits(64), network()))
            thread.start()
            thread.join()
    assert seen.steps == 16
    assert np.all(seen.columns["optimizer_steps"] == 1)


def test_a_cell_that_is_run_again_and_again(tmp_path: Path) -> None:
    """Each time a new model, loader and optimizer: every step is seen, and no model is kept alive.

    A model that nobody named is known from its optimizer's first step on.
    """
    models = []
    with watching(tmp_path) as seen:
        for _ in range(12):
            model = network()
            train(digits(32), model)
            models.append(weakref.ref(model))
            del model
        assert [reference() for reference in models[:-1]] == [None] * 11
    assert seen.steps == 48
    assert seen.columns["forward_ms"].reshape(12, 4)[:, 1:].min() > 0
    assert {e["name"] for e in seen.of("fact") if e["name"].startswith("model/")} <= {"model/1", "model/2"}
