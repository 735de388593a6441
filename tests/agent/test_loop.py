"""The whole agent beside real trainers: what it hands on, and when it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from monitor.agent import loop
from monitor.batch import from_bytes, to_bytes

Train = Callable[..., Any]


def test_every_step_arrives_once(train: Train, agent: threading.Thread, sink: Any) -> None:
    """All steps of a run, in order, none twice, and the agent ends by itself."""
    train(steps=500, end="exit 0")
    agent.join(10)
    assert sink.rows("rank/0")["row"] == list(range(500))
    assert sink.rows("rank/0")["loss"] == [float(step) for step in range(500)]
    assert not agent.is_alive()


def test_five_thousand_steps_a_second_lose_none(train: Train, agent: threading.Thread, sink: Any) -> None:
    """The ring is long enough and the agent quick enough: every one of 15,000 fast steps is there."""
    train(steps=15_000, step_s=0.0001, end="exit 0").wait()
    agent.join(10)
    assert sink.rows("rank/0")["row"] == list(range(15_000))
    assert sink.events("dropped") == []


def test_an_agent_may_run_as_a_thread_of_the_trainer(spool: Path) -> None:
    """Where no process may be started: every step, the end from the last words, and it ends by itself."""
    script = """
import os, sys, threading, time
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from monitor.agent.loop import Agent, Run
from conftest import Sink
from trainer import event, one_step
from monitor.tape.writer import JournalWriter, TapeWriter
spool, sink = Path(sys.argv[1]), Sink()
stem = spool / f"rank-0-{os.getpid()}"
journal = JournalWriter(f"{stem}.journal")
tape = TapeWriter(f"{stem}.tape", rank=0, world_size=1, local_rank=0)
agent = threading.Thread(target=Agent(spool, Run("run-1", "here", time.perf_counter_ns()), sink).run)
agent.start()
for step in range(200):
    one_step(tape, step, {})
event(journal, "end", code=None, reason="end of the script")
tape.close()
agent.join(10)
print(agent.is_alive(), len(sink.rows("rank/0")["row"]), [e["reason"] for e in sink.events("rank_end")])
"""
    command = [sys.executable, "-c", script, str(spool), str(Path(__file__).parent)]
    support = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "support")}
    assert subprocess.check_output(command, text=True, env=support) == "False 200 ['end of the script']\n"


def test_times_never_fall_and_count_from_the_run_s_beginning(
    train: Train, agent: threading.Thread, sink: Any
) -> None:
    """A row's time is in seconds since the run began."""
    train(steps=50, end="exit 0")
    agent.join(10)
    times = sink.rows("rank/0")["t_s"]
    assert times == sorted(times)
    assert -1 < times[0] < 10


def test_the_run_event_comes_first_and_the_end_last(train: Train, agent: threading.Thread, sink: Any) -> None:
    """A hub learns what run this is before anything else, and that it is over after everything else."""
    train(steps=5, end="exit 0")
    agent.join(10)
    kinds = [event["kind"] for batch in sink.batches for event in batch.events]
    assert kinds[0] == "run"
    assert kinds[-1] == "run_end"
    assert kinds.index("attach") < kinds.index("rank_end")


def test_batches_are_what_a_hub_takes(train: Train, agent: threading.Thread, sink: Any) -> None:
    """Each batch passes the wire's own checks, and they are numbered from 1 without a gap."""
    train(steps=300, end="exit 0")
    agent.join(10)
    assert [from_bytes(to_bytes(batch)).seq for batch in sink.batches] == list(
        range(1, len(sink.batches) + 1)
    )


def test_a_kill_is_told_at_once(train: Train, agent: threading.Thread, sink: Any) -> None:
    """The death, its signal, the last step and the last phase are with the sink."""
    trainer = train(steps=100, phase="backward", end="wait")
    sink.filled("rank/0", 100)
    trainer.kill()
    end = sink.first("rank_end")
    assert (end["signal"], end["code"], end["last_step"], end["last_phase"]) == (9, None, 99, "backward")


@pytest.fixture
def small_cgroup() -> Iterator[Path]:
    """A memory cgroup of 200 MB, where one may be made."""
    top = Path("/sys/fs/cgroup")
    unified = (top / "cgroup.controllers").exists()
    folder = (top if unified else top / "memory") / f"torchvitals-test-{os.getpid()}"
    try:
        folder.mkdir()
        (folder / ("memory.max" if unified else "memory.limit_in_bytes")).write_text("200000000")
    except OSError:
        pytest.skip("may not make a memory cgroup here")
    yield folder
    until(lambda: not (folder / "cgroup.procs").read_text(), "the end of who is in it")
    folder.rmdir()


