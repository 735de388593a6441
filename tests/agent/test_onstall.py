"""What is done about a stall that lasts: only what was asked for, and only to what stands still."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from waiting import until

from monitor.agent import onstall, proc, stacks
from monitor.agent.onstall import ABORT, DUMP, OnStall, send, written
from monitor.agent.stacks import Frame
from monitor.agent.stalls import Lasting

Train = Callable[..., Any]

pytestmark = pytest.mark.skipif(stacks.find_program() is None, reason="needs py-spy")


@pytest.fixture
def acting(make_agent: Callable[..., Any], tmp_path: Path) -> Iterator[Callable[..., None]]:
    """`acting(action, grace_s)` starts an agent that acts; half a second without a step is a stall."""
    made: list[tuple[Any, threading.Thread]] = []

    def start(action: str | None, grace_s: float = 0.5) -> None:
        agent = make_agent(stall_after_s=0.5, on_stall=OnStall(action, grace_s, tmp_path / "run"))
        thread = threading.Thread(target=agent.run)
        thread.start()
        made.append((agent, thread))

    yield start
    for agent, thread in made:
        agent.stop()
        thread.join(10)


def test_a_dump_lies_beside_the_run(train: Train, acting: Any, sink: Any, tmp_path: Path) -> None:
    """Every stack in one file, named in the event, once; the rank goes on hanging as it likes."""
    acting(DUMP)
    trainer = train(steps=20, phase="backward", end="hang event")
    done = sink.first("on_stall")
    text = Path(done["file"]).read_text()
    assert Path(done["file"]) == tmp_path / "run" / "stall-rank-0-step-20.txt"
    assert "in backward, after step 20" in text
    assert "in event\n" in text
    assert "Cause: waits for a lock" in text
    assert done["file"] in sink.events("warn")[-1]["text"]
    until(lambda: len(sink.events("stall")) >= 3, "its third stall event")
    assert (len(sink.events("on_stall")), trainer.poll()) == (1, None)


def test_an_abort_ends_the_rank_and_keeps_its_trace(train: Train, acting: Any, sink: Any) -> None:
    """SIGABRT after the dump; the end says why, and where every thread was."""
    acting(ABORT)
    trainer = train(steps=20, end="hang sleeping", faults=True)
    end = sink.first("rank_end")
    assert trainer.wait(10) == -signal.SIGABRT
    assert end["reason"].startswith("killed by SIGABRT: ended by on_stall=abort after ")
    assert "in sleeping" in end["trace"]
    assert (end["function"], end["location"].partition(":")[0].endswith("hangs.py")) == ("sleeping", True)
    assert "it is ended" in sink.events("on_stall")[0]["text"]


def test_who_does_not_heed_it_is_killed(
    train: Train, acting: Any, sink: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rank that ignores SIGABRT gets SIGKILL, and its end says the same."""
    monkeypatch.setattr(onstall, "KILL_S", 0.3)
    acting(ABORT)
    trainer = train(steps=20, end="hang deaf")
    end = sink.first("rank_end")
    assert trainer.wait(10) == -signal.SIGKILL
    assert "ended by on_stall=abort" in end["reason"]


def test_a_hung_worker_goes_with_its_rank(train: Train, acting: Any, sink: Any) -> None:
    """It would outlive the rank, and hold its terminal and its memory."""
    acting(ABORT, 5.0)  # it takes a while until the worker is there and hangs
    train(steps=20, phase="data", end="hang worker")
    sink.first("on_stall")
    workers = [worker["pid"] for stall in sink.events("stall") for worker in stall["workers"]]
    sink.first("rank_end")
    assert workers
    until(lambda: not any(_lives(pid) for pid in workers), "the end of its workers")


def _lives(pid: int) -> bool:
    found = proc.stat(pid)
    return found is not None and found.state not in "ZX"


def test_who_is_held_by_a_person_is_spared(train: Train, acting: Any, sink: Any) -> None:
    """SIGSTOP is somebody's wish: nothing is done, however long it lasts."""
    acting(ABORT, 0.2)
    trainer = train(steps=None, step_s=0.02, ready_at=5)
    trainer.send_signal(signal.SIGSTOP)
    until(lambda: len(sink.events("stall")) >= 2, "its second stall event")
    assert sink.events("stall")[-1]["cause_code"] == "stopped"
    assert sink.events("on_stall") == []
    trainer.send_signal(signal.SIGCONT)
    sink.first("stall_over")
    assert trainer.poll() is None


