"""Deaths of real processes, noticed at once and explained as well as can be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from waiting import finishes, until

from monitor.agent import exits, proc, watchdog
from monitor.agent.follow import Followed, Follower
from monitor.agent.watchdog import Watchdog, end_event

Train = Callable[..., Any]


@pytest.fixture
def follower(spool: Path) -> Follower:
    return Follower(spool, time.perf_counter_ns())


def watched(follower: Follower, spool: Path) -> tuple[Watchdog, Followed]:
    """The only tape of the spool, and a watchdog on it."""
    (tape,) = follower.scan()
    dog = Watchdog(spool)
    dog.watch(tape)
    return dog, tape


def outcome(dog: Watchdog, tape: Followed, follower: Follower) -> exits.Exit:
    """How the rank ended, once the watchdog knows."""

    def known() -> exits.Exit | None:
        dog.wait(0.05)
        follower.poll(tape)
        if not dog.gone(tape, lambda: False):
            return None
        follower.poll(tape)
        return dog.how(tape)

    return until(known, "the watchdog's word")


@pytest.mark.parametrize(
    ("end", "code", "number", "reason"),
    [
        ("exit 0", 0, None, "end of the script"),
        ("exit 3", 3, None, "exit code 3"),
        ("raise boom", 1, None, "RuntimeError: boom"),
        ("vanish 7", 7, None, "exit code 7"),
        ("kill 9", None, 9, "killed by SIGKILL"),
        ("kill 11", None, 11, "killed by SIGSEGV"),
        ("kill 15", None, 15, "killed by SIGTERM"),
    ],
)
def test_every_way_to_end(
    train: Train, spool: Path, follower: Follower, end: str, code: int, number: int, reason: str
) -> None:
    """Exit code, signal and words, of a process that was alive when the agent came."""
    trainer = train(steps=3, hold=True, end=end)
    dog, tape = watched(follower, spool)
    trainer.communicate("\n")
    how = outcome(dog, tape, follower)
    assert (how.code, how.signal, how.reason) == (code, number, reason)


def test_waiting_ends_with_the_death(train: Train, spool: Path, follower: Follower) -> None:
    """The watchdog sleeps, and wakes the moment a rank dies."""
    trainer = train(steps=3, end="wait")
    dog, tape = watched(follower, spool)
    dog.wait(0.05)
    assert not dog.gone(tape, lambda: False)
    trainer.kill()
    finishes(lambda: dog.wait(3600))
    assert dog.gone(tape, lambda: False)


def test_without_pidfds_the_process_is_looked_up(
    train: Train, spool: Path, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On an older system the death is found by id and start time, and the zombie read."""
    monkeypatch.setattr(exits, "open_pidfd", lambda pid: None)
    trainer = train(steps=3, end="wait")
    dog, tape = watched(follower, spool)
    assert not dog.gone(tape, lambda: False)
    trainer.kill()
    assert outcome(dog, tape, follower).signal == 9


def test_a_later_process_of_the_same_id_is_not_the_rank(
    train: Train, spool: Path, follower: Follower
) -> None:
    """Whoever has the number now, with another start time: the rank is dead."""
    train(steps=3, end="wait")
    (tape,) = follower.scan()
    tape.start_ticks += 1
    dog = Watchdog(spool)
    dog.watch(tape)
    assert dog.gone(tape, lambda: False)


def test_the_launcher_is_waited_for_and_believed(train: Train, spool: Path, follower: Follower) -> None:
    """Where a launcher is known to be there, its word comes first."""
    (spool / "launched-0").touch()
    trainer = train(steps=3, end="wait")
    dog, tape = watched(follower, spool)
    trainer.kill()
    trainer.wait()
    assert dog.gone(tape, lambda: False)
    assert dog.how(tape) is None
    (spool / "exit-0.json").write_text('{"code": 99, "signal": null}')
    assert outcome(dog, tape, follower).code == 99


