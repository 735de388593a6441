"""Stacks that a process writes itself: by a signal, where nobody may look into it, and at its death.

The signal is sent to nobody who has not registered it: it would end them. So three things are asked of
the kernel first: that this process handles the signal, that it holds our file open under the number it
was told of, and that it is awake to answer.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monitor.agent import exits, proc
from monitor.agent.stacks import MAX_FRAMES, MAX_THREADS, Frame, Stacks, Thread

#: Seconds a process may take to begin its answer (measured: 0.2 to 2.4 ms where it is let run).
ANSWER_S = 2.0
#: An answer that has not grown for so long is whole; it is written in one go.
QUIET_S = 0.05
#: A page fault or a read holds a process in state "D" for moments; one that stays there so long hangs in it.
MOMENT_S = 0.1
#: Read of a file at most.
MOST_BYTES = 1 << 20
#: Text kept of a fatal trace.
TRACE_CHARS = 8000

#: What faulthandler calls a fatal signal.
_FATAL = {
    "SIGSEGV": ("Segmentation fault",),
    "SIGABRT": ("Aborted",),
    "SIGBUS": ("Bus error",),
    "SIGFPE": ("Floating point exception", "Floating-point exception"),
    "SIGILL": ("Illegal instruction",),
}
_THREAD = re.compile(r"(Current thread|Thread) 0x([0-9a-f]+)(?: \[(.*)\])? \(most recent call first\):")
_FRAME = re.compile(r'  File "(.*)", line (\d+|\?\?\?) in (.*)')
_ESCAPE = re.compile(r"\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|\\U([0-9a-f]{8})")
_START = "Fatal Python error: "


@dataclass(frozen=True)
class Faults:
    """What a rank has registered.

    Attributes:
        signal: asks for stacks; None where there is none.
        fd: the number under which the rank, and its forked workers, hold the file open.
        file: where they write.
        main: pthread identity of the main thread.
    """

    signal: int | None
    fd: int
    file: Path
    main: int


def registered(event: Mapping[str, Any], folder: Path) -> Faults | None:
    """From the probe's `faults` event; None for one that makes no sense."""
    number, fd, name, main = (event.get(key) for key in ("signal", "fd", "file", "main"))
    if not (isinstance(fd, int) and isinstance(name, str) and name == os.path.basename(name)):
        return None
    asks = number if isinstance(number, int) and 0 < number <= proc.SIGNALS else None
    return Faults(asks, fd, folder / name, main if isinstance(main, int) else 0)


def ask(pid: int, faults: Faults, closed: Callable[[], bool] = lambda: False) -> Stacks:
    """Have a rank, or a worker that it has forked, write its stacks. Waits ANSWER_S at most.

    Args:
        closed: whether the rank has taken its registration back; asked last of all.
    """
    handle = exits.open_pidfd(pid)
    if handle is None or faults.signal is None:
        if handle is not None:
            os.close(handle)
        return Stacks(pid, why="no signal to ask it by")
    try:
        why = _why_not(pid, faults)
        if why is None:
            before = faults.file.stat().st_size
            if closed():
                return Stacks(pid, why="it has detached")
            signal.pidfd_send_signal(handle, faults.signal)
            return parse(pid, _answer(faults, before), faults.main)
    except OSError as error:
        why = f"it cannot be asked: {error.strerror or error}"
    finally:
        os.close(handle)
    return Stacks(pid, why=why)


def last_words(faults: Faults | None, number: int | None) -> dict[str, Any]:
    """Of a rank that died by a signal: `trace`, `frame` (or None). Empty where it left none."""
    try:
        names = _FATAL.get(signal.Signals(number).name, ()) if number else ()
        text = _tail(faults.file, 0) if faults is not None and names else ""
    except (OSError, ValueError):
        return {}
    start = max((text.rfind(_START + name) for name in names), default=-1)
    if faults is None or start < 0:
        return {}
    trace = text[start:]
    current = next((thread for is_current, _, thread in _threads(trace) if is_current), None)
    crash_frame = current.own or next(iter(current.frames), None) if current else None
    return {"trace": trace[:TRACE_CHARS], "frame": crash_frame}


def parse(pid: int, text: str, main: int) -> Stacks:
    """Stacks from faulthandler's text. The main thread is known by its identity, else it is the oldest."""
    found = _threads(text)
    if not found:
        return Stacks(pid, why="it did not answer the signal")
    oldest = next((at for at, (_, ident, _) in enumerate(found) if ident == main), len(found) - 1)
    threads = [thread for _, _, thread in found]
    first = threads.pop(oldest)
    known = Thread("MainThread", pid, first.active, False, first.frames)
    return Stacks(pid, (known, *threads)[:MAX_THREADS])


def _threads(text: str) -> list[tuple[bool, int, Thread]]:
    """Whether it wrote the text, identity, and stack of each thread."""
    found: list[tuple[bool, int, str, list[Frame]]] = []
    for line in text.splitlines():
        head = _THREAD.fullmatch(line)
        frame = _FRAME.fullmatch(line)
        if head is not None:
            found.append((head[1] == "Current thread", int(head[2], 16), head[3] or "", []))
        elif frame is not None and found and len(found[-1][3]) < MAX_FRAMES:
            number = int(frame[2]) if frame[2].isdigit() else 0
            found[-1][3].append(Frame(_unescaped(frame[1]), number, _unescaped(frame[3])))
    return [
        (current, ident, Thread(name, 0, False, False, tuple(frames)))
        for current, ident, name, frames in found
    ]


def _why_not(pid: int, faults: Faults) -> str | None:
    """Why the signal must not be sent; None when it may."""
    status = _awake(pid)
    if status is None or faults.signal is None:
        return "nothing is known of it"
    if faults.signal not in status.caught:
        return "it has not registered the signal"
    if status.state in "TtDZX":
        return "it is stopped, or waits where no signal reaches it"
    if faults.signal in status.pending:
        return "it has not answered the last signal"
    try:
        ours = os.path.samefile(f"/proc/{pid}/fd/{faults.fd}", faults.file)
    except OSError:
        ours = False
    return None if ours else "it no longer holds the file open"


def _awake(pid: int) -> proc.Signals | None:
    """How a process stands with signals, once it waits for no disk; after MOMENT_S as it is."""
    until_s = time.monotonic() + MOMENT_S
    while (status := proc.signals(pid)) is not None and status.state == "D" and time.monotonic() < until_s:
        time.sleep(MOMENT_S / 10)
    return status


def _answer(faults: Faults, before: int) -> str:
    """What was written from `before` on, once it stops growing."""
    until_s = time.monotonic() + ANSWER_S
    size, grown_s = before, time.monotonic()
    while time.monotonic() < until_s:
        now = faults.file.stat().st_size
        if now != size:
            size, grown_s = now, time.monotonic()
        elif size > before and time.monotonic() - grown_s > QUIET_S:
            break
        time.sleep(QUIET_S / 10)
    return _tail(faults.file, before)


def _tail(file: Path, start: int) -> str:
    with open(file, "rb") as opened:
        opened.seek(max(start, os.fstat(opened.fileno()).st_size - MOST_BYTES))
        return opened.read(MOST_BYTES).decode(errors="replace")


def _unescaped(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        code = int(found[1] or found[2] or found[3], 16)
        return chr(code) if code < 0xD800 or 0xDFFF < code <= 0x10FFFF else "\ufffd"

    return _ESCAPE.sub(character, text)
