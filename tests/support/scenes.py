"""Trainings that hang, die, or are only slow, each in a process of its own, attached as a user attaches.

    python scenes.py FOLDER ALERTS SCENE…

torch is imported once; every scene is then a fork with its own agent. A scene trains until its agent is
there, does what its name says, waits for FOLDER/SCENE.go where it hangs, trains on and writes the weights'
digest to FOLDER/SCENE.done. SCENE.pid holds its process id. The processes are reaped when stdin closes.
"""

from __future__ import annotations

import ctypes
import hashlib
import multiprocessing
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import monitor
from monitor.agent import proc

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 2 else Path()
#: Scenes that run at the same time.
AT_ONCE = 5
#: Seconds without a step that are a stall here.
STALL_AFTER_S = 1.5
#: How long what is only slow takes: longer than that.
SLOW_S = 2.5
#: How long native code holds the interpreter.
FROZEN_S = 6
#: Steps that end up in the weights, before the trouble and after it.
BEFORE, AFTER = 5, 25


class Scene:
    """One training; `name` says what happens to it."""

    def __init__(self, name: str, watched: bool = True) -> None:
        self.name = name
        torch.manual_seed(0)
        self.model = nn.Linear(8, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.session = monitor.attach(self.model, name=name) if watched else None

    def step(self, x: torch.Tensor | None = None, model: nn.Module | None = None) -> None:
        """One step; without a batch, on the same one as ever."""
        x = torch.ones(4, 8) if x is None else x
        self.optimizer.zero_grad()
        (model or self.model)(x).pow(2).mean().backward()
        self.optimizer.step()
        if self.session is not None:
            self.session.step()

    def seen(self) -> bool:
        """Whether the agent has begun to write."""
        if self.session is None:
            return True
        return Path(os.environ["MONITOR_RUN_DIR"], str(self.session.run), "store.sqlite").exists()

    def warm_up(self, ready: Callable[[], bool]) -> None:
        """Steps that leave the weights as they are, until it is time; then BEFORE steps."""
        rate, self.optimizer.param_groups[0]["lr"] = self.optimizer.param_groups[0]["lr"], 0.0
        while not ready():
            self.step()
            time.sleep(0.005)
        for _ in range(30):
            self.step()
            time.sleep(0.005)
        self.optimizer.param_groups[0]["lr"] = rate
        for _ in range(BEFORE):
            self.step()

    def finish(self) -> None:
        """AFTER steps more; the weights decide whether anything was changed."""
        for _ in range(AFTER):
            self.step()
            time.sleep(0.02)
        weights = hashlib.md5(self.model.weight.detach().numpy().tobytes()).hexdigest()
        (FOLDER / f"{self.name}.done").write_text(weights)

    def wait(self) -> None:
        """Until somebody lets it go on."""
        while not (FOLDER / f"{self.name}.go").exists():
            time.sleep(0.02)

    def when_it_goes(self, do: Callable[[], object]) -> None:
        """Do something from another thread then, for the main one hangs."""

        def watch() -> None:
            self.wait()
            do()

        threading.Thread(target=watch, daemon=True).start()


class Batches(Dataset[torch.Tensor]):
    """Batches that are ready, up to a sample at which something happens."""

    def __init__(self, happens: Callable[[], object], at: int) -> None:
        self.happens, self.at = happens, at

    def __len__(self) -> int:
        return self.at + 8

    def __getitem__(self, index: int) -> torch.Tensor:
        if index == self.at or (index > self.at and self.happens is blocked):
            self.happens()
        return torch.ones(8)


_LOCK = multiprocessing.Lock()


def blocked() -> None:
    with _LOCK:
        pass


def loaded(scene: Scene, happens: Callable[[], object], workers: int) -> None:
    """Train from a loader until its batches end."""
    for x in DataLoader(Batches(happens, 40), batch_size=4, num_workers=workers):
        scene.optimizer.param_groups[0]["lr"] = 0.0
        scene.step(x)
    scene.optimizer.param_groups[0]["lr"] = 0.01


# -- what hangs


def worker_hung(scene: Scene) -> None:
    def dead_mount() -> None:
        scene.wait()

    loaded(scene, dead_mount, 1)


def workers_locked(scene: Scene) -> None:
    _LOCK.acquire()
    scene.when_it_goes(_LOCK.release)
    loaded(scene, blocked, 2)


def socket_read(scene: Scene) -> None:
    ours, theirs = socket.socketpair()
    scene.when_it_goes(lambda: theirs.send(b"x"))
    ours.recv(1)


def hook_waits(scene: Scene) -> None:
    event = threading.Event()
    scene.when_it_goes(event.set)

    def hook(_: torch.Tensor) -> None:
        event.wait()

    handle = scene.model.weight.register_hook(hook)
    scene.optimizer.param_groups[0]["lr"] = 0.0
    scene.step()
    scene.optimizer.param_groups[0]["lr"] = 0.01
    handle.remove()


def frozen(scene: Scene) -> None:
    ctypes.PyDLL(None).sleep(FROZEN_S)


def stopped(scene: Scene) -> None:
    """The test sends SIGSTOP, and SIGCONT."""
    scene.optimizer.param_groups[0]["lr"] = 0.0
    while not (FOLDER / f"{scene.name}.go").exists():
        scene.step()
        time.sleep(0.005)
    scene.optimizer.param_groups[0]["lr"] = 0.01


def uneven(scene: Scene) -> None:
    """Rank 1 has a batch less than rank 0."""
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP

    rank = int(os.environ["RANK"])
    model = DDP(scene.model)
    for x in DataLoader(Batches(lambda: None, 40 - 4 * rank), batch_size=4):
        scene.step(x, model)
    if rank == 1:
        scene.wait()
        scene.step(torch.ones(4, 8), model)
    dist.destroy_process_group()


def agreed(scene: Scene) -> Callable[[], bool]:
    """Both ranks take equally many steps before."""
    import torch.distributed as dist

    def ready() -> bool:
        seen = torch.tensor(float(scene.seen()))
        dist.broadcast(seen, 0)
        return bool(seen)

    return ready


# -- what dies


def killed(scene: Scene) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def crashed(scene: Scene) -> None:
    ctypes.memset(0, 1, 1)


def out_of_memory(scene: Scene) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, resource.RLIM_INFINITY))
    torch.ones(2**30)


