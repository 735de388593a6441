"""Real trainers that hang in every way, watched by a real agent; and those that are only slow."""

from __future__ import annotations

import signal
import threading
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from monitor.agent import stacks, stall_causes, stalls
from monitor.agent.follow import Follower
from monitor.agent.stacks import Frame, Stacks, Thread
from monitor.agent.stalls import Stalls
from monitor.batch import Block
from monitor.schema import TAPE_METRICS
from monitor.tape.layout import GAVE_UP, LIVE_CLOSED
from monitor.tape.writer import TapeWriter

Train = Callable[..., Any]

needs_py_spy = pytest.mark.skipif(stacks.find_program() is None, reason="needs py-spy")


@pytest.fixture
def watching(make_agent: Callable[..., Any]) -> Iterator[threading.Thread]:
    """An agent that calls half a second without a step a stall."""
    made = make_agent(stall_after_s=0.5)
    thread = threading.Thread(target=made.run)
    thread.start()
    yield thread
    made.stop()
    thread.join(10)


def _told(sink: Any) -> tuple[str, str]:
    """Cause and function of the newest stall."""
    stall = sink.events("stall")[-1]
    return stall["cause_code"], stall["function"]


@needs_py_spy
@pytest.mark.parametrize(
    ("hang", "phase", "code", "function"),
    [
        ("event", "backward", "lock", "event"),
        ("reading", "other", "socket", "reading"),
        ("sleeping", "other", "sleep", "sleeping"),
        ("frozen", "other", "frozen", "frozen"),
        ("worker", "data", "worker_hung", "dead_mount"),
        ("workers_locked", "data", "workers_locked", "shared_lock"),
        ("loading", "data", "loader", "dead_mount"),
    ],
)
def test_every_way_to_hang(
    train: Train, watching: Any, sink: Any, hang: str, phase: str, code: str, function: str
) -> None:
    """The phase, the cause and the user's own line, while it hangs."""
    train(steps=20, phase=phase, end=f"hang {hang}")
    sink.first("stall")
    # The first look may come while torch is still being imported: its loader too, and that takes seconds.
    until(lambda: _told(sink) == (code, function), lambda: str(sink.events("stall")))
    stall = sink.events("stall")[-1]
    assert (stall["phase"], stall["step"], stall["cause_code"], stall["function"]) == (
        phase,
        20,
        code,
        function,
    )
    assert "hangs.py:" in stall["location"]


@pytest.mark.parametrize(
    ("hang", "phase", "code", "function"),
    [("event", "backward", "lock", "event"), ("worker", "data", "worker_hung", "dead_mount")],
)
def test_where_nobody_may_look_it_is_asked(
    train: Train, watching: Any, sink: Any, monkeypatch: pytest.MonkeyPatch, hang: str, phase: str, code: str,
    function: str,
) -> None:  # fmt: skip
    """Without py-spy the rank and its forked workers answer a signal: the same phase, cause and line."""
    monkeypatch.setattr(stacks, "find_program", lambda: None)
    trainer = train(steps=20, phase=phase, end=f"hang {hang}", faults=True)
    until(lambda: sink.events("stall") and _told(sink) == (code, function), lambda: str(sink.events("stall")))
    stall = sink.events("stall")[-1]
    assert (stall["phase"], stall["function"], stall["why_no_stack"]) == (phase, function, None)
    assert "hangs.py:" in stall["location"]
    assert trainer.poll() is None


