"""Stacks of another Python process, taken from outside by py-spy: also while its interpreter is frozen.

`py-spy dump --nonblocking` neither pauses nor signals the process; it takes 12 to 80 ms.
"""

from __future__ import annotations

import json
import linecache
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monitor.agent.bounded_io import within

#: A dump that takes longer is given up; the processes of one stall are dumped side by side.
DUMP_S = 5.0
#: Kept of one process at most.
MAX_THREADS = 64
MAX_FRAMES = 40

#: A source file may lie on the very mount that a rank hangs at.
READ_S = 0.5
#: Room for an answer that nobody reads while py-spy runs.
PIPE_BYTES = 256 * 1024

_RECORDED = re.compile(r"thread \((\d+)\)(?:: ([^;]*))?;(.*) (\d+)\Z")
_CALL = re.compile(r"(.*) \((.*):(\d+)\)\Z")
_OURS = str(Path(__file__).parents[1]) + os.sep
_INSTALLED = re.compile(r"/(?:site|dist)-packages/|/lib(?:64)?/python\d(?:\.\d+)?/|^<frozen")


@dataclass(frozen=True)
class Frame:
    """One call: the file as Python knows it, the line that runs, the function."""

    file: str
    line: int
    func: str

    @property
    def foreign(self) -> bool:
        """Of the standard library, an installed package, or ourselves: not the user's own code."""
        return bool(_INSTALLED.search(self.file)) or self.file.startswith(_OURS)


@dataclass(frozen=True)
class Thread:
    """One Python thread. `frames` run from the innermost to the outermost."""

    name: str
    native_id: int
    active: bool
    holds_lock: bool
    frames: tuple[Frame, ...]

    @property
    def own(self) -> Frame | None:
        """The innermost frame of the user's own code; None where there is none."""
        return next(iter(self.users), None)

    @property
    def users(self) -> tuple[Frame, ...]:
        """The frames of the user's own code, from the innermost on."""
        return tuple(frame for frame in self.frames if not frame.foreign)

    def passes(self, *parts: str) -> bool:
        """Whether a frame's file contains one of these."""
        return any(part in frame.file for frame in self.frames for part in parts)

    def plain(self) -> dict[str, Any]:
        """As it stands in an event."""
        frames = [{"file": f.file, "line": f.line, "func": f.func} for f in self.frames]
        return {"name": self.name, "frames": frames}


@dataclass(frozen=True)
class Stacks:
    """The threads of one process, the main one first; none, and `why`, where they are not to be had."""

    pid: int
    threads: tuple[Thread, ...] = ()
    why: str | None = None

    @property
    def main(self) -> Thread | None:
        """The main thread: by its system id, and where py-spy cannot tell those (Python 3.10) by its name."""
        known = next((thread for thread in self.threads if thread.native_id == self.pid), None)
        return known or next((t for t in self.threads if not t.native_id and t.name == "MainThread"), None)


