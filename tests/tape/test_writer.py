"""The training process's side: nothing it does may wait, fail late, or reach a forked child."""

from __future__ import annotations

import errno
import os
import resource
import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from monitor.tape import layout
from monitor.tape.reader import JournalReader, TapeReader
from monitor.tape.writer import JournalFull, JournalWriter, TapeWriter

Values = Callable[[int], list[float]]


def in_child(work: Callable[[], None]) -> int:
    """Run `work` in a forked child; its exit status, 99 when it raised."""
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_the_whole_file_is_taken_at_once(writer: TapeWriter, tape_path: str) -> None:
    """All blocks are there from the start, readable by the owner only."""
    found = os.stat(tape_path)
    assert found.st_blocks * 512 >= found.st_size
    assert found.st_mode & 0o777 == 0o600


def test_an_existing_file_is_left_alone(writer: TapeWriter, tape_path: str) -> None:
    """Nobody's file is overwritten, not even a tape."""
    with pytest.raises(FileExistsError):
        TapeWriter(tape_path, rank=0, world_size=1, local_rank=0)


def test_a_symbolic_link_is_not_followed(tmp_path: Path, tape_path: str) -> None:
    """A link planted where the tape goes leads nowhere."""
    os.symlink(tmp_path / "elsewhere", tape_path)
    with pytest.raises(OSError):
        TapeWriter(tape_path, rank=0, world_size=1, local_rank=0)
    assert not (tmp_path / "elsewhere").exists()


def test_no_room_is_an_error_at_creation(tape_path: str) -> None:
    """A full disk raises OSError when the tape is made, and leaves no half of it behind."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OSError) as caught:
            TapeWriter(tape_path, rank=0, world_size=1, local_rank=0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.errno in (errno.EFBIG, errno.ENOSPC)
    assert not os.path.exists(tape_path)


def test_a_full_file_system_is_an_error_at_creation(tmp_path: Path) -> None:
    """The same with a file system that is really full, where one may be mounted."""
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(small)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("may not mount a file system here")
    try:
        with pytest.raises(OSError, match="No space"):
            TapeWriter(str(small / "t.tape"), rank=0, world_size=1, local_rank=0)
        assert not list(small.iterdir())
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_missing_folder_is_an_error_at_creation(tmp_path: Path) -> None:
    """No folder is made up."""
    with pytest.raises(FileNotFoundError):
        TapeWriter(str(tmp_path / "none" / "t.tape"), rank=0, world_size=1, local_rank=0)


def test_a_read_only_place_is_an_error_at_creation() -> None:
    """A file system that takes no files (here /proc, since root may write anywhere) gives OSError."""
    with pytest.raises(OSError):
        TapeWriter("/proc/t.tape", rank=0, world_size=1, local_rank=0)


def test_without_fallocate_zeros_are_written(tape_path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system or file system cannot reserve blocks, they are taken by writing."""
    monkeypatch.delattr(os, "posix_fallocate")
    TapeWriter(tape_path, rank=0, world_size=1, local_rank=0, slots=8).close()
    assert TapeReader(tape_path).header.slots == 8


def test_a_bad_step_is_not_written(writer: TapeWriter, tape_path: str, values: Values) -> None:
    """A value of the wrong type raises, and the next good step takes its place."""
    bad = values(0)
    bad[0] = 0.5
    with pytest.raises(struct.error):
        writer.append(1, bad)
    writer.append(2, values(0))
    assert TapeReader(tape_path).read(0, 9).end_ns.tolist() == [2]


def test_a_forked_child_never_writes(writer: TapeWriter, tape_path: str, values: Values) -> None:
    """Whatever a child still holds, the append or the live area, reaches private memory."""
    append, live = writer.append, writer.live
    append(1, values(0))

    def child() -> None:
        live[layout.LIVE_PHASE] = 5
        append(2, values(1))
        writer.live[layout.LIVE_CLOSED] = 1

    before = Path(tape_path).read_bytes()
    assert in_child(child) == 0
    assert Path(tape_path).read_bytes() == before


