"""`torchvitals run SCRIPT`: a script that knows nothing of the monitor, monitored.

The script is a plain `python SCRIPT ARGS` in a process of its own: same arguments, same streams, same
process group. This process only passes signals on, waits, and afterwards tells what was seen.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from monitor import launcher, options, session
from monitor.agent.terminal import TerminalLines
from monitor.cli import UsageError

HELP = "run a training script that knows nothing of the monitor, monitored"
EXAMPLE = """  torchvitals run train.py --epochs 3
  torchvitals run --no-dashboard --json report.json train.py
  torchrun --nproc-per-node=2 -m monitor run train.py"""

#: How long the report may take to be final after the script's end (the contract says 10 s at the latest).
REPORT_WITHIN_S = 8.0
#: Seconds between two looks at what the agent has to say while the script runs.
POLL_S = 0.5
PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT", "SIGWINCH")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--run-dir", metavar="DIR", help="where the run is kept")
    parser.add_argument("--name", help="what the run is called (default: the script's name)")
    parser.add_argument("--no-dashboard", action="store_true", help="start no web server")
    parser.add_argument("--json", metavar="FILE", help="write the report there at the end")
    parser.add_argument(
        "--on-stall",
        choices=options.ON_STALL,
        help="write the stacks of a stall that lasts into a file, or end the ranks that stall as well",
    )
    parser.add_argument(
        "--on-stall-grace", metavar="S", help="seconds that a stall must last after it was told (default: 60)"
    )
    parser.add_argument(
        "script", metavar="SCRIPT", help="the training script, or a launcher such as torchrun"
    )
    parser.add_argument("args", nargs=argparse.REMAINDER, metavar="ARGS", help="the script's own arguments")


def run(args: argparse.Namespace) -> int:
    """Run the script; returns its exit status, or ends by the signal that ended it."""
    script = _found(args.script)
    rank, world, local = launcher.ranks_from_environment() or (0, 1, 0)
    handle, env = (None, dict(os.environ)) if options.switched_off() else _prepared(args, rank, world)
    command = [sys.executable, *subprocess._args_from_interpreter_flags(), script, *args.args]  # type: ignore[attr-defined]
    began = time.monotonic()
    # One rank of a host speaks for all.
    terminal_lines = TerminalLines(handle.spool) if handle is not None and local == 0 else None
    code = _waited(command, env, handle, rank, terminal_lines)
    if handle is not None and rank == 0 and not (code and launcher.restarts_left()):
        _print_summary(handle, args.json, code, time.monotonic() - began)
    if code < 0:
        _end_by(-code)
    return code


def _found(script: str) -> str:
    if Path(script).is_file():
        return script
    found = shutil.which(script)
    if found is None:
        raise UsageError(f"no such script: {script}; give the path of a Python file")
    with open(found, "rb") as file:
        if b"python" not in file.readline(200):
            raise UsageError(f"{found} is no Python script; give the path of a Python file")
    return found


def called(script: str, args: Sequence[str]) -> str:
    """What a run is called when nobody says: for a launcher's sake after the script that it starts."""
    scripts = [script, *args] if script.endswith(".py") else [*args, script]
    return next((Path(word).stem for word in scripts if word.endswith(".py")), Path(script).stem)


def _prepared(
    args: argparse.Namespace, rank: int, world: int
) -> tuple[launcher.RunHandle | None, dict[str, str]]:
    env = dict(os.environ)
    given: dict[str, Any] = {"name": args.name, "run_dir": args.run_dir}
    given.update(on_stall=args.on_stall, on_stall_grace_s=args.on_stall_grace)
    if args.no_dashboard:
        given["dashboard"] = False
    try:
        chosen = options.resolve(given)
        key = launcher.run_key()
        name = chosen.name or called(args.script, args.args)
        about = {"host": session.host_name(), "world_size": world, "argv": [args.script, *args.args]}
        handle = launcher.enter(
            chosen, key, name=name, facts={**about, "python": sys.executable, "cwd": os.getcwd()}
        )
    except ValueError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        print(f"torchvitals: monitoring is off: {error}. The script runs all the same.", file=sys.stderr)
        return None, env
    if rank == 0 and handle.url:
        print(f"torchvitals: {handle.url}", file=sys.stderr, flush=True)
    paths = [str(launcher.STARTUP), *filter(None, [env.get("PYTHONPATH")])]
    env.update(MONITOR_RUN_KEY=key, PYTHONPATH=os.pathsep.join(paths), MONITOR_RUN_DIR=str(chosen.run_dir))
    env["MONITOR_LAUNCHER_PID"] = str(os.getppid())
    if not chosen.dashboard:
        env["MONITOR_DASHBOARD"] = "off"
    return handle, env


def _waited(
    command: list[str],
    env: Mapping[str, str],
    handle: launcher.RunHandle | None,
    rank: int,
    terminal_lines: TerminalLines | None,
) -> int:
    """Start the script, pass signals on, wait. Returns its status, negative for a signal."""
    wanted = {getattr(signal, name) for name in PASSED_ON if hasattr(signal, name)} | {signal.SIGCHLD}
    old = signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
    pid = os.posix_spawn(command[0], command, env, setsigmask=old)
    if handle is not None:
        _note(handle.spool / f"launched-{rank}", {"pid": pid})
    while True:
        seen = signal.sigwaitinfo(wanted) if terminal_lines is None else signal.sigtimedwait(wanted, POLL_S)
        for line in terminal_lines.new() if terminal_lines is not None else ():
            print(f"torchvitals: {line}", file=sys.stderr, flush=True)
        if seen is None:
            continue
        if seen.si_signo != signal.SIGCHLD:
            # What came from the terminal reached the script already: it is in the same group.
            if seen.si_code <= 0:
                os.kill(pid, seen.si_signo)
            continue
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended == pid:
            break
    code = os.waitstatus_to_exitcode(status)
    if handle is not None:
        how = {"code": None, "signal": -code} if code < 0 else {"code": code, "signal": None}
        _note(handle.spool / f"exit-{rank}.json", how)
        (handle.spool / f"pending-{os.getpid()}").unlink(missing_ok=True)
    signal.pthread_sigmask(signal.SIG_SETMASK, old)
    return code


def _note(path: Path, content: Mapping[str, Any]) -> None:
    """Tell the agent. Written beside and renamed, so that it is never read half."""
    try:
        part = path.with_name(f".{path.name}.part")
        part.write_text(json.dumps(content))
        part.replace(path)
    except OSError:
        return


def _print_summary(handle: launcher.RunHandle, json_file: str | None, code: int, lasted_s: float) -> None:
    from monitor import report

    found = report.wait(handle.run_dir / handle.run, REPORT_WITHIN_S)
    if json_file:
        try:
            Path(json_file).write_text(json.dumps(found, indent=1, allow_nan=False) + "\n")
        except OSError as error:
            print(f"torchvitals: cannot write {json_file}: {error}", file=sys.stderr)
    print(report.summary(found), file=sys.stderr, flush=True)


def _end_by(number: int) -> None:
    """End by the same signal, so that a shell or a launcher sees what it would have seen."""
    if number in (signal.SIGKILL, signal.SIGSTOP):
        os.kill(os.getpid(), number)
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    time.sleep(1)