def test_a_silent_launcher_is_not_waited_for_long(
    train: Train, spool: Path, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a second the kernel's word does."""
    monkeypatch.setattr(watchdog, "LAUNCHER_S", 0.1)
    (spool / "launched-0").touch()
    trainer = train(steps=3, end="wait")
    dog, tape = watched(follower, spool)
    trainer.kill()
    assert outcome(dog, tape, follower).signal == 9


def test_nobody_knows(train: Train, spool: Path, follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reaped before the agent came, no launcher, no last words: that is said, and no signal invented."""
    trainer = train(steps=3, end="wait")
    trainer.kill()
    trainer.wait()
    dog, tape = watched(follower, spool)
    how = outcome(dog, tape, follower)
    assert (how.code, how.signal, how.reason, how.clean) == (None, None, exits.UNKNOWN, False)


def test_a_kill_for_memory_is_asked_for_when_the_death_is_noticed(
    train: Train, spool: Path, follower: Follower
) -> None:
    """What the kernel's counter says then goes into the reason."""
    trainer = train(steps=3, end="wait")
    dog, tape = watched(follower, spool)
    trainer.kill()
    dog.wait(5)
    assert dog.gone(tape, lambda: True)
    how = dog.how(tape)
    assert how is not None
    assert how.reason == "killed by SIGKILL: out of memory"
    assert dog.forget(tape)


def test_the_end_event_tells_step_phase_and_orphans(train: Train, spool: Path, follower: Follower) -> None:
    """Last step and phase from the tape; children that outlive the rank by their pids."""
    trainer = train(steps=10, phase="optimizer", children=["import time; time.sleep(60)"] * 2, end="wait")
    dog, tape = watched(follower, spool)
    children = [(int(pid), proc.stat(int(pid)).start_ticks) for pid in trainer.ready]  # type: ignore[union-attr]
    os.kill(children[1][0], signal.SIGKILL)
    trainer.kill()
    how = outcome(dog, tape, follower)
    until(lambda: not proc.stat(children[1][0]), "the end of the child")
    event = end_event(tape, how, False, children)
    os.kill(children[0][0], signal.SIGKILL)
    assert (event["last_step"], event["last_phase"], event["orphans"]) == (9, "optimizer", [children[0][0]])


def test_a_clean_end_has_no_last_phase(train: Train, spool: Path, follower: Follower) -> None:
    """A run that ended well did not end inside anything."""
    train(steps=3, end="exit 0").wait()
    _, tape = watched(follower, spool)
    follower.poll(tape)
    assert end_event(tape, exits.Exit(0, None, ""), False, [])["last_phase"] is None


def test_a_detached_process_is_gone_though_it_lives(train: Train, spool: Path, follower: Follower) -> None:
    """Its tape is closed and its last word is that it was detached."""
    trainer = train(steps=3, end="detach")
    dog, tape = watched(follower, spool)
    how = outcome(dog, tape, follower)
    assert (trainer.poll(), how.code, how.clean) == (None, 0, True)


def test_an_agent_inside_the_trainer_believes_the_last_words(spool: Path) -> None:
    """Running as a thread, it never sees its own process die: the closed tape is the end."""
    script = """
import os, sys
from pathlib import Path
from monitor.agent.follow import Follower
from monitor.agent.watchdog import Watchdog
from monitor.tape.writer import JournalWriter, TapeWriter
spool = Path(sys.argv[1])
stem = spool / f"rank-0-{os.getpid()}"
journal = JournalWriter(f"{stem}.journal")
tape = TapeWriter(f"{stem}.tape", rank=0, world_size=1, local_rank=0)
follower, dog = Follower(spool, 0), Watchdog(spool)
(followed,) = follower.scan()
dog.watch(followed)
follower.poll(followed)
assert not dog.gone(followed, lambda: False)
journal.append({"kind": "end", "t_ns": 1, "code": None, "reason": "end of the script"})
tape.close()
follower.poll(followed)
assert dog.gone(followed, lambda: False)
print(dog.how(followed).reason)
"""
    said = subprocess.check_output([sys.executable, "-c", script, str(spool)], text=True)
    assert said == "end of the script\n"
