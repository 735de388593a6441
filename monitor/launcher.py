"""Starts the agent and the hub beside the training, or finds those that run already.

Everything here happens once, inside `attach`, in some tens of milliseconds: the hub's port is bound
here and handed over, so its address is known before the hub is up, and a browser that comes early
simply waits for the first answer.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monitor import state
from monitor.options import Options

#: The folder that holds this package; the helpers look there last, so it never shadows anything.
HOME = Path(__file__).resolve().parent.parent
#: The folder whose sitecustomize attaches to a script that knows nothing of us.
STARTUP = Path(__file__).resolve().parent / "startup"

_BOOT = (
    "import sys; home = sys.argv.pop(1); home in sys.path or sys.path.append(home);"
    " from monitor.cli import main; sys.exit(main())"
)

#: What torchrun calls a run that nobody named: no name of its own.
UNNAMED = ("", "none")

FIRST_PORT = 7007
#: Ports tried before giving up.
PORTS = 200


@dataclass(frozen=True)
class RunHandle:
    """Where a rank writes, and where its run can be seen.

    Attributes:
        run: the run's id.
        spool: folder for tapes and journals, on a local disk.
        run_dir: folder that keeps the runs.
        url: dashboard address with its token; None without a dashboard.
        started: whether an agent process follows the spool; False where none could be started.
        agent: its process id.
    """

    run: str
    spool: Path
    run_dir: Path
    url: str | None
    started: bool = True
    agent: int | None = None


#: Variables in which launchers tell rank, world size and local rank: torchrun and those like it, Slurm's srun
#: (the tasks of the step, or of the job where it is older), Open MPI, and MPICH with its kin.
LAUNCHERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
)


def run_key(env: Mapping[str, str] = os.environ, *, ranks: int = 1) -> str:
    """What the ranks of one run have in common on this host, and no other run: the launcher's own identity.

    torchrun sets TORCHELASTIC_RUN_ID, Slurm SLURM_JOB_ID and SLURM_STEP_ID, `torchvitals run` sets
    MONITOR_RUN_KEY. Ranks that were merely spawned share their master's address and their parent.

    Args:
        ranks: how many the process group has, where there is one.
    """
    if env.get("MONITOR_RUN_KEY"):
        return env["MONITOR_RUN_KEY"]
    master = f"{env.get('MASTER_ADDR', '')}:{env.get('MASTER_PORT', '')}"
    elastic = env.get("TORCHELASTIC_RUN_ID", "")
    if elastic not in UNNAMED:
        # The master's port changes when ranks are restarted, and it is the same run all the same.
        return f"elastic:{elastic}"
    if elastic:
        return f"elastic:{elastic}:{master}"
    if env.get("SLURM_JOB_ID") and env.get("SLURM_NTASKS", "1") != "1":
        return f"slurm:{env['SLURM_JOB_ID']}:{env.get('SLURM_STEP_ID', '')}"
    if master != ":":
        return f"master:{master}:{os.getppid()}"
    if ranks > 1:
        return f"parent:{os.getppid()}"
    return f"pid:{os.getpid()}:{time.perf_counter_ns()}"


def ranks_from_environment(env: Mapping[str, str] = os.environ) -> tuple[int, int, int] | None:
    """Rank, world size and local rank as a launcher tells them; None where none does.

    The batch script of a Slurm job is no rank, though Slurm numbers it as one: only `srun` makes steps.
    """
    for rank, size, _ in LAUNCHERS:
        if "SLURM" in rank and not env.get("SLURM_STEP_ID"):
            continue
        if env.get(rank, "").isdigit() and env.get(size, "").isdigit():
            return int(env[rank]), int(env[size]), local_rank(env)
    return None


def local_rank(env: Mapping[str, str] = os.environ) -> int:
    """The rank's number on its host as its launcher tells it; 0 where none does."""
    local_ranks = (env.get(local, "") for _, _, local in LAUNCHERS)
    return next((int(number) for number in local_ranks if number.isdigit()), 0)


