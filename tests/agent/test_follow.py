"""Tapes and journals of a spool folder, as they appear, grow and break."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from monitor.agent import follow
from monitor.agent.follow import Followed, Follower
from monitor.schema import TAPE_METRICS
from monitor.tape import layout
from monitor.tape.writer import JournalWriter, TapeWriter

BASE_NS = 1_000_000_000
VALUES = [1_000_000 if metric.tape == "ns" else 2.0 for metric in TAPE_METRICS]


class Rank:
    """A rank's writers in this process."""

    def __init__(
        self, spool: Path, rank: int = 0, pid: int = 1, world_size: int = 4, slots: int = 64
    ) -> None:
        self.stem = spool / f"rank-{rank}-{pid}"
        self.tape = TapeWriter(
            f"{self.stem}.tape", rank=rank, world_size=world_size, local_rank=rank, slots=slots
        )
        self.journal = JournalWriter(f"{self.stem}.journal")

    def steps(self, count: int) -> None:
        for step in range(count):
            self.tape.append(BASE_NS + 500_000_000 * (step + 1), VALUES)

    def event(self, kind: str, **fields: Any) -> None:
        self.journal.append({"kind": kind, "t_ns": 2 * BASE_NS, "step": 3, **fields})


@pytest.fixture
def follower(spool: Path) -> Follower:
    return Follower(spool, BASE_NS)


def only(follower: Follower) -> Followed:
    (tape,) = follower.scan()
    return tape


def test_a_tape_is_found_once(spool: Path, follower: Follower) -> None:
    """Each scan gives the new ones."""
    Rank(spool, 0)
    first = [tape.rank for tape in follower.scan()]
    Rank(spool, 3)
    assert (first, [tape.rank for tape in follower.scan()], follower.scan()) == ([0], [3], [])


def test_rows_are_in_seconds_and_milliseconds(spool: Path, follower: Follower) -> None:
    """Times count from the run's beginning; the stream is named after the rank."""
    Rank(spool, 2).steps(2)
    (block,), _ = follower.poll(only(follower))
    assert (block.stream, block.first, block.t_s.tolist()) == ("rank/2", 0, [0.5, 1.0])
    assert block.columns["data_ms"].tolist() == [1.0, 1.0]


def test_nothing_new_is_nothing(spool: Path, follower: Follower) -> None:
    """A second poll gives neither rows nor events again."""
    rank = Rank(spool)
    rank.steps(2)
    rank.event("epoch", epoch=1)
    tape = only(follower)
    follower.poll(tape)
    assert follower.poll(tape) == ([], [])


def test_events_get_time_and_rank(spool: Path, follower: Follower) -> None:
    """The journal's clock becomes seconds, and the rank is added."""
    Rank(spool, 1).event("epoch", epoch=4)
    _, events = follower.poll(only(follower))
    assert events == [{"kind": "epoch", "epoch": 4, "step": 3, "t_s": 1.0, "rank": 1}]


@pytest.mark.parametrize("at", [None, "soon", 1.5])
def test_an_event_without_a_time_gets_now(spool: Path, follower: Follower, at: object) -> None:
    """A time that is none is replaced by the time of reading."""
    Rank(spool).journal.append({"kind": "epoch", "t_ns": at})
    _, events = follower.poll(only(follower))
    assert events[0]["t_s"] == pytest.approx((time.perf_counter_ns() - BASE_NS) / 1e9, abs=5)


def test_what_has_no_kind_is_no_event(spool: Path, follower: Follower) -> None:
    """Objects without a kind are left out."""
    rank = Rank(spool)
    rank.journal.append({"kind": 7})
    rank.journal.append({"no": "kind"})
    assert follower.poll(only(follower)) == ([], [])


def test_last_words_and_facts_are_remembered(spool: Path, follower: Follower) -> None:
    """End, exception and facts stay at hand."""
    rank = Rank(spool)
    rank.event("exception", type="ValueError", message="no")
    rank.event("end", code=1)
    rank.event("fact", name="env", value={"torch": "2"})
    tape = only(follower)
    follower.poll(tape)
    assert tape.failure is not None
    assert tape.end is not None
    assert (tape.failure["type"], tape.end["code"], tape.facts) == ("ValueError", 1, {"env": {"torch": "2"}})