class _Spying:
    """py-spy, running in a process of its own until its answer is asked for."""

    def __init__(self, pid: int, *arguments: str, seconds: float = 0.0) -> None:
        self._pid = pid
        self._due_s = time.monotonic() + seconds + DUMP_S
        self._process: subprocess.Popen[bytes] | None = None
        self._why = "py-spy is not installed"
        program = find_program()
        if program is None:
            return
        command = [program, *arguments, "--nonblocking", "-p", str(pid)]
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, pipesize=PIPE_BYTES
            )
        except OSError as error:
            self._why = f"py-spy does not start: {error}"

    def done(self) -> bool:
        """Whether its answer is there. What is overdue is done."""
        return self._process is None or time.monotonic() > self._due_s or self._process.poll() is not None

    def drop(self) -> None:
        """Give it up."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def _answer(self) -> tuple[bytes, str | None]:
        """What it printed, and why that is nothing."""
        if self._process is None:
            return b"", self._why
        try:
            out, err = self._process.communicate(timeout=max(0.01, self._due_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.drop()
            return b"", f"py-spy took longer than {DUMP_S:g} s"
        return out, _reason(err.decode(errors="replace")) if self._process.returncode else None


class Dump(_Spying):
    """All threads of a process, once."""

    def __init__(self, pid: int) -> None:
        super().__init__(pid, "dump", "--json")

    def result(self) -> Stacks:
        """The stacks, or why there are none. Waits DUMP_S at most."""
        out, why = self._answer()
        return Stacks(self._pid, why=why) if why else parse(self._pid, out)


class Recording(_Spying):
    """The main thread of a process, `rate` times a second for `seconds` (whole ones), or to its end.

    One sample costs a few milliseconds less than a dump: py-spy need not find its way in anew.
    """

    def __init__(self, pid: int, seconds: int, rate: int) -> None:
        how = ("--idle", "--threads", "--full-filenames", "--format", "raw", "-o", "/dev/stdout")
        super().__init__(
            pid, "record", *how, "--duration", str(seconds), "--rate", str(rate), seconds=seconds
        )

    def result(self) -> tuple[list[tuple[Thread, int]], str | None]:
        """Distinct stacks of the main thread with their counts; and why there are none."""
        out, why = self._answer()
        return ([] if why else parse_recording(self._pid, out.decode(errors="replace"))), why


def take(pids: Iterable[int]) -> list[Stacks]:
    """Stacks of several processes, side by side. Waits DUMP_S at most."""
    return [dump.result() for dump in [Dump(pid) for pid in pids]]


def parse(pid: int, text: bytes | str) -> Stacks:
    """Stacks from what py-spy prints."""
    try:
        threads = [_thread(found) for found in json.loads(text)][:MAX_THREADS]
    except (ValueError, TypeError, KeyError, AttributeError):
        return Stacks(pid, why="py-spy said something else than expected")
    return Stacks(pid, tuple(sorted(threads, key=lambda thread: thread.native_id != pid)))


def parse_recording(pid: int, text: str) -> list[tuple[Thread, int]]:
    """Stacks of the main thread and how often each was seen, from what `py-spy record` prints."""
    found = []
    for line in text.splitlines():
        match = _RECORDED.match(line)
        if match is None or int(match[1]) != pid:
            continue
        calls = [_CALL.match(part) for part in match[3].split(";")]
        frames = tuple(Frame(call[2], int(call[3]), call[1]) for call in reversed(calls) if call)
        found.append((Thread(match[2] or "", pid, True, False, frames[:MAX_FRAMES]), int(match[4])))
    return found


def short(file: str, folder: str | None) -> str:
    """A path relative to the process's working folder where it lies below it."""
    if folder and file.startswith(folder.rstrip("/") + "/"):
        return file[len(folder.rstrip("/")) + 1 :]
    return file


def source(frame: Frame, folder: str | None) -> str:
    """The text of a frame's line; "" where the file is not to be read, or not within READ_S."""
    file = frame.file if frame.file.startswith("/") or folder is None else f"{folder}/{frame.file}"
    return within(READ_S, lambda: linecache.getline(file, frame.line).strip()[:300], "")


def working_folder(pid: int) -> str | None:
    """Where a process works; None when it is gone."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return None


def find_program() -> str | None:
    """py-spy beside this Python, else on PATH."""
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if beside.exists() else shutil.which("py-spy")


def _thread(found: dict[str, Any]) -> Thread:
    frames = tuple(
        Frame(str(frame["filename"]), int(frame["line"] or 0), str(frame["name"]))
        for frame in found["frames"][:MAX_FRAMES]
    )
    return Thread(
        name=str(found.get("thread_name") or ""),
        native_id=int(found.get("os_thread_id") or 0),
        active=bool(found.get("active")),
        holds_lock=bool(found.get("owns_gil")),
        frames=frames,
    )


def _reason(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line.partition(": ")[2] for line in lines if line[:1].isdigit()]
    first = lines[0].removeprefix("Error: ") if lines else "py-spy failed"
    return f"{first} ({causes[0]})"[:300] if causes else first[:300]
