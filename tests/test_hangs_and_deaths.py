"""The list of what a stall watch must show, and must not: real trainings, real agents, a real receiver.

Each case is told once, in time, with the right phase and line, and over within three seconds of going on.
Several of them train at once, so that the whole list takes little longer than its longest cases. Times that
would take minutes (thresholds that adapt, a machine that sleeps) are in agent/test_stalls.py.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import scenes
from waiting import T, until

from monitor import report
from monitor.agent import proc, stacks
from monitor.store import Store

pytestmark = pytest.mark.skipif(stacks.find_program() is None, reason="needs py-spy")

#: Case -> phase, function of the user's own line, and a word of the cause.
HANGS = {
    "worker_hung": ("data", "wait", "a loader worker does not come back"),
    "workers_locked": ("data", "blocked", "all loader workers wait for a lock"),
    "socket_read": ("other", "socket_read", "waits for a network connection"),
    "hook_waits": ("backward", "hook", "waits for a lock, an event or a queue"),
    "frozen": ("other", "frozen", "holds the interpreter lock"),
    "stopped": (None, None, "stopped (SIGSTOP)"),
}
#: Case -> status, signal, and cause of the death.
DEATHS = {
    "killed": ("killed", "SIGKILL", "SIGKILL"),
    "crashed": ("killed", "SIGSEGV", "SIGSEGV"),
    "out_of_memory": ("crashed", None, "RuntimeError"),
    "worker_killed": ("crashed", None, "RuntimeError"),
}
SLOW = ("evaluation", "checkpoint", "first_step")
UNEVEN = ("uneven-0", "uneven-1")


class Cases:
    """All cases at once, and what came of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.received: dict[str, list[dict[str, Any]]] = defaultdict(list)
        env = {
            **os.environ,
            "MONITOR_STATE_DIR": str(folder / "state"),
            "MONITOR_RUN_DIR": str(folder / "runs"),
            "MONITOR_DASHBOARD": "off",
            "MONITOR_SAMPLE_S": "5",
            "MONITOR_STALL_AFTER_S": str(scenes.STALL_AFTER_S),
        }
        env.pop("MONITOR", None)
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        names = ["bare", *HANGS, *DEATHS, *SLOW, *UNEVEN]
        address = f"json://127.0.0.1:{self._server.server_address[1]}"
        command = [sys.executable, scenes.__file__, str(folder), address, *names]
        with (folder / "log").open("w") as log:
            self._process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=log, stderr=log)

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        received = self.received

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                received[self.path.strip("/")].append(message)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        return Handler

    def end(self) -> None:
        # A hung worker outlives its trainer.
        for pid in [int(path.read_text()) for path in self.folder.glob("*.pid")]:
            for each in [*proc.descendants(pid), pid]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
        self._process.communicate()
        self._server.shutdown()
        self._server.server_close()

    def wait(self, condition: Callable[[], T], what: str) -> T:
        """Wait for a condition; its message ends with what the cases have logged."""
        return until(condition, lambda: f"{what}\n{(self.folder / 'log').read_text()[-4000:]}")

    def store(self, name: str) -> Path:
        """The store of a case, once it is there."""
        runs = self.folder / "runs"
        found = self.wait(lambda: list(runs.glob(f"*-{name}*/store.sqlite")), f"the run of {name}")
        return Path(found[0])

    def events(self, name: str, kind: str) -> list[dict[str, Any]]:
        with Store(self.store(name)) as store:
            return store.events([kind])

    def stall(self, name: str) -> dict[str, Any]:
        """The newest word on the stall of a case, once its message has come."""
        run = name.partition("-")[0]
        self.wait(lambda: self.received[run], f"the message about {name}")
        return self.wait(lambda: self.events(name, "stall"), f"the stall of {name}")[-1]  # type: ignore[no-any-return]

    @contextlib.contextmanager
    def held(self, *names: str) -> Iterator[None]:
        """While this lasts a case hangs; then it goes on, whatever came of the test."""
        pid = 0
        try:
            if names == ("stopped",):
                self.store("stopped")
                pid = int((self.folder / "stopped.pid").read_text())
                os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            for name in names:
                (self.folder / f"{name}.go").touch()
            if pid:
                os.kill(pid, signal.SIGCONT)

    def report(self, name: str) -> dict[str, Any]:
        """The report of a case, once it is over."""
        path = self.store(name)
        over = ("finished", "crashed", "killed")

        def ended() -> bool:
            with Store(path) as store:
                return store.meta().get("status") in over

        self.wait(ended, f"the end of {name}")
        return report.build(path.parent)

    def finding(self, name: str, code: str) -> dict[str, Any]:
        (found,) = [f for f in self.report(name)["findings"] if f["code"] == code]
        return found  # type: ignore[no-any-return]

    def weights(self, name: str) -> str:
        path = self.folder / f"{name}.done"
        self.wait(lambda: path.exists() and path.read_text(), f"the weights of {name}")
        return path.read_text()


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cases]:
    started = Cases(tmp_path_factory.mktemp("cases"))
    yield started
    started.end()


