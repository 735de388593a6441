"""Plays a training process: writes a tape and a journal as the probe does, then ends as it is told.

    python trainer.py SPOOL JSON

JSON: rank, world_size, steps (None: for ever), step_s, phase, children, env, cgroup, faults (leave traces),
end (see `end`).
Prints `ready` once its steps are written.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import hangs

from monitor.probe.faults import Faults
from monitor.probe.patches import Patches
from monitor.schema import PHASES, TAPE_METRICS
from monitor.tape import layout
from monitor.tape.writer import JournalWriter, TapeWriter


def main(spool: str, plan: dict[str, Any]) -> int:
    os.environ.update(plan.get("env", {}))
    if "cgroup" in plan:
        with open(plan["cgroup"], "w") as file:
            file.write(str(os.getpid()))
    rank = plan.get("rank", 0)
    stem = f"{spool}/rank-{rank}-{os.getpid()}"
    journal = JournalWriter(f"{stem}.journal")
    tape = TapeWriter(f"{stem}.tape", rank=rank, world_size=plan.get("world_size", 1), local_rank=rank)
    event(journal, "attach", pid=os.getpid())
    if plan.get("faults"):
        event(journal, "faults", **Faults(f"{stem}.stacks", Patches()).description())
    for name, value in plan.get("facts", {}).items():
        event(journal, "fact", name=name, value=value)
    if plan.get("end") in ("hang worker", "hang workers_locked", "hang loading", "hang all_reduce"):
        importlib.import_module("torch.utils.data")  # as a training has it; else importing it is a stall
    children = [subprocess.Popen([sys.executable, "-c", code]) for code in plan.get("children", [])]
    steps = plan.get("steps")
    step = 0
    while steps is None or step < steps:
        time.sleep(plan.get("step_s", 0.001))
        one_step(tape, step, plan)
        step += 1
        if step == plan.get("ready_at"):
            print("ready", flush=True)
    enter(tape, plan.get("phase", "forward"))
    print("ready", *[child.pid for child in children], flush=True)
    if plan.get("hold"):
        read_line()
    return end(tape, journal, plan.get("end", "exit 0"))


def one_step(tape: TapeWriter, step: int, plan: dict[str, Any]) -> None:
    now = time.perf_counter_ns()
    values: list[float] = [1_000_000 if m.tape == "ns" else float(step) for m in TAPE_METRICS]
    if "shares" in plan:
        values[: len(PHASES)] = [int(plan["shares"].get(phase, 0) * 1e6) for phase in PHASES]
    tape.append(now, values)
    enter(tape, plan.get("between", "data"))


def enter(tape: TapeWriter, phase: str) -> None:
    tape.live[layout.LIVE_PHASE] = PHASES.index(phase)
    tape.live[layout.LIVE_SINCE_NS] = time.perf_counter_ns()


def event(journal: JournalWriter, kind: str, **fields: Any) -> None:
    journal.append({"kind": kind, "t_ns": time.perf_counter_ns(), "step": 0, **fields})


def end(tape: TapeWriter, journal: JournalWriter, how: str) -> int:
    word, _, rest = how.partition(" ")
    if word == "kill":
        os.kill(os.getpid(), int(rest))
    elif word == "crash":
        hangs.crash()
    elif word == "exit":
        event(journal, "end", code=None, reason="end of the script")
        tape.close()
        return int(rest)
    elif word == "raise":
        event(journal, "exception", type="RuntimeError", message=rest, traceback="…", location="train.py:7")
        event(journal, "end", code=1, reason=f"RuntimeError: {rest}")
        tape.close()
        return 1
    elif word == "vanish":
        os._exit(int(rest))
    elif word == "hang":
        hangs.HANGS[rest]()
    elif word == "slow":
        slow(tape, rest)
        return end(tape, journal, "exit 0")
    elif word == "detach":
        event(journal, "end", code=0, reason="detached")
        tape.close()
    read_line()
    if word == "go":
        for step in range(int(rest)):
            one_step(tape, step, {})
            time.sleep(0.01)
        return end(tape, journal, "exit 0")
    return 0


def slow(tape: TapeWriter, how: str) -> None:
    """Go on for two seconds without a step: from phase to phase, or inside one."""
    phase, moving = how.split()
    enter(tape, phase)
    until = time.monotonic() + 2.0
    while time.monotonic() < until:
        time.sleep(0.02)
        if moving == "moving":
            enter(tape, phase)
    one_step(tape, 0, {})
    for step in range(100):
        time.sleep(0.01)
        one_step(tape, step, {})


def read_line() -> None:
    sys.stdin.readline()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.exit(main(sys.argv[1], json.loads(sys.argv[2])))
