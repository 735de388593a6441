"""Attaching and detaching leaves no trace in the process, however often: notebooks do it all day."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sources import ROOT

TIMES = 200
#: Resident memory that may come on top in all of them: the first ones fill caches.
MOST_KB = 20_000

#: Everything is real but the agent, which would be a process for each time.
SCRIPT = """
import atexit, gc, json, os, signal, sys, threading
from pathlib import Path
sys.path.insert(0, {support!r})
import torch
from torch.optim import optimizer as optimizers
torch.set_num_threads(1)
import monitor
from monitor import launcher
from loops import learn, loader, net, sgd

spool = Path({folder!r})
launcher.enter = lambda *_, **__: launcher.RunHandle("run", spool, spool, None)
model, times = net(), int(sys.argv[1])

def once():
    session = monitor.attach(model, dashboard=False)
    optimizer = sgd(model)
    for batch in loader():
        learn(model, optimizer, batch)
    assert session.active
    session.detach()
    assert not session.active
    for file in spool.iterdir():
        file.unlink()

def trace():
    gc.collect()
    status = Path("/proc/self/status").read_text().splitlines()
    return {{
        "fds": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "excepthook": sys.excepthook is sys.__excepthook__,
        "atexit": atexit._ncallbacks(),
        "hooks": len(optimizers._global_optimizer_pre_hooks) + len(optimizers._global_optimizer_post_hooks),
        "gc": len(gc.callbacks),
        "signals": [line for line in status if line.startswith(("SigCgt", "SigIgn", "SigBlk"))],
        "python signals": [str(signal.getsignal(number)) for number in range(1, 32)],
        "path": sys.path, "meta": len(sys.meta_path),
        "model": sorted(vars(model)),
        "objects": sum(str(type(o).__module__).startswith("monitor.probe") for o in gc.get_objects()),
        "rss_kb": next(int(line.split()[1]) for line in status if line.startswith("VmRSS")),
        "maps": len(Path("/proc/self/maps").read_text().splitlines()),
    }}

for _ in range(5):
    once()
before = trace()
for _ in range(times):
    once()
print(json.dumps([before, trace()]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc")
def test_two_hundred_times_leave_no_trace(tmp_path: Path) -> None:
    """Descriptors, threads, excepthook, atexit, torch's and Python's hooks, signals, objects, memory."""
    (tmp_path / "spool").mkdir()
    code = SCRIPT.format(support=str(ROOT / "tests/support"), folder=str(tmp_path / "spool"))
    done = subprocess.run([sys.executable, "-c", code, str(TIMES)], capture_output=True, text=True)
    assert done.stderr == ""
    before, after = json.loads(done.stdout)
    grown = {key: after.pop(key) - before.pop(key) for key in ("rss_kb", "maps")}
    assert after == before
    assert before["excepthook"]
    assert grown["rss_kb"] < MOST_KB
    assert grown["maps"] < TIMES // 4


def test_somebody_elses_excepthook_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was put over ours is left alone, and still reaches what was there before."""
    from monitor.process_end import watch_exceptions
    from monitor.session import Session

    called: list[str] = []
    monkeypatch.setattr(sys, "excepthook", lambda *_: called.append("first"))
    undo = watch_exceptions(Session())
    ours = sys.excepthook

    def theirs(*args: Any) -> None:
        called.append("theirs")
        ours(*args)

    sys.excepthook = theirs
    undo()
    assert sys.excepthook is theirs
    sys.excepthook(ValueError, ValueError("x"), None)
    assert called == ["theirs", "first"]