def test_a_kill_for_memory_is_told_as_one(
    train: Train, agent: threading.Thread, sink: Any, small_cgroup: Path
) -> None:
    """The kernel kills a rank at its limit: the signal, and that memory was the reason."""
    trainer = train(steps=5, hold=True, cgroup=str(small_cgroup / "cgroup.procs"), end="hang eating")
    sink.filled("proc/0", 1)
    trainer.stdin.write("\n")
    trainer.stdin.flush()
    end = sink.first("rank_end")
    assert (end["signal"], end["oom_kill"], end["reason"]) == (9, True, "killed by SIGKILL: out of memory")


def test_orphans_are_listed(train: Train, agent: threading.Thread, sink: Any) -> None:
    """Children that outlive a killed rank are named by their pids."""
    trainer = train(steps=5, children=["import time; time.sleep(60)"], end="wait")
    sink.filled("proc/0", 2)
    trainer.kill()
    end = sink.first("rank_end")
    for pid in trainer.ready:
        os.kill(int(pid), signal.SIGKILL)
    assert end["orphans"] == [int(pid) for pid in trainer.ready]


def test_a_rank_found_dead_is_told_too(train: Train, make_agent: Callable[..., Any], sink: Any) -> None:
    """An agent that comes after the death still brings every step and says what can be known."""
    trainer = train(steps=100, phase="backward", end="kill 9")
    trainer.wait()
    make_agent().run()
    assert sink.rows("rank/0")["row"] == list(range(100))
    assert sink.events("rank_end")[0]["last_step"] == 99


def test_an_exception_is_told_in_its_own_words(train: Train, agent: threading.Thread, sink: Any) -> None:
    """Code 1, and the exception with the line it came from."""
    train(steps=5, end="raise CUDA out of memory")
    end = sink.first("rank_end")
    assert (end["code"], end["signal"], end["clean"]) == (1, None, False)
    assert (end["reason"], end["location"]) == ("RuntimeError: CUDA out of memory", "train.py:7")


def test_the_launcher_s_word_comes_first(
    train: Train, agent: threading.Thread, sink: Any, spool: Path
) -> None:
    """What the launcher reaped is the rank's end, whatever else is known."""
    (spool / "launched-0").touch()
    trainer = train(steps=5, end="wait")
    trainer.kill()
    trainer.wait()
    (spool / "exit-0.json").write_text('{"code": null, "signal": 15}')
    assert sink.first("rank_end")["reason"] == "killed by SIGTERM"


def test_each_rank_ends_for_itself(train: Train, agent: threading.Thread, sink: Any) -> None:
    """One rank's death is told while the others train on; the run ends with the last."""
    first, second = (
        train(rank=0, world_size=2, steps=5, end="wait"),
        train(rank=1, world_size=2, steps=5, end="wait"),
    )
    second.send_signal(signal.SIGTERM)
    assert sink.first("rank_end")["rank"] == 1
    assert not sink.events("run_end")
    first.communicate("\n")
    agent.join(10)
    assert {event["rank"] for event in sink.events("rank_end")} == {0, 1}
    assert sink.events("run_end")


def test_detach_ends_the_run_and_not_the_process(train: Train, agent: threading.Thread, sink: Any) -> None:
    """After detach the process lives on, unwatched."""
    trainer = train(steps=5, end="detach")
    agent.join(10)
    assert trainer.poll() is None
    assert (sink.events("rank_end")[0]["reason"], sink.events("rank_end")[0]["clean"]) == ("detached", True)


def test_a_rank_that_starts_again_goes_on_numbering(
    train: Train, agent: threading.Thread, sink: Any, spool: Path
) -> None:
    """A second process of the same rank appends its steps behind the first one's."""
    coming = spool / f"pending-{os.getpid()}"
    coming.touch()
    train(steps=10, end="kill 9").wait()
    sink.first("rank_end")
    train(steps=10, end="exit 0")
    coming.unlink()
    agent.join(10)
    assert sink.rows("rank/0")["row"] == list(range(20))


