"""Ways to make no progress, each in a function of its own name, called by the trainer that plays."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable


def event() -> None:
    threading.Event().wait(60)


def bare_lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=60)


def reading() -> None:
    ours, _theirs = socket.socketpair()
    ours.recv(1)


def frozen() -> None:
    ctypes.PyDLL(None).sleep(60)


def busy() -> None:
    while True:
        sum(range(1000))


def sleeping() -> None:
    time.sleep(60)


class _Data:
    """A data set whose fourth sample never comes."""

    def __init__(self, wait: Callable[[], None]) -> None:
        self.wait = wait

    def __len__(self) -> int:
        return 100

    def __getitem__(self, index: int) -> int:
        if index >= 4:
            self.wait()
        return index


def _load(wait: Callable[[], None], workers: int) -> None:
    from torch.utils.data import DataLoader

    for _ in DataLoader(_Data(wait), batch_size=2, num_workers=workers):  # type: ignore[arg-type]
        pass


def dead_mount() -> None:
    time.sleep(60)


_LOCK = multiprocessing.Lock()


def shared_lock() -> None:
    _LOCK.acquire()


def worker() -> None:
    _load(dead_mount, 1)


def workers_locked() -> None:
    _LOCK.acquire()
    _load(shared_lock, 2)


def loading() -> None:
    _load(dead_mount, 0)


def all_reduce() -> None:
    """Rank 0 enters a collective, which rank 1 never does."""
    import torch
    import torch.distributed as dist

    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo", f"file://{os.environ['RENDEZVOUS']}", rank=rank, world_size=2)
    if rank == 1:
        sleeping()
    dist.all_reduce(torch.ones(1))


def deaf() -> None:
    """Sleep, and ignore being told to abort."""
    signal.signal(signal.SIGABRT, signal.SIG_IGN)
    time.sleep(60)


def crash() -> None:
    """Native code writes where it must not."""
    ctypes.memset(0, 1, 1)


def eating() -> None:
    """Take memory until somebody stops it."""
    eaten = []
    while True:
        eaten.append(b"x" * 10_000_000)


HANGS = {name: value for name, value in globals().items() if callable(value) and not name.startswith("_")}
