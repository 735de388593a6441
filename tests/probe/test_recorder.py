"""The step that is being recorded: what goes to the tape, what to the journal, and what when it breaks."""

from __future__ import annotations

import errno
import math
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.probe import recorder as recorders
from monitor.probe.clock import DATA
from monitor.probe.recorder import BACKWARDS, EVENTS_A_KIND, FACTS_AT, FACTS_EVERY, LOSS, Recorder, say
from monitor.schema import TAPE_METRICS
from monitor.tape.reader import JournalReader, TapeReader
from monitor.tape.writer import JournalWriter, TapeWriter


@pytest.fixture
def stem(tmp_path: Path) -> str:
    return str(tmp_path / "rank-0-1")


@pytest.fixture
def recorder(stem: str) -> Iterator[Recorder]:
    tape = TapeWriter(f"{stem}.tape", rank=0, world_size=1, local_rank=0, slots=1024)
    made = Recorder(tape, JournalWriter(f"{stem}.journal"))
    made.clock.begin()
    yield made
    made.journal.close()
    tape.close()


def rows(stem: str) -> dict[str, list[float]]:
    return {key: list(column) for key, column in TapeReader(f"{stem}.tape").read(0, 4096).columns.items()}


def events(stem: str) -> list[dict[str, Any]]:
    return JournalReader(f"{stem}.journal").read()


def test_a_step_holds_its_phases_and_values(recorder: Recorder, stem: str) -> None:
    """What the hooks wrote into `values`, the clock's phases, and the epoch."""
    depth = recorder.clock.push(DATA)
    recorder.clock.pop(depth)
    recorder.values[LOSS] = 0.5
    recorder.epoch = 2.0
    recorder.end_step()
    found = rows(stem)
    assert (found["loss"], found["epoch"], recorder.steps) == ([0.5], [2.0], 1)
    assert found["data_ms"][0] > 0
    assert found["step_ms"][0] == pytest.approx(found["data_ms"][0] + found["other_ms"][0])


def test_the_next_step_begins_with_nothing(recorder: Recorder, stem: str) -> None:
    """Counts are zero, and what was not measured is unknown, never zero."""
    recorder.values[LOSS] = 1.0
    recorder.values[BACKWARDS] += 1
    recorder.end_step()
    recorder.end_step()
    found = rows(stem)
    assert found["backward_calls"] == [1.0, 0.0]
    assert math.isnan(found["loss"][1])
    assert math.isnan(found["samples"][1])


def test_every_tape_metric_has_its_place(recorder: Recorder) -> None:
    """As many values as the tape has columns."""
    assert len(recorder.values) == len(TAPE_METRICS)


def test_events_carry_time_and_step(recorder: Recorder, stem: str) -> None:
    """The step is the number of those completed, the time the clock's."""
    recorder.end_step()
    recorder.event("save", ms=3.0)
    (event,) = events(stem)
    assert (event["kind"], event["step"], event["ms"]) == ("save", 1, 3.0)
    assert event["t_ns"] > 0


def test_a_kind_of_event_that_never_stops_is_cut(recorder: Recorder, stem: str) -> None:
    """A hook that fires every step cannot fill the disk; other kinds, and the end, still come through."""
    for _ in range(EVENTS_A_KIND + 5):
        recorder.event("save")
    recorder.event("clip")
    recorder.event("end")
    kinds = [event["kind"] for event in events(stem)]
    assert kinds == ["save"] * EVENTS_A_KIND + ["clip", "end"]


@pytest.mark.parametrize("kind", ["log", "cuda"])
def test_what_is_thinned_in_time_is_never_cut(kind: str, recorder: Recorder, stem: str) -> None:
    """Four numbers a second are told for as long as a run lasts, be it days."""
    for _ in range(EVENTS_A_KIND + 5):
        recorder.event(kind, values={"a": 1.0})
    assert len(events(stem)) == EVENTS_A_KIND + 5


def test_a_fact_is_written_when_it_changes(recorder: Recorder, stem: str) -> None:
    """The same value is told once; one that is changed in place is told anew."""
    value = {"on": False}
    for on in (False, False, True):
        value["on"] = on
        recorder.fact("anomaly_mode", value)
    assert [event["value"] for event in events(stem)] == [{"on": False}, {"on": True}]


def test_a_restless_fact_leaves_room_for_the_others(recorder: Recorder, stem: str) -> None:
    """Facts are counted by name."""
    for number in range(EVENTS_A_KIND + 5):
        recorder.fact("precision", number)
    recorder.fact("compile", True)
    assert events(stem)[-1]["name"] == "compile"
    assert len(events(stem)) >= 1


def test_watchers_look_at_a_few_steps(recorder: Recorder) -> None:
    """Soon after the start, then now and then."""
    seen: list[int] = []
    recorder.watchers.append(lambda: seen.append(recorder.steps))
    for _ in range(2 * FACTS_EVERY):
        recorder.end_step()
    assert seen == [*sorted(FACTS_AT), FACTS_EVERY, 2 * FACTS_EVERY]


def test_a_full_disk_is_said_once(
    recorder: Recorder, stem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Events are lost from then on; steps are recorded."""

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "write", full)
    recorder.event("save")
    recorder.event("save")
    monkeypatch.undo()
    recorder.end_step()
    assert capsys.readouterr().err.count("\n") == 1
    assert len(rows(stem)["loss"]) == 1


def test_a_failure_switches_everything_off(
    recorder: Recorder, stem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line on stderr however often it fails, the same in the journal, and every hook's gate is shut."""
    recorder.fail(RuntimeError("broken"))
    recorder.fail(RuntimeError("again"))
    line = "monitoring is off: RuntimeError: broken. The training goes on."
    assert capsys.readouterr().err == f"torchvitals: {line}\n"
    assert [(event["kind"], event["text"]) for event in events(stem)] == [("warn", line)]
    assert (recorder.here, recorder.adopt()) == (False, False)


def test_the_tape_says_that_recording_broke_off(recorder: Recorder, stem: str) -> None:
    """So that steps which nobody records are not taken for steps that do not come."""
    before = TapeReader(f"{stem}.tape").live()
    recorder.fail(RuntimeError("broken"))
    after = TapeReader(f"{stem}.tape").live()
    assert [(live.gave_up, live.closed) for live in (before, after)] == [(False, False), (True, False)]


def adopted_in_a_thread(recorder: Recorder) -> bool:
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(recorder.adopt()))
    thread.start()
    thread.join()
    return found[0]


def test_the_first_thread_that_trains_is_the_one(recorder: Recorder) -> None:
    """Another one is refused while it lives, and takes over once it is gone."""
    assert recorder.here
    assert adopted_in_a_thread(recorder)
    assert not recorder.here
    assert recorder.adopt()
    assert recorder.here
    assert not adopted_in_a_thread(recorder)


def test_a_closed_stderr_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody listens nothing is said, and nothing raised."""
    monkeypatch.setattr(sys, "stderr", None)
    say("nobody hears")
    with open(os.devnull) as closed:
        pass
    monkeypatch.setattr(sys, "stderr", closed)
    say("nobody hears")
    assert recorders.say is say
