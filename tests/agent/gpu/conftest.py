"""The real pynvml over a library of ours in the driver's place, in processes that start with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).parent.with_name("nvml_stub.c")

#: Obeys one JSON list [method, *arguments] a line and answers with JSON. Calls that are slow since this
#: machine is busy are not held back, unless a test says what a call may cost.
SERVANT = """
import json, sys
import pynvml
from monitor.agent.gpu import GpuSampler, Wanted, driver_calls
driver_calls.COST, driver_calls.RARE_S = 1e9, 0.0
calls = []
def counted(name, ask=pynvml._nvmlGetFunctionPointer):
    calls.append(name)
    return ask(name)
pynvml._nvmlGetFunctionPointer = counted
sampler = None
for line in sys.stdin:
    method, *arguments = json.loads(line)
    if method == "choose":
        arguments = [[Wanted(*each) for each in arguments[0]]]
    if method == "fresh" or sampler is None:
        sampler = GpuSampler()
        sampler.start()
    if method == "pace":
        driver_calls.COST, driver_calls.RARE_S = arguments
    if method == "calls":
        answer, calls[:] = list(calls), []
    else:
        answer = None if method in ("fresh", "pace") else getattr(sampler, method)(*arguments)
    print(json.dumps(answer), flush=True)
    if "torch" in sys.modules: raise SystemExit("torch was imported")
"""

#: A board that does all that can be asked of it.
ONE = """
count 1
0.util 87
0.used 12000000000
0.total 24000000000
0.power 250000
0.limit 350000
0.temp 66
0.clock 1740
0.maxclock 1980
0.throttle 4
0.energy 1000
0.ecc.0 3
0.ecc.1 0
0.field.197 0
0.field.198 0
0.field.138 0
0.field.139 0
0.gpm 1
0.gpm.2 60
0.gpm.5 19
0.gpm.10 30
"""

Ask = Callable[..., Any]


def boards(count: int) -> str:
    """So many boards like ONE."""
    lines = [line for line in ONE.splitlines() if line.startswith("0.")]
    copies = [line.replace("0.", f"{index}.", 1) for index in range(count) for line in lines]
    return "\n".join([f"count {count}", *copies, ""])


def but(text: str, **changed: Any) -> str:
    """The state with some values changed: "u0_field_197" stands for "0.field.197"."""
    for key, value in changed.items():
        name = key.removeprefix("u").replace("_", ".")
        kept = [line for line in text.splitlines() if line.split(" ")[0] != name]
        text = "\n".join([*kept, f"{name} {value}", ""])
    return text


def build(folder: Path, *options: str) -> Path:
    target = folder / "libnvidia-ml.so.1"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-Wall", "-Werror", *options, "-o", target, SOURCE], check=True
    )
    return folder


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="session")
def old_library(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A driver that lacks what came later."""
    return build(tmp_path_factory.mktemp("old"), "-DOLD")


class Servant:
    """A process that has the stub. `servant(method, *arguments)` calls a started sampler in it."""

    def __init__(self, library: Path, state: Path) -> None:
        env = {**os.environ, "LD_LIBRARY_PATH": str(library), "NVML_STUB_STATE": str(state)}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen([sys.executable, "-c", SERVANT], text=True, env=env, **pipes)

    def __call__(self, method: str, *arguments: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([method, *arguments]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self) -> None:
        self.process.communicate()
        assert self.process.returncode == 0


@pytest.fixture(scope="module")
def shared_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state") / "state"


@pytest.fixture(scope="module")
def servant(library: Path, shared_state: Path) -> Iterator[Servant]:
    shared_state.write_text(ONE)
    served = Servant(library, shared_state)
    yield served
    served.end()


@pytest.fixture
def state(shared_state: Path) -> Path:
    """The file that scripts the stub; one good board at first."""
    shared_state.write_text(ONE)
    return shared_state


@pytest.fixture
def ask(servant: Servant, state: Path) -> Ask:
    """Calls a sampler that was made for this test; it starts at the first call."""
    fresh = True

    def call(method: str, *arguments: Any) -> Any:
        nonlocal fresh
        if fresh:
            servant("fresh")
            fresh = False
        return servant(method, *arguments)

    return call


@pytest.fixture
def ask_old(old_library: Path, state: Path) -> Iterator[Ask]:
    """The same with an old driver."""
    served = Servant(old_library, state)
    yield served
    served.end()