def test_two_living_processes_of_one_rank_are_kept_apart(
    train: Train, agent: threading.Thread, sink: Any
) -> None:
    """Nobody's steps are mixed with another's, even where both say they are rank 0."""
    first, second = train(steps=10, end="wait"), train(steps=20, end="wait")
    for trainer in (first, second):
        trainer.communicate("\n")
    agent.join(10)
    assert {len(sink.rows("rank/0")["row"]), len(sink.rows("rank/1")["row"])} == {10, 20}


def test_samples_of_host_and_rank_come_along(train: Train, agent: threading.Thread, sink: Any) -> None:
    """Memory and CPU of the rank and its host, row by row."""
    trainer = train(steps=5, end="wait")
    sink.filled("proc/0", 3)
    trainer.communicate("\n")
    agent.join(10)
    assert sink.rows("proc/0")["rss_mb"][0] > 1
    assert sink.rows("host/here")["row"] == list(range(len(sink.rows("host/here")["row"])))


def test_no_gpu_is_said_and_no_number_made_up(train: Train, agent: threading.Thread, sink: Any) -> None:
    """Without a driver there is an event that says so, and no gpu stream at all."""
    train(steps=5, end="exit 0")
    agent.join(10)
    streams = {block.stream for batch in sink.batches for block in batch.blocks}
    if not sink.events("no_gpu"):
        pytest.skip("this machine has a GPU")
    assert not [stream for stream in streams if stream.startswith("gpu/")]


def test_a_process_that_said_it_would_come_is_waited_for(
    train: Train, agent: threading.Thread, sink: Any, spool: Path
) -> None:
    """`pending-PID` of a living process keeps the agent, after all others have ended."""
    (spool / f"pending-{os.getpid()}").touch()
    train(steps=5, end="exit 0")
    sink.first("rank_end")
    agent.join(4 * loop.LINGER_S)
    assert agent.is_alive()
    (spool / f"pending-{os.getpid()}").unlink()
    agent.join(10)
    assert not agent.is_alive()


def test_nobody_joins_while_it_ends(train: Train, make_agent: Callable[..., Any], sink: Any) -> None:
    """The last look for new ranks is taken while the gate is held; one that came in between is served."""
    entered = []

    @contextmanager
    def gate() -> Any:
        entered.append(1)
        if len(entered) == 1:
            train(steps=7, end="exit 0")
        yield

    train(steps=5, end="exit 0")
    make_agent(gate=gate).run()
    assert len(sink.rows("rank/0")["row"]) == 12
    assert len(entered) == 2


def test_a_launched_script_that_never_trained_is_told(
    agent: threading.Thread, sink: Any, spool: Path
) -> None:
    """The launcher alone knows of it: its exit is the rank's, and the agent does not wait for more."""
    (spool / "launched-0").touch()
    (spool / "exit-0.json").write_text('{"code": 2, "signal": null}')
    agent.join(10)
    assert [(e["code"], e["reason"], e["last_step"]) for e in sink.events("rank_end")] == [
        (2, "exit code 2", None)
    ]
    assert not agent.is_alive()


def test_a_spool_without_ranks_is_given_up(
    make_agent: Callable[..., Any], sink: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent started for nothing goes."""
    monkeypatch.setattr(loop, "START_S", 0.2)
    make_agent().run()
    assert [event["kind"] for event in sink.batches[0].events] == ["run"]


def test_a_sink_that_breaks_costs_its_batch(
    train: Train, make_agent: Callable[..., Any], sink: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent watches on, and the rows that were lost are told."""
    take, calls = sink.take, []

    def broken(batch: Any) -> None:
        calls.append(batch)
        if len(calls) == 2:
            raise RuntimeError("no")
        take(batch)

    monkeypatch.setattr(sink, "take", broken)
    train(steps=100, step_s=0.01, end="exit 0")
    make_agent().run()
    lost = sum(event["records"] for event in sink.events("dropped"))
    assert lost > 0
    assert sink.events("run_end")


def test_stop_hands_on_what_there_is(train: Train, make_agent: Callable[..., Any], sink: Any) -> None:
    """Asked to stop, the agent brings what it has and leaves the run open."""
    train(steps=100, end="wait")
    made = make_agent()
    threading.Timer(0.5, made.stop).start()
    made.run()
    assert len(sink.rows("rank/0")["row"]) == 100
    assert not sink.events("run_end")
