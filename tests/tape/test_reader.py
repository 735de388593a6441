"""The agent's side: whole steps and whole events, or none."""

from __future__ import annotations

import contextlib
import json
import math
import os
import struct
import subprocess
import sys
import textwrap
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitor.schema import PHASES, TAPE_METRICS
from monitor.tape import layout
from monitor.tape.layout import TapeError
from monitor.tape.reader import JournalReader, TapeReader
from monitor.tape.writer import JournalWriter, TapeWriter

Values = Callable[[int], list[float]]

same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def write_steps(writer: TapeWriter, values: Values, count: int) -> None:
    for step in range(count):
        writer.append(1000 + step, values(step))


def test_steps_come_back_in_their_units(writer: TapeWriter, tape_path: str, values: Values) -> None:
    """Nanoseconds are read as milliseconds, plain numbers as they are."""
    write_steps(writer, values, 3)
    rows = TapeReader(tape_path).read(0, 10)
    assert rows.end_ns.tolist() == [1000, 1001, 1002]
    assert rows.columns["forward_ms"].tolist() == [0.0, 1.0, 2.0]
    assert rows.columns["samples"].tolist() == [0.0, 1.0, 2.0]


FIELD = {
    "ns": st.integers(0, 10**15),
    "f64": st.floats(allow_nan=True, allow_infinity=True, width=32),
}


@same_folder
@given(fields=st.tuples(*(FIELD[metric.tape or ""] for metric in TAPE_METRICS)))
def test_every_value_comes_back(writer: TapeWriter, tape_path: str, fields: tuple[float, ...]) -> None:
    """Whatever was measured, from zero to infinity and not at all, in every column."""
    writer.append(1, fields)
    rows = TapeReader(tape_path).read(writer.live[layout.LIVE_STEPS] - 1, 1)
    for metric, value in zip(TAPE_METRICS, fields, strict=True):
        expected = value * 1e-6 if metric.tape == "ns" else value
        assert rows.columns[metric.key][0] == pytest.approx(expected, nan_ok=True, rel=1e-6)


def test_step_ms_is_the_sum_of_the_phases(writer: TapeWriter, tape_path: str, values: Values) -> None:
    """A step is as long as its phases together, and nothing else counts."""
    write_steps(writer, values, 3)
    rows = TapeReader(tape_path).read(2, 1)
    assert rows.columns["step_ms"].tolist() == [2.0 * len(PHASES)]


def test_unmeasured_stays_unmeasured(writer: TapeWriter, tape_path: str, unmeasured: list[float]) -> None:
    """NaN goes through as NaN, never as 0."""
    writer.append(1, unmeasured)
    assert math.isnan(TapeReader(tape_path).read(0, 1).columns["loss"][0])


def test_reading_on(writer: TapeWriter, tape_path: str, values: Values) -> None:
    """`next` leads from one read to the next without a gap or a repetition, up to the newest step."""
    write_steps(writer, values, 5)
    reader = TapeReader(tape_path)
    first = reader.read(0, 2)
    second = reader.read(first.next, 10)
    third = reader.read(second.next, 10)
    assert (first.next, second.first, second.next, len(third)) == (2, 2, 5, 0)


def test_overwritten_steps_are_counted_as_lost(writer: TapeWriter, tape_path: str, values: Values) -> None:
    """A reader that comes late is told how many steps it missed."""
    write_steps(writer, values, 20)
    rows = TapeReader(tape_path).read(3, 100)
    assert (rows.first, rows.lost, rows.next) == (12, 9, 20)
    assert rows.columns["forward_ms"].tolist() == [float(step) for step in range(12, 20)]


def test_the_live_area(writer: TapeWriter, tape_path: str, values: Values) -> None:
    """Phase, time, steps, epoch and end, as the training process sees them."""
    reader = TapeReader(tape_path)
    before = reader.live()
    writer.append(1000, values(0))
    writer.live[layout.LIVE_PHASE] = PHASES.index("backward")
    writer.live[layout.LIVE_SINCE_NS] = 77
    writer.live[layout.LIVE_EPOCH] = 2
    now = reader.live()
    assert (before.phase, before.steps) == (None, 0)
    assert (now.phase, now.since_ns, now.steps, now.end_ns, now.epoch) == ("backward", 77, 1, 1000, 2)