class Scene:
    """A rank whose stall is what a test says, and a clock in its hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, action: str | None = DUMP) -> None:
        self.now_ns, self.excused_ns = 10**12, 0
        monkeypatch.setattr(onstall.time, "perf_counter_ns", lambda: self.now_ns)
        self.path, self.rank, self.pid, self.start_ticks = tmp_path / "t", 0, os.getpid(), 0
        self.stall: Lasting | None = Lasting(1, 2, Frame("t.py", 3, "f"))
        self.cause, self.live, self.world_size = "lock", SimpleNamespace(closed=False), 1
        self.acting = OnStall(action, 10.0, tmp_path)

    def lasting(self, _: Any) -> Lasting | None:
        return self.stall

    def current(self, _: Any) -> dict[str, Any]:
        return SEEN | {"cause_code": self.cause}

    def after(self, seconds: float) -> list[str]:
        self.now_ns += int(seconds * 1e9)
        return [event["kind"] for event in self.acting.act_if_due(self, self)]  # type: ignore[arg-type]


WORKER = {"pid": 5, "threads": [{"name": "", "frames": [{"file": "w.py", "line": 1, "func": "g"}]}]}
SEEN: dict[str, Any] = {
    "rank": 0, "step": 7, "phase": None, "for_s": 15.0, "cause": "…", "location": None,
    "why_no_stack": "gone", "threads": [], "workers": [WORKER],
}  # fmt: skip


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scene:
    return Scene(monkeypatch, tmp_path)


def test_nothing_before_the_grace_is_over(scene: Scene) -> None:
    """It is counted from the moment that the stall was told, and nothing is done twice."""
    told = [scene.after(seconds) for seconds in (0.0, 9.0, 1.1, 100.0)]
    assert told == [[], [], ["on_stall", "warn"], []]


def test_what_moves_is_given_its_time_anew(scene: Scene) -> None:
    """Another line, another phase, another step: the grace begins again."""
    scene.after(0.0)
    told = []
    for line in range(5):
        scene.stall = Lasting(1, 2, Frame("t.py", line, "f"))
        told += scene.after(9.0)
    scene.stall = None
    told += scene.after(9.0)
    scene.stall = Lasting(1, 2, None)
    assert (told, scene.after(5.0), scene.after(11.0)) == ([], [], ["on_stall", "warn"])


def test_a_machine_that_stood_still_blames_nobody(scene: Scene) -> None:
    """After a pause of the whole machine the grace begins again."""
    scene.after(0.0)
    scene.excused_ns = scene.now_ns + 60 * 10**9
    assert (scene.after(61.0), scene.after(10.0)) == ([], ["on_stall", "warn"])


@pytest.mark.parametrize("cause", sorted(onstall.SPARED))
def test_some_causes_are_spared(scene: Scene, cause: str) -> None:
    """A person at a debugger, or a process that somebody stopped, is left alone for good."""
    scene.cause = cause
    assert [scene.after(11.0) for _ in range(4)] == [[]] * 4


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Signals that would have been sent."""
    found: list[int] = []
    monkeypatch.setattr(onstall, "send", lambda _pid, _ticks, number: bool(found.append(number)) or True)
    return found


def another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scene:
    """A rank that the agent is no part of, which is to be ended."""
    scene = Scene(monkeypatch, tmp_path, ABORT)
    scene.pid = 2**22 + 1
    return scene