def test_overwritten_steps_are_told(spool: Path, follower: Follower) -> None:
    """An agent that came too late says how many steps it lost, and brings the rest."""
    Rank(spool, slots=64).steps(100)
    (block,), events = follower.poll(only(follower))
    assert (block.first, len(block)) == (36, 64)
    assert [(event["kind"], event["records"], event["rank"]) for event in events] == [("dropped", 36, 0)]


def test_many_steps_come_in_parts(spool: Path, follower: Follower) -> None:
    """One read is bounded, and the next goes on where it ended."""
    Rank(spool, slots=3 * follow.ROWS_A_READ).steps(2 * follow.ROWS_A_READ + 5)
    tape = only(follower)
    sizes = [sum(map(len, follower.poll(tape)[0])) for _ in range(4)]
    assert sizes == [follow.ROWS_A_READ, follow.ROWS_A_READ, 5, 0]


def test_a_second_process_of_a_rank_is_numbered_on(spool: Path, follower: Follower) -> None:
    """After the first has ended, steps and the steps of events go on behind its last."""
    Rank(spool, pid=1).steps(10)
    first = only(follower)
    follower.poll(first)
    first.ended = True
    again = Rank(spool, pid=2)
    again.steps(5)
    again.event("epoch", epoch=1)
    (block,), events = follower.poll(only(follower))
    assert (block.stream, block.first, events[0]["step"]) == ("rank/0", 10, 13)


def test_a_second_process_beside_the_first_is_another_rank(spool: Path, follower: Follower) -> None:
    """While the first lives, the second's steps are not mixed with its."""
    Rank(spool, pid=1)
    Rank(spool, pid=2)
    assert [tape.rank for tape in follower.scan()] == [0, 4]


def test_a_tape_that_is_still_being_made_is_waited_for(spool: Path, follower: Follower) -> None:
    """Without its magic it is looked at again later, silently."""
    path = spool / "rank-0-9.tape"
    path.write_bytes(b"\0" * layout.HEADER_BYTES)
    assert follower.scan() == []
    path.unlink()
    Rank(spool, pid=9).event("epoch")
    assert [event["kind"] for event in follower.poll(only(follower))[1]] == ["epoch"]


def test_a_tape_that_never_makes_sense_is_given_up(
    spool: Path, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told with its name and reason, once, along with the next rank's events."""
    monkeypatch.setattr(follow, "PATIENCE_NS", -1)
    (spool / "rank-0-9.tape").write_bytes(b"garbage" * 1000)
    Rank(spool, 1)
    (tape,) = follower.scan()
    events = [follower.poll(tape)[1] for _ in range(2)]
    assert [[event["kind"] for event in each] for each in events] == [["warn"], []]
    assert "rank-0-9.tape: no tape" in events[0][0]["text"]


def test_a_tape_that_breaks_is_told_once_and_its_events_go_on(spool: Path, follower: Follower) -> None:
    """Cut off under the agent, the tape ends; the journal is read further."""
    rank = Rank(spool)
    tape = only(follower)
    os.truncate(f"{rank.stem}.tape", 100)
    rank.event("epoch", epoch=1)
    kinds = [[event["kind"] for event in follower.poll(tape)[1]] for _ in range(2)]
    assert kinds == [["epoch", "warn"], []]


def test_other_files_are_not_touched(spool: Path, follower: Follower) -> None:
    """Only names of the agreed form are opened."""
    for name in ("rank-0.tape", "rank-x-1.tape", "rank-0-1.tape.tmp", "agent.log"):
        (spool / name).write_bytes(b"x")
    assert (follower.scan(), follower._unreadable) == ([], {})


def test_a_spool_that_is_gone_is_empty(tmp_path: Path) -> None:
    """Nothing raises."""
    assert Follower(tmp_path / "none", 0).scan() == []