def test_a_step_being_written_is_not_returned(writer: TapeWriter, tape_path: str, values: Values) -> None:
    """A slot whose two ends differ is torn: a writer killed inside it loses that step and no other."""
    write_steps(writer, values, 3)
    slot = writer._view[layout.HEADER_BYTES + 2 * 8 * (len(layout.COLUMNS) + 3) :]
    layout.SEQ.pack_into(slot, 0, 5)
    writer.live[layout.LIVE_STEPS] = 2
    assert TapeReader(tape_path).read(0, 10).next == 2


def test_the_slot_before_the_count_is_believed(writer: TapeWriter, tape_path: str, values: Values) -> None:
    """Killed between the slot and the count in the live area, the whole step is still found."""
    write_steps(writer, values, 3)
    writer.live[layout.LIVE_STEPS] = 2
    assert TapeReader(tape_path).read(0, 10).next == 3


def test_a_damaged_slot_is_skipped_and_counted(writer: TapeWriter, tape_path: str, values: Values) -> None:
    """Damage in the middle costs that step; the ones before and behind it are read."""
    write_steps(writer, values, 5)
    layout.SEQ.pack_into(writer._view, layout.HEADER_BYTES + 2 * 8 * (len(layout.COLUMNS) + 3), 12345)
    reader = TapeReader(tape_path)
    before = reader.read(0, 10)
    behind = reader.read(before.next, 10)
    assert (before.next, behind.first, behind.lost, behind.next) == (2, 3, 1, 5)


WRITER = textwrap.dedent(
    """
    import sys, time
    from monitor.schema import TAPE_METRICS
    from monitor.tape.writer import TapeWriter
    path, slots, steps, pause = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    writer = TapeWriter(path, rank=0, world_size=1, local_rank=0, slots=slots)
    kinds = [metric.tape for metric in TAPE_METRICS]
    for step in range(steps):
        writer.append(step, [step * 1_000_000 if kind == "ns" else float(step) for kind in kinds])
        if pause and step % 50 == 0:
            time.sleep(pause)
    writer.close()
    """
)


def follow(path: str, process: subprocess.Popen[bytes]) -> tuple[int, int, int]:
    """Read until the writer is done; (steps read, steps lost, steps whose fields disagree)."""
    while not os.path.exists(path):
        assert process.poll() is None
    while True:
        try:
            reader = TapeReader(path)
            break
        except TapeError:
            continue
    read = lost = wrong = at = 0
    while True:
        closed = reader.live().closed
        rows = reader.read(at, 5000)
        at, read, lost = rows.next, read + len(rows), lost + rows.lost
        truth = [float(step) for step in range(rows.first, rows.next)]
        wrong += sum(rows.columns[key].tolist() != truth for key in ("data_ms", "other_ms", "loss", "epoch"))
        if closed and not len(rows):
            return read, lost, wrong


def test_another_process_sees_every_step(tmp_path: Path) -> None:
    """While a real process writes, a reader beside it gets every step once, in order, whole."""
    path = str(tmp_path / "t.tape")
    with subprocess.Popen([sys.executable, "-c", WRITER, path, "16384", "20000", "0.001"]) as process:
        assert follow(path, process) == (20000, 0, 0)


def test_a_reader_that_is_lapped_never_sees_a_torn_step(tmp_path: Path) -> None:
    """On a ring of 64 steps the writer laps the reader all the time: read or lost, never wrong."""
    path = str(tmp_path / "t.tape")
    with subprocess.Popen([sys.executable, "-c", WRITER, path, "64", "200000", "0"]) as process:
        read, lost, wrong = follow(path, process)
    assert (read + lost, wrong) == (200_000, 0)
    assert lost > 0


