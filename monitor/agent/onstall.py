"""What the user wants done about a stall that lasts: its stacks in a file, or an end to it.

Off unless asked for. Nothing is done before the stall has lasted for the grace time beyond being told,
in one phase and at one line: a rank that moves, however slowly, is left alone, and so is one that a
person holds (a debugger, SIGSTOP). One line may do a lot of work (a checkpoint, an eigendecomposition):
before an end comes, a rank that computes or moves data gets many times the grace, and so does one that
waits for such a rank of this host.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from monitor.agent import exits, proc
from monitor.agent.follow import Followed
from monitor.agent.stalls import Lasting, Stalls

DUMP, ABORT = "dump", "abort"
#: Causes of which somebody else knows more than we do.
SPARED = frozenset({"stopped", "debugger", "worker_stopped"})
#: A rank at work is ended only after so many times the grace: what turns round and round is stuck, too.
AT_WORK = 10.0
#: What counts as work: a main thread that has a fifth of a CPU (they may be crowded); a megabyte a second
#: from or to files (a logger's share is far below it, a slow network file system's above).
WORK_CPU, WORK_BYTES = 0.2, 1e6
#: A rank that has not gone so many seconds after SIGABRT gets SIGKILL.
KILL_S = 5.0

Event = dict[str, Any]


@dataclass
class _Case:
    """One rank's stall, since it was last seen to move."""

    lasting: Lasting
    tape: Followed
    began_ns: int = 0
    done_before: tuple[float, int] = (0.0, 0)
    factor: float = 1.0
    done: bool = False
    aborted_s: float | None = None
    why: str = ""

    def begin(self) -> None:
        """Count its time from now on."""
        self.began_ns, self.done_before = time.perf_counter_ns(), _work(self.tape.pid)
        self.factor = 1.0

    def computes(self) -> bool:
        """Whether its main thread had its share of a CPU since it began."""
        return _work(self.tape.pid)[0] - self.done_before[0] >= WORK_CPU * self._lasted_s()

    def moves(self) -> bool:
        """Whether it read or wrote files since it began."""
        return _work(self.tape.pid)[1] - self.done_before[1] >= WORK_BYTES * self._lasted_s()

    def _lasted_s(self) -> float:
        return max((time.perf_counter_ns() - self.began_ns) / 1e9, 1e-3)