def worker_killed(scene: Scene) -> None:
    def killed() -> None:
        time.sleep(0.5)  # until what it made before has been fetched: else its pipe breaks first
        os.kill(os.getpid(), signal.SIGKILL)

    loaded(scene, killed, 1)


# -- what is only slow


def evaluation(scene: Scene) -> None:
    scene.model.eval()
    until = time.monotonic() + SLOW_S
    with torch.no_grad():
        while time.monotonic() < until:
            for x in DataLoader(Batches(lambda: None, 8), batch_size=4):
                scene.model(x)
                time.sleep(0.01)
    scene.model.train()


def checkpoint(scene: Scene) -> None:
    class Slow:
        def __reduce__(self) -> tuple[type, tuple[()]]:
            time.sleep(SLOW_S)
            return int, ()

    torch.save([scene.model.state_dict(), Slow()], FOLDER / "checkpoint.pt")


def first_step(scene: Scene) -> None:
    """Its slow first step is taken in `run`, before any other."""


def run(name: str) -> None:
    """Play a scene from beginning to end."""
    if name.startswith("uneven"):
        os.environ["RANK"] = name[-1]
        import torch.distributed as dist

        rendezvous = f"file://{FOLDER}/rendezvous"
        dist.init_process_group("gloo", rendezvous, rank=int(name[-1]), world_size=2)
    scene = Scene(name, watched=name != "bare")
    if name == "first_step":
        handle = scene.model.register_forward_pre_hook(lambda *_: time.sleep(SLOW_S))
        scene.optimizer.param_groups[0]["lr"] = 0.0
        scene.step()
        scene.optimizer.param_groups[0]["lr"] = 0.01
        handle.remove()
    scene.warm_up(agreed(scene) if name.startswith("uneven") else scene.seen)
    if name.startswith("uneven"):
        uneven(scene)
    elif name != "bare":
        globals()[name](scene)
    scene.finish()


def children(names: list[str]) -> list[int]:
    """A process for each scene, AT_ONCE at a time, in this order."""
    started: list[int] = []
    for name in names:
        while sum(map(lives, started)) >= AT_ONCE:
            time.sleep(0.05)
        pid = os.fork()
        if pid:
            (FOLDER / f"{name}.pid").write_text(str(pid))
            started.append(pid)
            continue
        os.environ["MONITOR_ALERTS"] = f"{sys.argv[2]}/{name.partition('-')[0]}"
        os.environ["MONITOR_RUN_KEY"] = name.partition("-")[0]
        status = 1
        try:
            run(name)
            status = 0
        except BaseException:  # noqa: BLE001 - as the interpreter does at its end
            sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        finally:
            if status == 0:
                monitor.attach().detach()
            os._exit(status)
    return started


def lives(pid: int) -> bool:
    """Whether a child has not ended. It is not reaped: its agent may still want to ask how it did."""
    found = proc.stat(pid)
    return found is not None and found.state != "Z"


if __name__ == "__main__":
    torch.set_num_threads(1)
    all_of_them = children(sys.argv[3:])
    sys.stdin.read()
    for one in all_of_them:
        os.waitpid(one, 0)