def test_a_shrunk_file_is_an_error(writer: TapeWriter, tape_path: str, values: Values) -> None:
    """A file cut off under its reader raises TapeError, where a mapping would have been killed."""
    write_steps(writer, values, 5)
    reader = TapeReader(tape_path)
    whole = Path(tape_path).read_bytes()
    cut = Path(tape_path).with_name("cut.tape")
    cut.write_bytes(whole)
    reader = TapeReader(str(cut))
    os.truncate(cut, 200)
    with pytest.raises(TapeError):
        reader.read(0, 10)


def test_what_is_no_regular_file_is_no_tape(tmp_path: Path) -> None:
    """A pipe in the place of a tape neither blocks nor crashes."""
    os.mkfifo(tmp_path / "t.tape")
    with pytest.raises(TapeError, match="regular file"):
        TapeReader(str(tmp_path / "t.tape"))


@same_folder
@given(size=st.integers(0, 5000))
def test_truncated_tapes_are_refused(writer: TapeWriter, tape_path: str, values: Values, size: int) -> None:
    """Cut anywhere, a tape gives TapeError."""
    cut = Path(tape_path).with_name("cut.tape")
    cut.write_bytes(Path(tape_path).read_bytes()[:size])
    with pytest.raises(TapeError):
        TapeReader(str(cut)).read(0, 10)


@same_folder
@given(raw=st.binary(max_size=6000), valid_header=st.booleans())
def test_garbage_is_refused(writer: TapeWriter, tape_path: str, raw: bytes, valid_header: bool) -> None:
    """Arbitrary bytes, also behind a valid header, give TapeError or no step at all."""
    bad = Path(tape_path).with_name("bad.tape")
    whole = Path(tape_path).read_bytes()
    head = whole[: layout.HEADER_BYTES] if valid_header else b""
    bad.write_bytes((head + raw).ljust(len(whole), b"\0")[: len(whole)])
    with contextlib.suppress(TapeError):
        assert len(TapeReader(str(bad)).read(0, 10)) == 0