def titles(cases: Cases, run: str) -> list[str]:
    return [message["title"] for message in cases.received[run]]


@pytest.mark.parametrize("name", HANGS)
def test_a_hang_is_told_where_it_is(cases: Cases, name: str) -> None:
    """Phase, the user's own line and the cause, while it lasts; and it goes on as if nobody had looked."""
    phase, function, cause = HANGS[name]
    with cases.held(name):
        stall = cases.stall(name)
        body = cases.received[name][0]["message"]
    assert cause in stall["cause"]
    assert phase in (None, stall["phase"])
    assert function in (None, stall["function"].rpartition(".")[2])
    assert name == "stopped" or "scenes.py:" in stall["location"]
    assert f"in {stall['phase']}" in body
    assert "rank 0 on " in body


@pytest.mark.parametrize("name", HANGS)
def test_it_is_told_once_and_over_once(cases: Cases, name: str) -> None:
    """Two messages whatever happens meanwhile, the end once it goes on, and a clean run afterwards."""
    found = cases.finding(name, "stall")
    ended = cases.report(name)
    assert (ended["status"], found["severity"]) == ("finished", "warning")
    assert found["raised_at_s"] <= found["cleared_at_s"]
    with Store(cases.store(name)) as store:
        ends = store.rows("rank/0", ["step_ms"], 0, 10**9)["t_s"]
    went_on = min(float(end) for end in ends if end >= found["raised_at_s"])
    assert found["cleared_at_s"] >= went_on
    cases.wait(lambda: len(titles(cases, name)) >= 2, f"the message that {name} is over")
    assert titles(cases, name) == [f"{name}: No progress", f"{name}: over: No progress"]


@pytest.mark.parametrize("name", [*(name for name in HANGS), *SLOW])
def test_watching_changes_no_bit(cases: Cases, name: str) -> None:
    """Hung or slow, watched, stalled, looked into: the weights are those of a run that nobody watched."""
    assert cases.weights(name) == cases.weights("bare")


def test_the_rank_that_has_no_further_batch(cases: Cases) -> None:
    """Uneven inputs under DistributedDataParallel: the rank that left is the cause, the other one waits."""
    with cases.held(*UNEVEN):
        cases.wait(lambda: cases.received["uneven"], "the message")
        told = cases.wait(
            lambda: [one for one in cases.events("uneven", "stall") if one["rank"] == 0],
            "rank 0's stall",
        )
    waiting = told[-1]
    assert (waiting["phase"], waiting["cause_code"]) == ("backward", "collective")
    assert waiting["function"].endswith("step")
    found = cases.finding("uneven", "stall")
    assert found["ranks"][0] == 1
    cases.wait(lambda: len(titles(cases, "uneven")) >= 2, "the message that it is over")
    messages = [title.partition(": ")[2] for title in titles(cases, "uneven")]
    assert messages == ["No progress", "over: No progress"]


@pytest.mark.parametrize("name", DEATHS)
def test_a_death_is_told_with_its_cause(cases: Cases, name: str) -> None:
    """Signal or exception, last step; one message, critical, and no stall beside it."""
    status, number, cause = DEATHS[name]
    ended = cases.report(name)
    found = cases.finding(name, "process_died")
    assert (ended["status"], ended["exit"]["signal"]) == (status, number)
    assert found["cause"] == cause
    assert (found["severity"], found["cleared_at_s"]) == ("critical", None)
    assert found["last_step"] >= scenes.BEFORE
    assert "stall" not in [f["code"] for f in ended["findings"]]
    cases.wait(lambda: titles(cases, name), f"the message about {name}")
    assert titles(cases, name).count(f"{name}: The training process died") == 1


@pytest.mark.parametrize(("name", "function"), [("crashed", "crashed"), ("out_of_memory", "out_of_memory")])
def test_a_death_has_its_line(cases: Cases, name: str, function: str) -> None:
    """Where native code crashed, or memory ran out: the user's own line."""
    location = cases.finding(name, "process_died")["location"]
    line = int(location.rpartition(":")[2])
    assert location.rpartition(":")[0].endswith("scenes.py")
    lines = Path(scenes.__file__).read_text().splitlines()
    assert next(text for text in reversed(lines[:line]) if text.startswith("def ")).startswith(
        f"def {function}("
    )


def test_a_killed_worker_is_named(cases: Cases) -> None:
    """A finding of its own beside the death that it brings."""
    assert "worker_died" in [found["code"] for found in cases.report("worker_killed")["findings"]]


@pytest.mark.parametrize("name", SLOW)
def test_what_is_only_slow_is_no_stall(cases: Cases, name: str) -> None:
    """Evaluating, saving, a slow first step: nothing raised, no message, a clean end."""
    ended = cases.report(name)
    assert ended["status"] == "finished"
    assert "stall" not in [found["code"] for found in ended["findings"]]
    assert cases.events(name, "stall") == []
    assert [title for title in titles(cases, name) if "No progress" in title] == []