class OnStall:
    """Acts for the user.

    Args:
        action: DUMP, ABORT, or None for nothing at all.
        grace_s: seconds that a stall must last after it was told.
        folder: where the stacks go; made when it is missing.
    """

    def __init__(self, action: str | None = None, grace_s: float = 60.0, folder: Path = Path()) -> None:
        self._action = action
        self._grace_s = grace_s
        self._folder = folder
        self._cases: dict[str, _Case] = {}
        self._going: set[str] = set()

    def act_if_due(self, tape: Followed, stalls: Stalls) -> list[Event]:
        """Do what is due for one rank; events of what was done, without time."""
        if self._action is None:
            return []
        case, lasting = self._cases.get(str(tape.path)), stalls.lasting(tape)
        if case is not None and case.aborted_s is not None:
            self._kill(tape, case)
            return []
        self._going.discard(str(tape.path))
        if lasting is None:
            self._cases.pop(str(tape.path), None)
            if tape.live is not None and not tape.live.closed:
                self._going.add(str(tape.path))
            return []
        if case is None or case.lasting != lasting:
            case = self._cases[str(tape.path)] = _Case(lasting, tape)
            case.begin()
        waited_s = (time.perf_counter_ns() - max(case.began_ns, stalls.excused_ns)) / 1e9
        if case.done or waited_s < self._grace_s * case.factor:
            return []
        return self._act(tape, stalls, case)

    def ended(self, tape: Followed, how: exits.Exit, children: Iterable[tuple[int, int]]) -> exits.Exit:
        """How a rank ended, with our part in it. Loader workers that outlive a rank ended here go too."""
        case = self._cases.pop(str(tape.path), None)
        self._going.discard(str(tape.path))
        if case is None or case.aborted_s is None or how.signal not in (signal.SIGABRT, signal.SIGKILL):
            return how
        for pid, start_ticks in children:
            found = proc.stat(pid)
            if found is not None and found.name == proc.WORKER_NAME:
                send(pid, start_ticks, signal.SIGKILL)
        return replace(how, reason=f"{how.reason}: {case.why}", on_stall=True)

    def _act(self, tape: Followed, stalls: Stalls, case: _Case) -> list[Event]:
        """A last look decides: what has moved since the stall was told is given its time anew."""
        seen = stalls.current(tape)
        after = stalls.lasting(tape)
        if seen is None or after != case.lasting or seen["cause_code"] in SPARED:
            case.begin()
            return []
        if self._action == ABORT and case.factor < AT_WORK and self._at_work(case, seen["cause_code"]):
            case.factor = AT_WORK
            return []
        case.done = True
        file, outcome = self._dump(tape, seen)
        ends = self._action == ABORT and tape.pid != os.getpid()
        text = f"rank {tape.rank} has made no step for {seen['for_s']:g} s; {outcome}"
        if ends and send(tape.pid, tape.start_ticks, signal.SIGABRT):
            case.aborted_s = time.monotonic()
            case.why = f"ended by on_stall=abort after {seen['for_s']:g} s without a step"
            text += "; it is ended, as on_stall=abort asks for"
        event = {
            "kind": "on_stall",
            "rank": tape.rank,
            "action": ABORT if case.aborted_s is not None else DUMP,
            "step": seen["step"],
            "for_s": seen["for_s"],
            "file": file,
            "text": text,
        }
        return [event, {"kind": "warn", "rank": tape.rank, "text": text}]

    def _at_work(self, case: _Case, code: str) -> bool:
        """Whether it may be slow rather than stuck. A wait for other ranks spins: there, those are asked."""
        if code == "collective":
            others = [other for other in self._cases.values() if other is not case]
            return bool(self._going) or any(other.moves() for other in others)
        # what waits for a GPU spins as well, and with several ranks that may be for one that never comes
        spins = case.tape.world_size > 1 and proc.holds_gpu(case.tape.pid)
        return case.moves() or (code == "busy" and not spins and case.computes())

    def _dump(self, tape: Followed, seen: Mapping[str, Any]) -> tuple[str | None, str]:
        path = self._folder / f"stall-rank-{tape.rank}-step-{seen['step']}.txt"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            path.write_text(written(seen, tape.pid), errors="replace")
        except OSError as error:
            return None, f"its stacks cannot be written: {error}"
        return str(path), f"its stacks are in {path}"

    def _kill(self, tape: Followed, case: _Case) -> None:
        assert case.aborted_s is not None
        if time.monotonic() - case.aborted_s > KILL_S:
            send(tape.pid, tape.start_ticks, signal.SIGKILL)


def _work(pid: int) -> tuple[float, int]:
    """CPU seconds of the main thread, and bytes from and to files, through the page cache or past it."""
    found, moved = proc.stat(pid, thread=pid), proc.file_bytes(pid)
    return (found.cpu_s if found else 0.0), moved


def send(pid: int, start_ticks: int, number: int) -> bool:
    """Send a signal to this very process and no later one of its id; whether it was there to get it."""
    handle = exits.open_pidfd(pid)
    if handle is None:
        return False
    try:
        if not proc.is_same(pid, start_ticks):
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def written(seen: Mapping[str, Any], pid: int) -> str:
    """A `stall` event as a file for a person: what is known, then every stack, innermost call last."""
    head = [
        f"No step for {seen['for_s']:g} s: rank {seen['rank']} (pid {pid}), "
        f"in {seen['phase'] or 'no phase'}, after step {seen['step']}",
        f"Cause: {seen['cause']}",
        *([f"At: {seen['location']} in {seen['function']}: {seen['source']}"] if seen["location"] else []),
        *([f"Kernel: {seen.get('syscall', '')} {seen.get('wchan', '')}".rstrip()] if "wchan" in seen else []),
        *([f"Machine: {seen['machine']}"] if seen.get("machine") else []),
        *([f"No stack: {seen['why_no_stack']}"] if seen["why_no_stack"] else []),
    ]
    parts = ["\n".join(head), *_stacks(f"rank {seen['rank']} (pid {pid})", seen["threads"])]
    for worker in seen["workers"]:
        parts += _stacks(f"worker (pid {worker['pid']})", worker["threads"])
    return "\n\n".join(parts) + "\n"


def _stacks(of: str, threads: Iterable[Mapping[str, Any]]) -> list[str]:
    texts = []
    for thread in threads:
        frames = [
            f'  File "{frame["file"]}", line {frame["line"]}, in {frame["func"]}'
            for frame in reversed(thread["frames"])
        ]
        texts.append("\n".join([f"{of}, thread {thread['name'] or 'without a name'}:", *frames]))
    return texts
