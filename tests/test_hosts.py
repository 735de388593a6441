"""One run over several hosts: network namespaces stand for them, with a link each that can be cut.

Needs root and `ip netns`; skipped where there is none.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import until

from monitor import runs
from monitor.store import FILE_NAME, Store

TOKEN = "a-token-of-agents-for-this-test"
HOSTS = ("hosta", "hostb")

#: A rank that trains alone, and says when it is half done. Steps of 20 ms.
TRAIN = """
import os, sys, time
import torch
from torch import nn
import monitor
torch.set_num_threads(1)
model = nn.Linear(4, 4)
session = monitor.attach(model, name="far", hub=os.environ["HUB"])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(250):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).mean().backward()
    optimizer.step()
    time.sleep(0.02)
    if step == 60:
        print("cut", flush=True)
print(session.run, flush=True)
"""


def may_make_namespaces() -> bool:
    if not (shutil.which("ip") and shutil.which("unshare")) or os.geteuid():
        return False
    name = f"tv{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return made


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


_networks = itertools.count()


class Network:
    """Hosts in namespaces, each on a wire of its own to the hub's host."""

    def __init__(self) -> None:
        self.mark = f"{os.getpid() % 10_000}{next(_networks)}"
        for number, host in enumerate(HOSTS):
            space, outer, inner = self.space(host), f"tvo{self.mark}{number}", f"tvi{self.mark}{number}"
            ip("netns", "add", space)
            ip("link", "add", outer, "type", "veth", "peer", "name", inner)
            ip("link", "set", inner, "netns", space)
            ip("addr", "add", f"10.177.{number}.1/24", "dev", outer)
            ip("link", "set", outer, "up")
            ip("netns", "exec", space, "ip", "addr", "add", f"10.177.{number}.2/24", "dev", inner)
            ip("netns", "exec", space, "ip", "link", "set", inner, "up")
            ip("netns", "exec", space, "ip", "link", "set", "lo", "up")

    def space(self, host: str) -> str:
        return f"tv{self.mark}{host}"

    def hub(self, number: int) -> str:
        return f"10.177.{number}.1"

    def on(self, host: str, command: list[str]) -> list[str]:
        """The command, run on that host and under its name."""
        named = ["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', host, *command]
        return ["ip", "netns", "exec", self.space(host), *named]

    def link(self, number: int, state: str) -> None:
        ip("link", "set", f"tvo{self.mark}{number}", state)

    def close(self) -> None:
        for number, host in enumerate(HOSTS):
            subprocess.run(["ip", "link", "del", f"tvo{self.mark}{number}"], check=False, capture_output=True)
            subprocess.run(["ip", "netns", "del", self.space(host)], check=False, capture_output=True)


@pytest.fixture
def network() -> Iterator[Network]:
    if not may_make_namespaces():
        pytest.skip("needs root, `ip netns` and `unshare`: no two hosts can be made here")
    made = Network()
    yield made
    made.close()


def environment(folder: Path, name: str, **more: str) -> dict[str, str]:
    clean = {
        k: v for k, v in os.environ.items() if not k.startswith(("MONITOR", "MASTER_", "RANK", "WORLD_"))
    }
    state = folder / f"state-{name}"
    return {**clean, "MONITOR_STATE_DIR": str(state), "MONITOR_TOKEN": TOKEN, **more}


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[int]:
    """A hub for other machines; its port."""
    command = [sys.executable, "-m", "monitor", "serve", "--run-dir", str(folder / "runs")]
    command += ["--host", "0.0.0.0", "--allow-remote", "--port", "0"]
    env = {**environment(folder, "hub"), "PYTHONUNBUFFERED": "1"}
    hub = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    assert hub.stdout is not None
    try:
        said = hub.stdout.readline() + hub.stdout.readline()
        found = re.search(r":(\d+)/", said)
        assert found is not None, said
        yield int(found[1])
    finally:
        hub.send_signal(signal.SIGINT)
        hub.wait(20)
        hub.stdout.close()


def stored(folder: Path) -> dict[str, int]:
    """Streams of the one run there is, and their rows."""
    folders = runs.folders(folder / "runs")
    assert len(folders) <= 1, folders
    if not folders:
        return {}
    with Store(folders[0] / FILE_NAME) as store:
        return store.streams()


def ended(folder: Path) -> bool:
    """Whether both hosts have said that their ranks are done."""
    with Store(runs.folders(folder / "runs")[0] / FILE_NAME) as store:
        return len(store.events(["run_end"])) == len(HOSTS)


def test_two_hosts_feed_one_run_over_a_link_that_is_cut(network: Network, tmp_path: Path) -> None:
    """Every step of both ranks is in one run, though one host was cut off in the middle of it."""
    (tmp_path / "train.py").write_text(TRAIN)
    with serving(tmp_path) as port:
        ranks = []
        for number, host in enumerate(HOSTS):
            where = {"HUB": f"http://{network.hub(number)}:{port}", "MONITOR_RUN": "far-1"}
            job = {"RANK": str(number), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
            command = network.on(host, [sys.executable, str(tmp_path / "train.py")])
            env = environment(tmp_path, host, **where, **job)
            ranks.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, cwd=tmp_path))
        first = ranks[0].stdout
        assert first is not None
        assert first.readline() == "cut\n"
        until(lambda: stored(tmp_path).get("rank/0", 0) > 0)
        network.link(0, "down")
        assert [rank.wait(60) for rank in ranks] == [0, 0]
        missing = stored(tmp_path).get("rank/0", 0)
        network.link(0, "up")
        until(lambda: ended(tmp_path))
        assert {rank.communicate()[0].split()[-1] for rank in ranks} == {"far-1"}
    found = stored(tmp_path)
    assert missing < 250
    assert (found["rank/0"], found["rank/1"]) == (250, 250)
    assert {f"host/{host}" for host in HOSTS} <= set(found)


def test_an_agent_with_another_token_is_let_in_nowhere(network: Network, tmp_path: Path) -> None:
    """The training goes on, and the hub has no run."""
    body = TRAIN.replace("range(250)", "range(70)")
    (tmp_path / "train.py").write_text(body)
    with serving(tmp_path) as port:
        where = {"HUB": f"http://{network.hub(0)}:{port}", "MONITOR_TOKEN": "another-token-of-22-characters"}
        command = network.on("hosta", [sys.executable, str(tmp_path / "train.py")])
        env = environment(tmp_path, "hosta", **where)
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        log = next((tmp_path / "state-hosta").rglob("agent.log"))
        until(lambda: "failed to connect" in log.read_text())
    assert stored(tmp_path) == {}
