"""A script under `torchvitals run` finds its process as it would without us, but for what is listed here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

#: Audited from the script's first line on; what of the process a program can see, once it has trained.
SCRIPT = """
import sys
STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec", "os.spawn"}
started = []
sys.addaudithook(lambda event, _: started.append(event) if event in STARTS else None)

import json, locale, os, random, signal, threading, warnings
import numpy
import torch
from torch import nn

torch.set_num_threads(1)
for seed in (torch.manual_seed, random.seed, numpy.random.seed):
    seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(60):
    warnings.warn("told once")
    optimizer.zero_grad()
    model(torch.randn(8, 4)).sum().backward()
    optimizer.step()

def at(number):
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        return "gone"

json.dump({
    "started": started,
    "random": [random.random(), float(numpy.random.rand()), torch.rand(1).item()],
    "weights": [parameter.detach().sum().item() for parameter in model.parameters()],
    "signals": [str(signal.getsignal(number)) for number in range(1, 32)],
    "excepthook": sys.excepthook is sys.__excepthook__,
    "hooks": [
        sys.gettrace(), sys.getprofile(), sys.displayhook is sys.__displayhook__,
        threading.excepthook is threading.__excepthook__, sys.unraisablehook is sys.__unraisablehook__,
    ],
    "threads": [threading.active_count(), len(os.listdir("/proc/self/task"))],
    "locale": locale.setlocale(locale.LC_ALL),
    "environ": dict(os.environ),
    "place": [os.getcwd(), sys.path, sys.argv[0], __name__],
    "warnings": [str(entry) for entry in warnings.filters] + sorted(map(str, __warningregistry__)),
    "limits": [sys.getrecursionlimit(), sys.getswitchinterval(), torch.get_num_threads()],
    "descriptors": [at(number) for number in os.listdir("/proc/self/fd")],
    "modules": sorted(sys.modules),
}, open(sys.argv[1], "w"))
"""
#: Beside our own and torch's: what tells of the end, what draws in notebooks, what attaches.
OUR_MODULES = {"monitor", "torch", "faulthandler", "html", "sitecustomize"}


def run(folder: Path, name: str, *before: str) -> tuple[dict[str, Any], str]:
    """What the script found, and its stderr."""
    own = {"MONITOR_RUN_DIR": str(folder / "runs"), "MONITOR_STATE_DIR": str(folder / "state")}
    found = folder / f"{name}.json"
    done = subprocess.run(
        [sys.executable, *before, "script.py", str(found)],
        cwd=folder, env={**os.environ, **own}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(found.read_text()), done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc")
def test_the_process_is_as_it_would_be(tmp_path: Path) -> None:
    """No process started, no warning shown twice, no thread; one hook, our variables, files and modules."""
    (tmp_path / "script.py").write_text(SCRIPT)
    bare, bare_stderr = run(tmp_path, "bare")
    watched, stderr = run(tmp_path, "watched", "-m", "monitor", "run", "--no-dashboard")
    assert stderr.startswith(bare_stderr)
    assert stderr.count("told once") == bare_stderr.count("told once") > 0
    changed = {key for key in bare if bare[key] != watched[key]}
    assert changed <= {"excepthook", "environ", "descriptors", "modules"}
    ours = {key for key, value in watched["environ"].items() if bare["environ"].get(key) != value}
    assert {key for key in ours if not key.startswith("MONITOR_")} <= {"PYTHONPATH"}
    assert set(bare["environ"]) <= set(watched["environ"])
    spool = str(tmp_path / "state")
    opened = [path for path in watched["descriptors"] if path.startswith(spool)]
    assert len(watched["descriptors"]) == len(bare["descriptors"]) + len(opened)
    added = set(watched["modules"]) - set(bare["modules"])
    assert {name.partition(".")[0] for name in added} <= OUR_MODULES