class Worked:
    """CPU seconds and bytes of a rank, told by a test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cpu_s, self.moved = 0.0, 0
        monkeypatch.setattr(onstall, "_work", lambda _pid: (self.cpu_s, self.moved))


@pytest.mark.parametrize(
    ("cause", "cpu_s", "moved", "spared"),
    [
        ("busy", 10.0, 0, True),
        ("busy", 1.0, 0, False),
        ("lock", 10.0, 0, False),
        ("disk", 0.0, 50_000_000, True),
        ("lock", 0.0, 50_000_000, True),
        ("disk", 0.0, 100_000, False),
        ("collective", 10.0, 50_000_000, False),
    ],
)
def test_who_is_at_work_is_not_ended_soon(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sent: list[int], cause: str, cpu_s: float, moved: int,
    spared: bool,
) -> None:  # fmt: skip
    """One line may compute or write for minutes: it gets ten times the grace, and is then ended as well."""
    scene, work = another(monkeypatch, tmp_path), Worked(monkeypatch)
    scene.cause = cause
    scene.after(0.0)
    work.cpu_s, work.moved = cpu_s, moved
    assert bool(scene.after(11.0)) is not spared
    assert len(sent) == (0 if spared else 1)
    if spared:
        assert (scene.after(80.0), bool(scene.after(10.0)), len(sent)) == ([], True, 1)


def test_a_wait_for_a_rank_that_goes_on_is_no_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sent: list[int]
) -> None:
    """Rank 0 saves while the others wait for it: they are not ended for that, but they are if it hangs."""
    other, scene, work = another(monkeypatch, tmp_path), another(monkeypatch, tmp_path), Worked(monkeypatch)
    other.path, other.acting, other.stall = tmp_path / "rank-0", scene.acting, None
    other.after(0.0)
    scene.cause = "collective"
    scene.after(0.0)
    assert scene.after(11.0) == []
    scene.stall = Lasting(5, 6, None)  # it goes on, and waits again, this time for one that writes slowly
    other.stall = Lasting(5, 6, None)
    scene.after(0.0)
    other.after(0.0)
    work.moved = 50_000_000
    assert scene.after(11.0) == []
    scene.stall = other.stall = Lasting(7, 8, None)  # and now for one that hangs
    other.after(0.0)
    scene.after(0.0)
    assert scene.after(11.0)
    assert sent


@pytest.mark.parametrize(("ranks", "spared"), [(1, True), (2, False)])
def test_a_wait_for_a_gpu_is_no_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sent: list[int], ranks: int, spared: bool
) -> None:
    """It spins: with several ranks it may be for one that never comes."""
    scene, work = another(monkeypatch, tmp_path), Worked(monkeypatch)
    monkeypatch.setattr(proc, "holds_gpu", lambda _pid: True)
    scene.cause, scene.world_size = "busy", ranks
    scene.after(0.0)
    work.cpu_s = 10.0
    scene.after(11.0)
    assert bool(sent) is not spared


def test_a_rank_that_computes_lives(
    train: Train, acting: Any, sink: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merely slow: told as a stall, and left alone."""
    monkeypatch.setattr(onstall, "WORK_CPU", 0.01)  # other tests may have the CPUs
    monkeypatch.setattr(onstall, "AT_WORK", 1000.0)
    acting(ABORT, 0.3)
    trainer = train(steps=20, end="hang busy")
    sink.first("stall")
    until(lambda: len(sink.events("stall")) >= 3, "its third stall event")
    assert trainer.poll() is None
    assert sink.events("on_stall") == []


def test_off_is_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody asked: nothing is done and nothing written."""
    scene = Scene(monkeypatch, tmp_path, None)
    assert [scene.after(100.0) for _ in range(3)] == [[]] * 3
    assert list(tmp_path.iterdir()) == []


def test_an_agent_does_not_end_its_own_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where it runs as a thread of the training, nobody would be left to tell: it dumps."""
    scene = Scene(monkeypatch, tmp_path, ABORT)
    scene.after(0.0)
    assert scene.after(11.0) == ["on_stall", "warn"]


def test_a_disk_that_takes_nothing_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No file, and why."""
    (tmp_path / "file").touch()
    scene = Scene(monkeypatch, tmp_path)
    scene.acting = OnStall(DUMP, 0.0, tmp_path / "file")
    (event, _) = scene.acting.act_if_due(scene, scene)  # type: ignore[arg-type]
    assert event["file"] is None
    assert "its stacks cannot be written" in event["text"]


def test_a_later_process_of_the_same_id_gets_no_signal() -> None:
    """The start time tells them apart."""
    with subprocess.Popen(["sleep", "60"]) as process:
        found = proc.stat(process.pid)
        assert found is not None
        assert not send(process.pid, found.start_ticks + 1, signal.SIGKILL)
        assert process.poll() is None
        assert send(process.pid, found.start_ticks, signal.SIGKILL)
    assert not send(process.pid, found.start_ticks, signal.SIGKILL)


def test_the_file_is_for_a_person() -> None:
    """Who, where, why; then each thread as a traceback reads, innermost call last."""
    assert written(SEEN, 42).splitlines() == [
        "No step for 15 s: rank 0 (pid 42), in no phase, after step 7",
        "Cause: …",
        "No stack: gone",
        "",
        "worker (pid 5), thread without a name:",
        '  File "w.py", line 1, in g',
    ]
