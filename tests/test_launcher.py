"""Agent and hub beside the training: started once, found again, and nobody's children."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from monitor import launcher, state
from monitor.launcher import (
    STARTUP,
    ensure_hub,
    enter,
    listen,
    new_run_id,
    ranks_from_environment,
    restarts_left,
    run_key,
    shared_run_id,
    start,
)
from monitor.options import resolve


class Helpers:
    """In the place of agent and hub: real processes that only hold what they were given."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, command: list[str], log: Path, passed: tuple[int, ...]) -> int:
        self.commands.append(command)
        self._running.append(subprocess.Popen(["sleep", "600"], pass_fds=passed))
        return self._running[-1].pid

    def end(self) -> None:
        while self._running:
            helper = self._running.pop()
            helper.kill()
            helper.wait()


@pytest.fixture
def helpers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Helpers]:
    made = Helpers()
    monkeypatch.setattr(launcher, "start", made.start)
    yield made
    made.end()


def joined(key: str = "key", **given: Any) -> launcher.RunHandle:
    return enter(resolve({"dashboard": False, **given}), key, name="train", facts={"host": "here"})


KEYS: dict[str, tuple[dict[str, str], str]] = {
    "told": ({"MONITOR_RUN_KEY": "k", "TORCHELASTIC_RUN_ID": "x"}, "k"),
    "torchrun": ({"TORCHELASTIC_RUN_ID": "x", "MASTER_ADDR": "a", "MASTER_PORT": "1"}, "elastic:x"),
    "torchrun, unnamed": (
        {"TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "a", "MASTER_PORT": "1"},
        "elastic:none:a:1",
    ),
    "slurm": ({"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_NTASKS": "2"}, "slurm:7:0"),
    "spawned": ({"MASTER_ADDR": "a", "MASTER_PORT": "1"}, f"master:a:1:{os.getppid()}"),
}


@pytest.mark.parametrize("how", KEYS)
def test_what_the_ranks_of_a_run_have_in_common(how: str) -> None:
    """The launcher's own identity, whichever it was."""
    env, expected = KEYS[how]
    assert run_key(env) == expected


def test_spawned_ranks_that_share_only_their_parent() -> None:
    """`mp.spawn` with a file or an address as init_method: no variable says so, the process group does."""
    assert run_key({}, ranks=2) == f"parent:{os.getppid()}"


SHARED = {
    "MONITOR_RUN": {"MONITOR_RUN": "big-run"},
    "Slurm": {
        "SLURM_JOB_ID": "7",
        "SLURM_STEP_ID": "0",
        "SLURM_NTASKS": "8",
        "SLURM_JOB_START_TIME": "1796000000",
    },
    "torchrun": {"TORCHELASTIC_RUN_ID": "x", "MASTER_ADDR": "a", "MASTER_PORT": "1"},
}


@pytest.mark.parametrize("how", SHARED)
def test_hosts_of_a_job_know_their_runs_id_without_asking(how: str) -> None:
    """The same for all, whoever attaches first; another job has another one."""
    env = SHARED[how]
    first = shared_run_id("train", {**env, "RANK": "0"})
    assert first is not None
    assert first == shared_run_id("train", {**env, "RANK": "5"})
    assert first != shared_run_id("train", {**env, next(iter(env)): "other"})


def test_hosts_that_nobody_named_do_not_know() -> None:
    """A static rendezvous calls every job "none": yesterday's run is not today's."""
    assert (
        shared_run_id("train", {"TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "a", "MASTER_PORT": "1"})
        is None
    )
    assert shared_run_id("train", {}) is None


def test_a_run_named_by_hand_is_a_name() -> None:
    """It becomes a folder's name on the hub."""
    with pytest.raises(ValueError, match="MONITOR_RUN is a name"):
        shared_run_id("train", {"MONITOR_RUN": "../x"})


@pytest.mark.parametrize(("done", "allowed", "left"), [("0", "2", 2), ("2", "2", 0), ("", "", 0)])
def test_restarts_left(done: str, allowed: str, left: int) -> None:
    """As torchrun counts them."""
    assert restarts_left({"TORCHELASTIC_RESTART_COUNT": done, "TORCHELASTIC_MAX_RESTARTS": allowed}) == left


def test_a_lone_process_has_a_key_of_its_own() -> None:
    """Every attach of a process without a launcher is a new run; one task of a Slurm job is alone as well."""
    keys = {run_key({}), run_key({}), run_key({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "1"})}
    assert len(keys) == 3


@pytest.mark.parametrize("name", ["train", "../../etc/passwd", "ünï cödé", "", "..", "a" * 200])
def test_run_ids_are_names_of_folders(name: str) -> None:
    """Whatever a run is called, its id is one plain name, and no two are the same."""
    first, second = new_run_id(name), new_run_id(name)
    assert first != second
    assert "/" not in first
    assert first.isascii()
    assert len(first) < 100
    assert first[:8].isdigit()


def test_the_first_rank_begins_the_run_and_the_others_join(helpers: Helpers) -> None:
    """One agent, one run id, one spool, however many ranks come."""
    places = [joined() for _ in range(3)]
    assert len({place.run for place in places}) == len(helpers.commands) == 1
    assert len({place.agent for place in places} - {None}) == 1
    assert helpers.commands[0][:3] == ["agent", "--spool", str(places[0].spool)]
    assert all(place.started and place.url is None for place in places)


def test_ranks_that_come_at_once_meet_in_one_run(helpers: Helpers) -> None:
    """Eight at the same moment: still one agent."""
    places: list[launcher.RunHandle] = []
    threads = [threading.Thread(target=lambda: places.append(joined())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({place.run for place in places}) == len(helpers.commands) == 1


def test_another_key_is_another_run(helpers: Helpers) -> None:
    """Two runs on one machine do not meet."""
    assert joined("a").run != joined("b").run
    assert len(helpers.commands) == 2


def test_a_process_whose_stdin_is_closed(tmp_path: Path) -> None:
    """Then the claim's file descriptor is 0, which is as good as any."""
    code = (
        "import monitor.launcher as launcher; from monitor.options import resolve;"
        "launcher.start = lambda *_: 1;"
        "print(launcher.enter(resolve({'dashboard': False}), 'key', name='train', facts={}).run)"
    )
    line = [sys.executable, "-c", f"import os; os.close(0); {code}"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True)
    assert "-train-" in done.stdout


def test_a_run_whose_agent_has_gone_is_begun_anew(helpers: Helpers) -> None:
    """The claim goes with the agent, however that ended."""
    first = joined()
    helpers.end()
    second = joined()
    assert first.run != second.run
    assert first.spool != second.spool


def test_what_the_agent_is_told(helpers: Helpers, tmp_path: Path) -> None:
    """Options and facts are in a file that only the user reads."""
    config = {"lr": 0.1, "data": tmp_path}
    place = joined(sample_s=0.5, alerts=["ntfy://a"], config=config, run_dir=tmp_path / "r")
    path = place.spool / "run.json"
    told = json.loads(path.read_text())
    assert path.stat().st_mode & 0o077 == 0
    assert (told["run"], told["name"], told["host"], told["sample_s"]) == (place.run, "train", "here", 0.5)
    assert (told["run_dir"], told["alerts"]) == (str(tmp_path / "r"), ["ntfy://a"])
    assert told["config"] == {"lr": 0.1, "data": str(tmp_path)}


def test_a_hub_elsewhere_is_not_started_here(helpers: Helpers) -> None:
    """With `hub` given there is an agent and no server."""
    place = joined(hub="http://hub:7007", dashboard=True)
    assert [command[0] for command in helpers.commands] == ["agent"]
    assert place.url == "http://hub:7007"


def test_the_address_is_known_before_the_hub_is_up(helpers: Helpers) -> None:
    """A browser that comes early waits for the first answer instead of being refused."""
    place = joined(dashboard=True)
    assert [command[0] for command in helpers.commands] == ["serve", "agent"]
    assert place.url is not None
    assert place.url.endswith(f"#/run/{place.run}")
    hub = state.load_hub(place.run_dir)
    assert hub is not None
    with socket.create_connection(("127.0.0.1", hub.port), timeout=5):
        pass


def test_a_hub_that_runs_is_used(helpers: Helpers, tmp_path: Path) -> None:
    """One hub for one folder of runs."""
    assert ensure_hub(tmp_path) == ensure_hub(tmp_path)
    assert len(helpers.commands) == 1
    assert ensure_hub(tmp_path / "other").port != ensure_hub(tmp_path).port


def test_links_outlive_a_hub(helpers: Helpers, tmp_path: Path) -> None:
    """After its end the next one has the same port and tokens."""
    first = ensure_hub(tmp_path)
    helpers.end()
    assert ensure_hub(tmp_path) == first
    assert len(helpers.commands) == 2


def test_a_port_that_was_taken_meanwhile(helpers: Helpers, tmp_path: Path) -> None:
    """Then another one; the tokens stay."""
    first = ensure_hub(tmp_path)
    helpers.end()
    with listen(first.port):
        second = ensure_hub(tmp_path)
    assert second.port != first.port
    assert (second.viewer_token, second.ingest_token) == (first.viewer_token, first.ingest_token)


def test_tokens_are_long_and_apart(helpers: Helpers, tmp_path: Path) -> None:
    """Viewers cannot send; two hubs share nothing."""
    hubs = [ensure_hub(tmp_path), ensure_hub(tmp_path / "other")]
    tokens = {token for hub in hubs for token in (hub.viewer_token, hub.ingest_token)}
    assert len(tokens) == 4
    assert min(map(len, tokens)) >= 32


def test_ports_count_up_from_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first free one; one that is listened on is not free; where all are taken, any."""
    with listen() as taken:
        first = taken.getsockname()[1]
        monkeypatch.setattr(launcher, "FIRST_PORT", first)
        with listen() as second:
            assert first < second.getsockname()[1] < first + launcher.PORTS
        monkeypatch.setattr(launcher, "PORTS", 1)
        with listen() as other:
            assert other.getsockname()[1] != first
        assert taken.getsockname()[0] == "127.0.0.1"


def test_a_helper_is_nobodys_child(tmp_path: Path) -> None:
    """A script that waits for its own children never meets ours; and it holds no stream of the script's."""
    log = tmp_path / "log"
    children = set(children_of(os.getpid()))
    assert start(["--version"], log, ()) not in (None, os.getpid())
    until(lambda: log.exists() and log.read_text().startswith("torchvitals "))
    assert set(children_of(os.getpid())) <= children


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_what_a_helper_is_told_is_not_lost_in_the_shell(tmp_path: Path) -> None:
    """Blanks, quotes and dollars in a path stay what they are; the answer is appended to the log."""
    folder = tmp_path / 'a b\'c $HOME "d"'
    folder.mkdir()
    log = folder / "log"
    log.write_text("before\n")
    assert start([f"no such $(command) {folder}"], log, ())
    until(lambda: len(log.read_text().splitlines()) > 1)
    assert log.read_text().startswith("before\ntorchvitals: unknown command")
    assert "$(command)" in log.read_text()
    assert str(folder) in log.read_text().replace("\\'", "'").replace('\\"', '"')


def test_where_no_process_may_be_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """None, and no exception: the agent then runs as a thread."""

    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError("fork")

    monkeypatch.setattr(subprocess, "Popen", refused)
    assert start(["--version"], tmp_path / "log", ()) is None
    monkeypatch.undo()
    monkeypatch.setattr(sys, "executable", "")
    assert start(["--version"], tmp_path / "log", ()) is None


def test_without_a_hub_everything_else_is_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No process may be started: no address that nobody answers at, and an agent that needs no hub."""
    monkeypatch.setattr(launcher, "start", lambda *_: None)
    with pytest.raises(OSError, match="no process can be started"):
        ensure_hub(tmp_path)
    place = joined(dashboard=True)
    told = json.loads((place.spool / "run.json").read_text())
    assert (place.url, place.started, told["dashboard"]) == (None, False, False)
    assert "no dashboard: no process can be started here" in capsys.readouterr().err


def test_a_helper_does_not_monitor_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither our startup folder nor the run's key reach it, and its libraries take one thread."""
    monkeypatch.setenv("MONITOR_RUN_KEY", "k")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(STARTUP), "/mine"]))
    env = launcher._helper_env()
    assert (env["PYTHONPATH"], env["MONITOR"], env["OMP_NUM_THREADS"]) == ("/mine", "off", "1")
    assert "MONITOR_RUN_KEY" not in env


TRAIN = """
import monitor
import torch
model = torch.nn.Linear(2, 1)
session = monitor.attach(model, name="real")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
print(session.run, session.url)
"""


def test_a_real_agent_and_a_real_hub(tmp_path: Path, own_state: Path) -> None:
    """A script that trains and ends: the hub is up at its address, the agent has let go of the run."""
    command = [sys.executable, "-c", TRAIN]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    run, url = done.stdout.split()
    hub = state.load_hub(tmp_path / "runs")
    assert hub is not None
    assert url == f"{hub.url}#/run/{run}"
    try:
        until(lambda: answers(hub.port))
        until(lambda: not any(state.held(lock) for lock in (own_state / "agents").glob("*.lock")))
    finally:
        end_holders(state.hub_files(tmp_path / "runs")[1])


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2) as line:
        line.sendall(b"GET /healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
        return line.recv(12).startswith(b"HTTP/1.")
    return False


def end_holders(lock: Path) -> None:
    """End the process that holds this claim."""
    for entry in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if entry.readlink() == lock and (pid := int(entry.parts[2])) != os.getpid():
                os.kill(pid, signal.SIGKILL)
    until(lambda: not state.held(lock))


STEP = {"SLURM_STEP_ID": "0", "SLURM_NTASKS": "16"}
RANKS: dict[str, tuple[dict[str, str], tuple[int, int, int] | None]] = {
    "torchrun": ({"RANK": "9", "WORLD_SIZE": "16", "LOCAL_RANK": "1"}, (9, 16, 1)),
    "srun": ({**STEP, "SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "1"}, (5, 8, 1)),
    "an older srun": ({**STEP, "SLURM_PROCID": "5"}, (5, 16, 0)),
    "the batch script of a job": ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "7"}, None),
    "torchrun inside srun": (
        {**STEP, "RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "3", "SLURM_PROCID": "0"},
        (3, 4, 3),
    ),
    "Open MPI": (
        {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "0"},
        (2, 4, 0),
    ),
    "MPICH": ({"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1"}, (1, 2, 1)),
    "nobody": ({"RANK": "x", "WORLD_SIZE": ""}, None),
}


@pytest.mark.parametrize("launcher", RANKS)
def test_every_launcher_tells_its_ranks_in_its_own_words(launcher: str) -> None:
    """Rank, world size and local rank; none where a process only looks like a rank."""
    env, ranks = RANKS[launcher]
    assert ranks_from_environment(env) == ranks