def restarts_left(env: Mapping[str, str] = os.environ) -> int:
    """How often torchrun will start this rank anew, should it fail."""
    done, allowed = (env.get(f"TORCHELASTIC_{name}", "") for name in ("RESTART_COUNT", "MAX_RESTARTS"))
    return int(allowed) - int(done) if done.isdigit() and allowed.isdigit() else 0


def shared_run_id(name: str, env: Mapping[str, str] = os.environ) -> str | None:
    """The id under which every host of a job knows its run, without asking another; None where none can be.

    MONITOR_RUN names it; else it is made of what the launcher tells all hosts and no other job: Slurm's
    job and step, or torchrun's run id with its master's address.

    Raises:
        ValueError: MONITOR_RUN is no name of letters, digits, '.', '_' and '-'.
    """
    given = env.get("MONITOR_RUN")
    if given:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", given):
            raise ValueError(f"MONITOR_RUN is a name of letters, digits, '.', '_' and '-'; got {given!r:.80}")
        return given
    day = time.strftime("%Y%m%d", time.gmtime(float(env.get("SLURM_JOB_START_TIME") or time.time())))
    if env.get("SLURM_JOB_ID") and env.get("SLURM_NTASKS", "1") != "1":
        parts = [env["SLURM_JOB_ID"], env.get("SLURM_STEP_ID", ""), env.get("SLURM_RESTART_COUNT", "")]
    elif env.get("TORCHELASTIC_RUN_ID", "") not in UNNAMED:
        parts = [env["TORCHELASTIC_RUN_ID"], env.get("MASTER_ADDR", ""), env.get("MASTER_PORT", "")]
    else:
        return None
    digest = hashlib.sha256(":".join(parts).encode()).hexdigest()[:8]
    return f"{day}-{_plain(name)}-{digest}"


def new_run_id(name: str, now: time.struct_time | None = None) -> str:
    """`20261130-031620-train-1f3a`: sorts by time, says what it was, never meets another."""
    stamp = time.strftime("%Y%m%d-%H%M%S", now or time.localtime())
    return f"{stamp}-{_plain(name)}-{secrets.token_hex(2)}"


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:48] or "run"


def enter(options: Options, key: str, *, name: str, facts: Mapping[str, Any]) -> RunHandle:
    """Join the run called `key` on this host, or begin it: run id, spool, hub, agent.

    Raises:
        OSError: no private folder, no port, no lock to be had.
    """
    folder = state.private(state.state_dir() / "agents")
    stem = hashlib.sha256(key.encode()).hexdigest()[:16]
    gate = state.claim(folder / f"{stem}.gate", wait=True)
    try:
        lock = state.claim(folder / f"{stem}.lock")
        note = folder / f"{stem}.json"
        if lock is None:
            handle = _joined(json.loads(note.read_text()))
        else:
            try:
                handle = _begun(options, name, facts, note, lock)
            finally:
                os.close(lock)  # the agent has its own copy
        # The agent does not go while a process that lives has said that it will come.
        (handle.spool / f"pending-{os.getpid()}").touch()
        return handle
    finally:
        if gate is not None:
            os.close(gate)


def _joined(found: Mapping[str, Any]) -> RunHandle:
    spool, runs = Path(found["spool"]), Path(found["run_dir"])
    return RunHandle(found["run"], spool, runs, found["url"], agent=found.get("agent"))


def _begun(options: Options, name: str, facts: Mapping[str, Any], note: Path, lock: int) -> RunHandle:
    if options.hub is None:
        options.run_dir.mkdir(parents=True, exist_ok=True)
    run = (shared_run_id(name) if options.hub else None) or new_run_id(name)
    spool = state.spool_dir(run)
    url = options.hub or (_dashboard(options.run_dir, run) if options.dashboard else None)
    settings = {
        "run": run,
        "name": name,
        "note": str(note),
        "spool": str(spool),
        "run_dir": str(options.run_dir),
        "url": url,
        "hub": options.hub,
        # Without a hub of its own the agent keeps store, findings and alerts going by itself.
        "dashboard": url is not None,
        "sample_s": options.sample_s,
        "stall_after_s": options.stall_after_s,
        "on_stall": options.on_stall,
        "on_stall_grace_s": options.on_stall_grace_s,
        "alerts": list(options.alerts),
        "config": dict(options.config),
        "mono_base_ns": time.perf_counter_ns(),
        "started_unix_s": time.time(),
        **facts,
    }
    state.write_private(spool / "run.json", settings)
    state.write_private(note, settings)
    command = ["agent", "--spool", str(spool), "--lock-fd", str(lock)]
    agent = start(command, spool / "agent.log", (lock,))
    state.write_private(note, {**settings, "agent": agent})
    return RunHandle(run, spool, options.run_dir, url, agent is not None, agent)


