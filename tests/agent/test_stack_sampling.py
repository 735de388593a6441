"""A few stacks of what no phase claims: enough to name a slow log line, too few to cost anything."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monitor.agent import stack_sampling, stacks
from monitor.agent.follow import Followed
from monitor.agent.stack_sampling import StackSampler
from monitor.agent.stacks import Frame, Thread
from monitor.batch import Block
from monitor.tape.reader import Live

SITE = "/usr/lib/python3.11/site-packages/"
LINE = Frame("/me/train.py", 7, "main")


class Played:
    """A sampler beside one rank, with made-up dumps and a clock that is handed in."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.now_s, self.rates, self.frames, self.why = 1000.0, [], (LINE,), None
        self.file = folder / "rank-0-1.tape"
        self.tape = Followed(0, 1, 0, 0, 1, 0, None, self.file)  # type: ignore[arg-type]
        self.enter("other")
        monkeypatch.setattr(stack_sampling.time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(stack_sampling, "Recording", self.record)
        self.sampler = StackSampler()

    @property
    def taken(self) -> int:
        """Stacks so far."""
        return sum(self.rates)

    def record(self, pid: int, seconds: int, rate: int) -> Played:
        self.rates.append(seconds * rate)
        return self

    def done(self) -> bool:
        return True

    def result(self) -> tuple[list[tuple[Thread, int]], str | None]:
        if self.why:
            return [], self.why
        return [(Thread("MainThread", 1, True, True, self.frames), self.rates[-1])], None

    def drop(self) -> None:
        pass

    def enter(self, phase: str) -> None:
        self.tape.live = Live(phase, 0, 10, 0, False, 0)

    def steps(self, share: float, count: int = 100) -> None:
        """So many steps of 10 ms with this share of unclaimed time."""
        columns = {"other_ms": array("f", [10 * share] * count), "step_ms": array("f", [10.0] * count)}
        self.sampler.add_steps(self.tape, Block("rank/0", 0, array("d", [0.0] * count), columns))

    def run(self, seconds: float) -> list[dict[str, Any]]:
        """Look four times a second for so long."""
        events = []
        for _ in range(int(seconds * 4)):
            self.now_s += 0.25
            events += self.sampler.sample(self.tape)
        return events


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Played:
    return Played(monkeypatch, tmp_path)


def test_a_loop_that_claims_its_time_is_left_alone(played: Played) -> None:
    """Up to 15 % unclaimed: no stack is taken."""
    played.steps(0.14)
    played.run(60)
    assert played.taken == 0


def test_recent_steps_count(played: Played) -> None:
    """When the time is claimed again, sampling ends."""
    played.steps(0.5)
    played.run(2)
    before = played.taken
    played.steps(0.0, count=1000)
    played.run(60)
    assert before > 0
    assert played.taken == before


def test_eighty_stacks_in_the_first_minute_then_six_a_minute(played: Played) -> None:
    """Many at first, for runs that are short; few later, for those that are long."""
    played.steps(0.5)
    played.run(59)
    first = played.taken
    played.run(300)
    assert first == 80
    assert played.taken - first <= 30


def test_a_closed_tape_is_left_alone(played: Played) -> None:
    """After detach nothing is recorded."""
    played.steps(0.5)
    played.tape.live = Live("other", 0, 10, 0, True, 0)
    played.run(30)
    assert played.taken == 0


def test_the_event_names_lines_with_their_source(played: Played, tmp_path: Path) -> None:
    """File, line, text of the line, the function that is on top, and how often."""
    script = tmp_path / "train.py"
    script.write_text("import x\n    sink.log(loss)\n")
    played.frames = (Frame("/usr/lib/python3.11/socket.py", 700, "sendall"), Frame(str(script), 2, "train"))
    played.steps(0.5)
    event = played.run(20)[-1]
    assert (event["kind"], event["rank"]) == ("other_stack", 0)
    assert event["frames"] == [
        {
            "file": str(script),
            "line": 2,
            "func": "train",
            "source": "sink.log(loss)",
            "leaf_func": "sendall",
            "leaf_file": "/usr/lib/python3.11/socket.py",
            "step_source": "",
            "count": event["total"],
        }
    ]


def test_the_line_at_which_the_function_that_trains_stood(played: Played, tmp_path: Path) -> None:
    """It is known once that function was seen to train: a generator's own line does not say who waits."""
    script = tmp_path / "train.py"
    script.write_text("for x in batches():\n    loss.backward()\n\ntime.sleep(1)\n")
    loop, made = Frame(str(script), 1, "train"), Frame(str(script), 4, "batches")
    played.frames = (made, loop)
    played.steps(0.5)
    assert played.run(4)[-1]["frames"][0]["step_source"] == ""
    played.frames = (Frame(f"{SITE}torch/autograd/graph.py", 1, "f"), Frame(str(script), 2, "train"))
    played.run(3)
    played.frames = (made, loop)
    frames = played.run(20)[-1]["frames"]
    assert [frame["step_source"] for frame in frames] == ["", "for x in batches():"]
    assert {frame["source"] for frame in frames} == {"time.sleep(1)"}


def test_stacks_inside_modules_are_counted_apart(played: Played) -> None:
    """They are of a forward pass, wherever its time stands."""
    played.frames = (Frame(f"{SITE}torch/nn/modules/module.py", 1, "f"), LINE)
    played.steps(0.5)
    event = played.run(20)[-1]
    assert event["in_modules"] == event["total"]


@pytest.mark.parametrize(
    "file", ["torch/utils/data/dataloader.py", "torch/autograd/graph.py", "torch/optim/sgd.py"]
)
def test_a_stack_of_a_claimed_phase_does_not_count(played: Played, file: str) -> None:
    """The rank went on between the look at its phase and the stack."""
    played.frames = (Frame(f"{SITE}torch/{file}", 1, "f"), LINE)
    played.steps(0.5)
    assert played.run(30) == []
    assert played.taken > 10


def test_an_event_every_five_seconds_and_only_with_news(played: Played) -> None:
    """Nothing new, nothing told."""
    played.steps(0.5)
    told = played.run(30)
    totals = [event["total"] for event in told]
    assert 1 <= len(told) <= 3
    assert totals == sorted(set(totals))
    assert played.run(20) == []


def test_the_most_frequent_come_first_and_their_number_is_bounded(played: Played) -> None:
    """Ten places are told of, however many there are; the sum counts all."""
    played.steps(0.5)
    for line in range(50):
        played.frames = (Frame("/me/train.py", line % 25, "f"),)
        played.run(60)
    event = played.run(70)[-1]
    counts = [frame["count"] for frame in event["frames"]]
    assert len(counts) == stack_sampling.TOP_LOCATIONS
    assert counts == sorted(counts, reverse=True)
    assert event["total"] > sum(counts)


def test_without_permission_it_hardly_tries(played: Played) -> None:
    """Refused once, the next attempt comes a minute later."""
    played.why = "Permission denied"
    played.steps(0.5)
    played.run(55)
    assert len(played.rates) == 1


def test_what_was_not_told_comes_at_the_end(played: Played) -> None:
    """A run that ends within five seconds of the last event loses nothing."""
    played.steps(0.5)
    while len(played.rates) < 2:
        played.run(0.25)
    (event,) = played.sampler.forget(played.tape)
    assert event["total"] == 60
    assert played.sampler.forget(played.tape) == []


def test_a_relative_file_is_found_from_the_working_folder(
    played: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python may know the script by the name it was started with."""
    (tmp_path / "t.py").write_text("print(loss.item())\n")
    monkeypatch.setattr(stack_sampling, "working_folder", lambda pid: str(tmp_path))
    played.frames = (Frame("t.py", 1, "f"),)
    played.steps(0.5)
    assert played.run(10)[-1]["frames"][0]["source"] == "print(loss.item())"


@pytest.mark.skipif(stacks.find_program() is None, reason="needs py-spy")
def test_a_real_trainer_that_logs_slowly(train: Callable[..., Any], agent: Any, sink: Any) -> None:
    """The line that takes the time outside every phase is named while it runs."""
    train(steps=None, step_s=0.02, ready_at=20, between="other", shares={"other": 18.0, "forward": 2.0})
    event = sink.first("other_stack")
    sources = [frame["source"] for frame in event["frames"]]
    assert 'time.sleep(plan.get("step_s", 0.001))' in sources