def test_without_any_stack_the_reasons_are_told(
    train: Train, watching: Any, sink: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rank that registered nothing gets no signal; both reasons stand there, and what the kernel knows."""
    monkeypatch.setattr(stacks, "find_program", lambda: None)
    trainer = train(steps=20, end="hang sleeping")
    stall = sink.first("stall")
    assert stall["cause_code"] == "unknown"
    assert "py-spy is not installed" in stall["cause"]
    assert trainer.poll() is None


@needs_py_spy
def test_a_stopped_process(train: Train, watching: Any, sink: Any) -> None:
    """SIGSTOP is named; SIGCONT clears the stall."""
    trainer = train(steps=None, step_s=0.02, ready_at=5)
    trainer.send_signal(signal.SIGSTOP)
    stall = sink.first("stall")
    trainer.send_signal(signal.SIGCONT)
    over = sink.first("stall_over")
    assert stall["cause_code"] == "stopped"
    assert over["for_s"] >= 0.5


@needs_py_spy
def test_a_stall_says_since_when_and_what_was_usual(train: Train, watching: Any, sink: Any) -> None:
    """In seconds of the run: the last step's end, before the event; and the run's own pace beside it."""
    train(steps=50, step_s=0.01, end="hang sleeping")
    stall = sink.first("stall")
    last = sink.rows("rank/0")["t_s"][-1]
    assert stall["since_s"] == pytest.approx(last, abs=0.001)
    assert stall["t_s"] - stall["since_s"] == pytest.approx(stall["for_s"], abs=0.5)
    assert (stall["threshold_s"], stall["usual_step_ms"]) == (0.5, 9.0)
    assert stall["source"] == "time.sleep(60)"


@needs_py_spy
def test_a_stall_is_told_again_at_doubling_intervals(train: Train, watching: Any, sink: Any) -> None:
    """Once when it begins, then at twice the time and so on; over when the rank dies."""
    trainer = train(steps=20, end="hang sleeping")
    until(lambda: len(sink.events("stall")) >= 3, "its third stall event")
    trainer.kill()
    sink.first("rank_end")
    told = sink.events("stall")
    assert [stall["again"] for stall in told[:3]] == [False, True, True]
    assert told[1]["for_s"] >= 2 * told[0]["for_s"] - 0.1
    assert told[2]["for_s"] >= 2 * told[1]["for_s"] - 0.1
    assert len({stall["since_s"] for stall in told}) == 1
    assert len(sink.events("stall_over")) == 1


@needs_py_spy
def test_threads_and_workers_are_in_the_event(train: Train, watching: Any, sink: Any) -> None:
    """Every thread of the rank, and its loader workers with their own stacks."""
    train(steps=20, phase="data", end="hang worker")
    until(lambda: sink.events("stall") and _told(sink)[1] == "dead_mount", lambda: str(sink.events("stall")))
    stall = sink.events("stall")[-1]
    (worker,) = stall["workers"]
    assert worker["function"] == "dead_mount"
    assert stall["threads"][0]["frames"][0].keys() == {"file", "line", "func"}


@needs_py_spy
def test_the_rank_that_others_wait_for(train: Train, watching: Any, sink: Any, tmp_path: Path) -> None:
    """Two ranks over gloo: one is inside a collective, the other is not; the waiting one says for whom."""
    env = {"RENDEZVOUS": str(tmp_path / "rendezvous")}
    for rank in (0, 1):
        train(rank=rank, world_size=2, steps=20, end="hang all_reduce", env={**env, "RANK": str(rank)})

    def newest(rank: int) -> dict[str, Any]:
        return ([{}] + [stall for stall in sink.events("stall") if stall["rank"] == rank])[-1]

    until(lambda: newest(1).get("function") == "sleeping" and newest(0).get("waits_for"), "both stalls")
    stall = newest(0)
    assert (stall["cause_code"], stall["waits_for"], stall["function"]) == ("collective", [1], "all_reduce")


@pytest.mark.parametrize("how", ["eval moving", "eval still", "checkpoint still", "forward moving"])
def test_slow_is_no_stall(train: Train, watching: Any, sink: Any, how: str) -> None:
    """Two seconds of evaluating, of saving, or of going from phase to phase raise nothing at 0.5 s."""
    train(steps=20, end=f"slow {how}").wait()
    sink.first("rank_end")
    assert sink.events("stall") == []


# Below, time is handed in: what would take minutes.


def waiting(*files: str) -> stall_causes.Seen:
    """A process that sleeps with these files on its main thread's stack."""
    frames = tuple(Frame(file, 7, "f") for file in files)
    return stall_causes.Seen(Stacks(1, (Thread("MainThread", 1, False, False, frames),)), "S")


class Clocked:
    """One rank in a process that lives, whose last step lies as far back as a test wants."""

    def __init__(self, spool: Path, monkeypatch: pytest.MonkeyPatch, after_s: float | None = None) -> None:
        self.now_ns = 10**12
        monkeypatch.setattr(stalls.time, "perf_counter_ns", lambda: self.now_ns)
        monkeypatch.setattr(stalls, "_cpu_s", lambda pid: self.cpu_s)
        monkeypatch.setattr(stall_causes, "inspect_processes", lambda pids, *_: [self.seen for _ in pids])
        self.cpu_s = 0.0
        self.seen = stall_causes.Seen(
            Stacks(1, (Thread("MainThread", 1, False, False, (Frame("/me/t.py", 7, "f"),)),)), "S"
        )
        self.tape = TapeWriter(f"{spool}/rank-0-1.tape", rank=0, world_size=1, local_rank=0)
        self.follower = Follower(spool, 0)
        (self.followed,) = self.follower.scan()
        self.stalls = Stalls(lambda rank: [], after_s)
        self.enter(-1)

    def enter(self, phase: int) -> None:
        self.tape.live[0], self.tape.live[1] = phase, self.now_ns

    def step(self, seconds: float, **phases_ms: float) -> None:
        """One step that took so long."""
        self.now_ns += int(seconds * 1e9)
        values = [0.0 if metric.tape == "f64" else 0 for metric in TAPE_METRICS]
        self.tape.append(self.now_ns, values)
        self.check()
        columns = {"step_ms": seconds * 1e3, "eval_ms": 0.0, "checkpoint_ms": 0.0, **phases_ms}
        steps = self.tape.live[2]
        block = Block(
            "rank/0", steps - 1, array("d", [0.0]), {k: array("f", [v]) for k, v in columns.items()}
        )
        self.stalls.saw(self.followed, block)

    def check(self) -> list[str]:
        self.follower.poll(self.followed)
        return [event["kind"] for event in self.stalls.check(self.followed)]

    def after(self, seconds: float) -> list[str]:
        """What is told when so much more time has passed."""
        self.now_ns += int(seconds * 1e9)
        return self.check()


@pytest.fixture
def clocked(spool: Path, monkeypatch: pytest.MonkeyPatch) -> Clocked:
    return Clocked(spool, monkeypatch)


def test_the_floor(clocked: Clocked) -> None:
    """Quick steps: five seconds without one is a stall, and not four."""
    for _ in range(10):
        clocked.step(0.1)
    assert [clocked.after(4.0), clocked.after(1.1), clocked.after(1.0)] == [[], ["stall"], []]


def test_slow_steps_are_given_longer(clocked: Clocked) -> None:
    """Steps of ten seconds: thirty are allowed."""
    for _ in range(3):
        clocked.step(10.0)
    assert [clocked.after(25.0), clocked.after(6.0)] == [[], ["stall"]]


def test_the_first_step_is_given_two_minutes(clocked: Clocked) -> None:
    """Compiling, downloading, filling caches: nobody has a history yet. But not for ever."""
    clocked.check()
    first = clocked.followed.tape.header.mono_ns
    clocked.now_ns = first
    assert [clocked.after(115.0), clocked.after(10.0)] == [[], ["stall"]]


def test_a_slow_first_step_teaches_nothing(clocked: Clocked) -> None:
    """A minute of compiling is no reason to wait three minutes later."""
    clocked.step(60.0)
    clocked.step(0.1)
    assert clocked.after(5.1) == ["stall"]


def test_a_checkpoint_that_was_seen_is_expected(clocked: Clocked) -> None:
    """Saving took 20 s once, a thousand steps ago: 50 s of it are no stall, 65 are."""
    clocked.step(0.1)
    clocked.step(20.0, checkpoint_ms=20_000.0)
    for _ in range(1100):
        clocked.step(0.01)
    clocked.enter(6)
    assert [clocked.after(50.0), clocked.after(15.0)] == [[], ["stall"]]


def test_evaluating_may_take_as_long_as_it_moves(clocked: Clocked) -> None:
    """Batch after batch of evaluation for ten minutes; then half a minute of standing still."""
    clocked.step(0.1)
    clocked.step(0.1)
    told = []
    for _ in range(600):
        clocked.enter(7)
        told += clocked.after(1.0)
    assert (told, clocked.after(31.0)) == ([], ["stall"])


def test_a_main_thread_that_computes_is_given_longer(clocked: Clocked) -> None:
    """Work of the user's own between two steps: three times the threshold."""
    clocked.step(0.1)
    clocked.step(0.1)
    clocked.cpu_s = 20.0
    assert [clocked.after(14.0), clocked.after(2.0)] == [[], ["stall"]]


def test_a_compiler_at_work_is_no_stall(clocked: Clocked) -> None:
    """A new shape is compiled in the middle of the run for a minute."""
    frames = (Frame("/x/site-packages/torch/_inductor/compile_fx.py", 1, "f"), Frame("/me/t.py", 7, "f"))
    still, clocked.seen = (
        clocked.seen,
        stall_causes.Seen(Stacks(1, (Thread("MainThread", 1, False, False, frames),)), "S"),
    )
    clocked.step(0.1)
    clocked.step(0.1)
    told = [clocked.after(6.0) for _ in range(10)]
    clocked.seen = still
    assert (told, clocked.after(6.0)) == ([[]] * 10, ["stall"])


def test_the_user_s_own_threshold_holds(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set to 20 s it is 20 s, whatever the steps take."""
    clocked = Clocked(spool, monkeypatch, after_s=20.0)
    for _ in range(3):
        clocked.step(0.1)
    assert [clocked.after(19.0), clocked.after(1.1)] == [[], ["stall"]]


def test_an_agent_that_was_not_let_run_raises_nothing(clocked: Clocked) -> None:
    """Late by more than two seconds, it gives everybody their time anew."""
    for _ in range(3):
        clocked.step(0.1)
    clocked.now_ns += 60 * 10**9
    clocked.stalls.late(60.0)
    assert [clocked.check(), clocked.after(4.0), clocked.after(1.1)] == [[], [], ["stall"]]


def test_a_machine_that_slept_raises_nothing(clocked: Clocked, monkeypatch: pytest.MonkeyPatch) -> None:
    """A laptop's lid: the clock that counts sleep runs ahead of the one that does not."""
    for _ in range(3):
        clocked.step(0.1)
    clocked.now_ns += 4 * 10**9
    monkeypatch.setattr(stalls, "_asleep_s", lambda: clocked.stalls._asleep_s + 3600.0)
    clocked.stalls.late(0.0)
    assert [clocked.after(4.0), clocked.after(1.1)] == [[], ["stall"]]


def test_a_step_clears_the_stall(clocked: Clocked) -> None:
    """The next step, and nothing else, is its end."""
    for _ in range(3):
        clocked.step(0.1)
    clocked.after(6.0)
    clocked.tape.append(clocked.now_ns, [0.0 if metric.tape == "f64" else 0 for metric in TAPE_METRICS])
    assert [clocked.check(), clocked.check()] == [["stall_over"], []]


def test_a_recorder_that_gave_up_stalls_nobody(clocked: Clocked) -> None:
    """Its training goes on unseen: nothing is raised, and what was raised is taken back."""
    clocked.step(0.1)
    clocked.step(0.1)
    clocked.tape.live[LIVE_CLOSED] = GAVE_UP
    quiet = clocked.after(1000.0)
    clocked.tape.live[LIVE_CLOSED] = 0
    told = clocked.after(10.0)
    clocked.tape.live[LIVE_CLOSED] = GAVE_UP
    assert (quiet, told, clocked.after(1.0)) == ([], ["stall"], ["stall_over"])


def test_a_closed_tape_stalls_nobody(clocked: Clocked) -> None:
    """After detach there is nothing to wait for."""
    clocked.step(0.1)
    clocked.tape.close()
    assert clocked.after(1000.0) == []


def test_whom_a_collective_waits_for(clocked: Clocked, spool: Path) -> None:
    """Ranks that have ended, or stand elsewhere; those in the same collective are not blamed."""
    others = []
    for rank, cause in ((1, "collective"), (2, "worker_hung"), (3, "")):
        TapeWriter(f"{spool}/rank-{rank}-9.tape", rank=rank, world_size=4, local_rank=rank)
        (other,) = clocked.follower.scan()
        clocked.stalls._of(other).cause = cause
        others.append(other)
    others[2].ended = True
    clocked.stalls._of(clocked.followed)
    assert clocked.stalls._missing(clocked.followed) == [2, 3]


def test_usual_is_the_mean(clocked: Clocked) -> None:
    """What a step usually takes, without the first."""
    for seconds in (50.0, 0.1, 0.2, 0.3):
        clocked.step(seconds)
    clocked.now_ns += 10**10
    (event,) = clocked.stalls.check(clocked.followed)
    assert event["usual_step_ms"] == 200.0
