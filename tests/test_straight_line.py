"""One record's whole way: real training with real workers, the real agent, the real hub, real Chromium.

Nothing is mocked. The script counts its own steps and times its own waiting; the page must say the same.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from own_processes import processes_of
from waiting import until

pytestmark = pytest.mark.browser


SCRIPT = """
import json, sys, time
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
import monitor

class Slow(Dataset):
    def __len__(self): return 1_000_000
    def __getitem__(self, index):
        time.sleep(0.004)
        return torch.randn(32), index % 10

if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    session = monitor.attach(model, name="straight line")
    print(session.url, flush=True)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Slow(), batch_size=8, num_workers=1)
    waited, began, steps, before = 0.0, time.perf_counter(), 0, time.perf_counter()
    for x, y in loader:
        got = time.perf_counter()
        waited += got - before
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        time.sleep(0.005)
        steps += 1
        before = time.perf_counter()
        if steps % 20 == 0:
            took = before - began
            truth = {"steps": steps, "samples": 8 * steps, "data_share": waited / took}
            print(json.dumps({**truth, "steps_per_s": steps / took}), flush=True)
"""


class Trainer:
    """The training process and what it says of itself."""

    def __init__(self, folder: Path) -> None:
        path = folder / "train.py"
        path.write_text(SCRIPT)
        self.log = folder / "out.txt"
        with self.log.open("w") as out:
            self.process = subprocess.Popen([sys.executable, str(path)], stdout=out, stderr=subprocess.STDOUT)
        self.url = until(lambda: re.search(r"http://\S+", self.log.read_text()), "the address")[0]

    def truth(self) -> dict[str, float]:
        """What the script measured itself, newest."""
        lines = until(
            lambda: [line for line in self.log.read_text().splitlines() if line[:1] == "{"], "steps"
        )
        found: dict[str, float] = json.loads(lines[-1])
        return found


@pytest.fixture
def trainer(tmp_path: Path, own_state: Path) -> Iterator[Trainer]:
    """A training that runs on; afterwards it and all of ours are ended."""
    started = Trainer(tmp_path)
    yield started
    started.process.kill()
    started.process.wait()
    for pid in processes_of(own_state).values():
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """A page with nothing remembered."""
    context = chromium.new_context()
    yield context.new_page()
    context.close()


def number(page: Any, tile: str) -> float | None:
    """A tile's number as a person reads it; None for a dash."""
    text = page.locator(f'[data-tile="{tile}"] .number').inner_text()
    digits = re.sub(r"[^0-9.]", "", text)
    return float(digits) if digits else None


def test_the_page_says_what_the_script_measured(trainer: Trainer, page: Any) -> None:
    """Throughput, waiting share, steps and the cause of the starvation, read from the page."""
    page.goto(trainer.url)
    until(lambda: "num_workers" in page.locator("main").inner_text(), "the finding")
    until(lambda: trainer.truth()["steps"] > 200, "some steps")
    truth = trainer.truth()
    assert number(page, "steps_per_s") == pytest.approx(truth["steps_per_s"], rel=0.25)
    assert number(page, "samples_per_s") == pytest.approx(8 * truth["steps_per_s"], rel=0.25)
    assert number(page, "data_share") == pytest.approx(100 * truth["data_share"], abs=6)
    shown = int(
        re.sub(r"\D", "", page.locator("header.strip").inner_text().split("step")[1].split("epoch")[0])
    )
    assert shown == pytest.approx(trainer.truth()["steps"], abs=3 * truth["steps_per_s"])
    assert "no GPU" in page.locator("main").inner_text()


def test_a_killed_trainer_is_shown_as_killed(trainer: Trainer, page: Any) -> None:
    """SIGKILL: the page names the signal within seconds, and never says that all is well."""
    page.goto(trainer.url)
    until(lambda: number(page, "steps_per_s"), "numbers")
    trainer.process.kill()
    trainer.process.wait()
    text = until(
        lambda: "SIGKILL" in page.locator("body").inner_text() and page.locator("body").inner_text(),
        "SIGKILL",
    )
    assert "running" not in page.locator("header.strip").inner_text()
    assert "killed" in text


def test_a_hub_that_was_killed_comes_back_with_nothing_missing(
    trainer: Trainer, page: Any, own_state: Path
) -> None:
    """kill -9 of the hub: the agent starts it anew, at the same address, and resends what it missed."""
    page.goto(trainer.url)
    until(lambda: number(page, "steps_per_s"), "numbers")
    os.kill(processes_of(own_state)["serve"], signal.SIGKILL)
    before = trainer.truth()["steps"]
    until(lambda: trainer.truth()["steps"] > before + 100, "more steps")
    trainer.process.terminate()
    trainer.process.wait()
    run = next((Path(os.environ["MONITOR_RUN_DIR"])).iterdir())
    command = [sys.executable, "-m", "monitor", "report", str(run), "--json", "-"]

    def report() -> Any:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = json.loads(done.stdout) if done.returncode == 0 else {}
        return found if found.get("status") == "killed" else None

    found = until(report, "the end")
    assert found["steps"] >= trainer.truth()["steps"]
    assert found["dropped_records"] == 0


def test_a_killed_agent_leaves_the_training_alone(trainer: Trainer, page: Any, own_state: Path) -> None:
    """kill -9 of the agent: the training steps on, and the page says that the data has stopped."""
    page.goto(trainer.url)
    until(lambda: number(page, "steps_per_s"), "numbers")
    os.kill(processes_of(own_state)["agent"], signal.SIGKILL)
    before = trainer.truth()["steps"]
    until(lambda: trainer.truth()["steps"] > before + 50, "more steps")
    until(
        lambda: re.search("agent|no new data|stale", page.locator("body").inner_text(), re.I),
        "a word about it",
    )