@same_folder
@given(data=st.data())
def test_a_flipped_bit_moves_no_step(
    writer: TapeWriter, tape_path: str, values: Values, data: st.DataObject
) -> None:
    """One flipped bit costs at most steps or one value: no step is given another's number or place."""
    if writer.live[layout.LIVE_STEPS] == 0:
        write_steps(writer, values, 12)
    raw = bytearray(Path(tape_path).read_bytes())
    bit = data.draw(st.integers(0, len(raw) * 8 - 1))
    raw[bit // 8] ^= 1 << bit % 8
    bad = Path(tape_path).with_name("bad.tape")
    bad.write_bytes(raw)
    try:
        rows = TapeReader(str(bad)).read(0, 100)
    except TapeError:
        return
    wrong = sum(
        rows.columns[key][i] != step
        for i, step in enumerate(range(rows.first, rows.next))
        for key in ("data_ms", "eval_ms", "samples", "loss", "epoch")
    )
    assert wrong <= 1


def journal(path: Path) -> tuple[JournalWriter, JournalReader]:
    return JournalWriter(str(path)), JournalReader(str(path))


def frame(event: object) -> bytes:
    text = json.dumps(event).encode()
    return struct.pack("<2sII", b"\xa7\x56", len(text), zlib.crc32(text)) + text


def test_events_come_once_and_in_order(tmp_path: Path) -> None:
    """Each call gives what is new since the last one."""
    writer, reader = journal(tmp_path / "j")
    writer.append({"kind": "epoch", "epoch": 1})
    first = reader.read()
    writer.append({"kind": "epoch", "epoch": 2})
    assert (first, reader.read(), reader.read()) == (
        [{"kind": "epoch", "epoch": 1}],
        [{"kind": "epoch", "epoch": 2}],
        [],
    )


def test_values_json_has_no_word_for(tmp_path: Path) -> None:
    """NaN arrives as text, unknown objects as theirs, any script's letters as they are."""
    writer, reader = journal(tmp_path / "j")
    writer.append({"loss": math.nan, "path": Path("/a"), "text": "größer \ud800 ≤"})
    assert reader.read() == [{"loss": "NaN", "path": "/a", "text": "größer \ud800 ≤"}]


@pytest.mark.parametrize("cut", [1, 2, 5, 10, 11, 20])
def test_a_torn_tail_is_picked_up_once_complete(tmp_path: Path, cut: int) -> None:
    """A frame of which only the beginning is there is left alone, then read, and is no damage."""
    whole = frame({"kind": "late", "text": "x" * 30})
    path = tmp_path / "j"
    path.write_bytes(frame({"kind": "early"}) + whole[:cut])
    reader = JournalReader(str(path))
    early, torn = reader.read(), reader.read()
    with path.open("ab") as file:
        file.write(whole[cut:])
    assert ([e["kind"] for e in early], torn) == (["early"], [])
    assert [e["kind"] for e in reader.read()] == ["late"]
    assert reader.damaged == 0


def test_damage_is_skipped(tmp_path: Path) -> None:
    """Behind a damaged frame the next whole one is found, and the damage is counted once."""
    broken = bytearray(frame({"kind": "broken", "n": 1}))
    broken[14] ^= 1
    (tmp_path / "j").write_bytes(frame({"kind": "a"}) + broken + b"\xa7\x56noise" + frame({"kind": "b"}))
    reader = JournalReader(str(tmp_path / "j"))
    assert [e["kind"] for e in reader.read()] == ["a", "b"]
    assert reader.damaged == 1


def test_a_wrong_length_does_not_hide_what_follows(tmp_path: Path) -> None:
    """A length that claims a megabyte would wait for ever; whole frames behind it prove it wrong."""
    lying = struct.pack("<2sII", b"\xa7\x56", 1_000_000, 0)
    (tmp_path / "j").write_bytes(lying + frame({"kind": "b"}))
    assert [e["kind"] for e in JournalReader(str(tmp_path / "j")).read()] == ["b"]


def test_megabytes_of_noise_end(tmp_path: Path) -> None:
    """A stretch of noise longer than any frame is passed in bounded steps."""
    (tmp_path / "j").write_bytes(b"\xa7noise" * 1_500_000 + frame({"kind": "b"}))
    reader = JournalReader(str(tmp_path / "j"))
    found = [event for _ in range(6) for event in reader.read()]
    assert [e["kind"] for e in found] == ["b"]
    assert reader.damaged == 1


def test_json_that_is_no_event_is_skipped(tmp_path: Path) -> None:
    """A frame that holds a list, a number or nested thousands deep is no event."""
    deep = b"[" * 100_000
    nested = struct.pack("<2sII", b"\xa7\x56", len(deep), zlib.crc32(deep)) + deep
    (tmp_path / "j").write_bytes(frame([1]) + frame(2) + nested + frame({"kind": "b"}))
    assert [e["kind"] for e in JournalReader(str(tmp_path / "j")).read()] == ["b"]


@same_folder
@given(data=st.data())
def test_a_flipped_bit_costs_one_event(tmp_path: Path, data: st.DataObject) -> None:
    """One flipped bit anywhere: the other events are read, unchanged, and none is invented."""
    events = [{"kind": "log", "n": n, "text": "x" * n} for n in range(6)]
    raw = bytearray(b"".join(map(frame, events)))
    bit = data.draw(st.integers(0, len(raw) * 8 - 1))
    raw[bit // 8] ^= 1 << bit % 8
    path = tmp_path / "j"
    path.write_bytes(raw)
    found = JournalReader(str(path)).read()
    assert len(found) >= len(events) - 1
    assert all(event in events for event in found)


@same_folder
@given(raw=st.binary(max_size=400), cut=st.integers(0, 60))
def test_garbage_gives_no_event(tmp_path: Path, raw: bytes, cut: int) -> None:
    """Garbage before and a torn frame behind: the whole event in between is all that comes."""
    path = tmp_path / "j"
    path.write_bytes(raw + frame({"kind": "true"}) + frame({"kind": "torn", "text": "x" * 60})[:cut])
    assert JournalReader(str(path)).read() == [{"kind": "true"}]