def _dashboard(runs: Path, run: str) -> str | None:
    """Address of the run's page; None, and a word about it, where there can be no hub."""
    try:
        return f"{ensure_hub(runs).url}#/run/{run}"
    except OSError as error:
        print(f"torchvitals: no dashboard: {error}. Everything else is recorded.", file=sys.stderr)
        return None


def ensure_hub(runs: Path) -> state.HubState:
    """The hub that serves `runs`; started when none does. Tokens and port outlive a restart.

    Raises:
        OSError: no free port, no lock to be had, or no process to be started.
    """
    note, lock_file = state.hub_files(runs)
    gate = state.claim(note.with_suffix(".gate"), wait=True)
    try:
        known = state.load_hub(runs)
        lock = state.claim(lock_file)
        if lock is None:
            if known is None:
                raise OSError(f"a hub serves {runs}, but {note} does not say where")
            return known
        listener = listen(known.port if known else None)
        hub = state.HubState(
            port=listener.getsockname()[1],
            viewer_token=known.viewer_token if known else secrets.token_urlsafe(24),
            ingest_token=known.ingest_token if known else secrets.token_urlsafe(24),
            run_dir=str(runs),
        )
        state.save_hub(hub)
        passed = (listener.fileno(), lock)
        command = ["serve", "--run-dir", str(runs), "--ephemeral", "--state", str(note)]
        command += ["--fd", str(passed[0]), "--lock-fd", str(passed[1])]
        started = start(command, note.with_suffix(".log"), passed)
        listener.close()
        os.close(lock)
        if started is None:
            raise OSError("no process can be started here")
        return hub
    finally:
        if gate is not None:
            os.close(gate)


def listen(wanted: int | None = None, host: str = "127.0.0.1") -> socket.socket:
    """A listening socket on `wanted` when it is free, else on the first free port from 7007 up.

    Raises:
        OSError: none of PORTS ports is free.
    """
    candidates = [*([wanted] if wanted else []), *range(FIRST_PORT, FIRST_PORT + PORTS), 0]
    for port in candidates:
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(128)
        except OSError:
            listener.close()
            continue
        return listener
    raise OSError(f"no free port from {FIRST_PORT} to {FIRST_PORT + PORTS}")


def start(command: list[str], log: Path, passed: tuple[int, ...]) -> int | None:
    """Start one of our commands as a process that is nobody's child and holds no terminal.

    It is started through a shell that ends at once, so that a training script which waits for its
    own children never meets ours. Returns its process id; None where no process may be started.
    """
    if not sys.executable:
        return None
    python = [sys.executable, "-c", _BOOT, str(HOME), *command]
    line = ["/bin/sh", "-c", 'umask 077; "$@" </dev/null >>"$0" 2>&1 & echo $!', str(log), *python]
    try:
        shell = subprocess.Popen(
            line,
            pass_fds=passed,
            start_new_session=True,
            cwd="/",
            env=_helper_env(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        output, _ = shell.communicate(timeout=5)
        return int(output) if shell.returncode == 0 else None
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def _helper_env() -> dict[str, str]:
    """The environment of agent and hub: theirs is not to train, nor to take many threads or arenas."""
    env = {k: v for k, v in os.environ.items() if k != "MONITOR_RUN_KEY"}
    paths = [p for p in env.get("PYTHONPATH", "").split(os.pathsep) if p and p != str(STARTUP)]
    env.update(PYTHONPATH=os.pathsep.join(paths), MONITOR="off", PYTHONUNBUFFERED="1", MALLOC_ARENA_MAX="2")
    env.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    return env