def test_the_parent_writes_on_after_a_fork(writer: TapeWriter, tape_path: str, values: Values) -> None:
    """A fork takes nothing from the parent."""
    assert in_child(lambda: None) == 0
    writer.append(1, values(0))
    assert len(TapeReader(tape_path).read(0, 9)) == 1


def test_after_close_nothing_is_written_and_nothing_crashes(
    writer: TapeWriter, tape_path: str, values: Values
) -> None:
    """A hook that fires after detach is harmless."""
    append, live = writer.append, writer.live
    append(1, values(0))
    writer.close()
    before = Path(tape_path).read_bytes()
    append(2, values(1))
    live[layout.LIVE_PHASE] = 3
    writer.close()
    assert Path(tape_path).read_bytes() == before


def test_close_marks_a_clean_end(writer: TapeWriter, tape_path: str) -> None:
    """Only `close` says that the end was meant."""
    reader = TapeReader(tape_path)
    before = reader.live().closed
    writer.close()
    assert (before, reader.live().closed) == (False, True)


def test_the_header_names_this_process(writer: TapeWriter, tape_path: str) -> None:
    """Process id and start time together tell the writer from any later process."""
    header = TapeReader(tape_path).header
    with open("/proc/self/stat") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])
    assert (header.pid, header.start_ticks) == (os.getpid(), ticks)


def test_it_is_imported_without_numpy_or_torch() -> None:
    """The writer adds neither, nor the agent's or hub's libraries, to a process that has them not."""
    foreign = ("numpy", "torch", "psutil", "flask", "socketio")
    script = f"import sys, monitor.tape.writer; print([m for m in {foreign} if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "[]\n"


def test_a_kill_loses_nothing(tmp_path: Path) -> None:
    """Steps appended right before SIGKILL are all in the file: there is no flush to miss."""
    path = tmp_path / "t.tape"
    script = textwrap.dedent(
        f"""
        import os, signal
        from monitor.schema import TAPE_METRICS
        from monitor.tape.writer import TapeWriter
        writer = TapeWriter({str(path)!r}, rank=0, world_size=1, local_rank=0)
        for step in range(1000):
            writer.append(step, [0] * len(TAPE_METRICS))
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    assert len(TapeReader(str(path)).read(0, 2000)) == 1000


def test_a_full_journal_says_so_once(tmp_path: Path) -> None:
    """The first event that does not fit raises; later ones are counted, whatever their size."""
    journal = JournalWriter(str(tmp_path / "j"))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        journal.append({"kind": "log", "text": "fits"})
        with pytest.raises(JournalFull):
            journal.append({"kind": "log", "text": "x" * 200})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    journal.append({"kind": "log"})
    assert journal.dropped == 2
    assert [e["text"] for e in JournalReader(str(tmp_path / "j")).read()] == ["fits"]


def test_a_forked_child_never_writes_events(tmp_path: Path) -> None:
    """The child's copy of the journal is closed."""
    journal = JournalWriter(str(tmp_path / "j"))
    assert in_child(lambda: journal.append({"kind": "from the child"})) == 0
    journal.append({"kind": "from the parent"})
    assert [e["kind"] for e in JournalReader(str(tmp_path / "j")).read()] == ["from the parent"]


def test_an_oversized_event_is_dropped_and_counted(tmp_path: Path) -> None:
    """One event larger than a frame may be costs itself, not the journal."""
    journal = JournalWriter(str(tmp_path / "j"))
    journal.append({"kind": "log", "text": "x" * 2_000_000})
    journal.append({"kind": "log", "text": "small"})
    assert journal.dropped == 1
    assert len(JournalReader(str(tmp_path / "j")).read()) == 1


def test_a_closed_journal_takes_nothing(tmp_path: Path) -> None:
    """Appending after close is harmless, closing twice too."""
    journal = JournalWriter(str(tmp_path / "j"))
    journal.close()
    journal.close()
    journal.append({"kind": "late"})
    assert (tmp_path / "j").read_bytes() == b""
