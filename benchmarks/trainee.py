"""The loop that is measured: Linear 32→32, batch 16, SGD, one thread. Prints one JSON line.

    python trainee.py HOW LOOP STEPS
    python trainee.py HOW LOOP SECONDS RATE

HOW is bare, attach, traceml or gpuprof; with `torchvitals run` it is bare, since the script knows nothing.
LOOP is `loader` (a DataLoader without workers) or `tensors` (one batch, over and over: the fastest loop
there is). With a RATE the loop is held to so many steps a second, for SECONDS.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

WARM_UP = 500
CHUNK = 100
#: Waits longer than this sleep; shorter ones spin, since a sleep is late by some 60 µs.
SPIN_S = 0.001


def batches(loop: str) -> Iterator[Any]:
    """Batches without end."""
    x, y = torch.randn(16, 32), torch.randn(16, 32)
    if loop == "tensors":
        while True:
            yield x, y
    data = TensorDataset(torch.randn(16_384, 32), torch.randn(16_384, 32))
    loader = DataLoader(data, batch_size=16)
    while True:
        yield from loader


def train(how: str, loop: str, length: float, rate: float | None) -> dict[str, Any]:
    """Train; returns seconds a step, by the wall and of CPU time, of every chunk after the warm-up."""
    torch.set_num_threads(1)
    model, loss_fn = nn.Linear(32, 32), nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    facts: dict[str, Any] = {}
    step_context = attached(how, model, facts)
    chunks, cpu_chunks, done = [], [], 0
    began = chunk_began = time.perf_counter()
    cpu_began = time.thread_time()
    for x, y in batches(loop):
        with step_context(model):
            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        done += 1
        if rate:
            keep(began + done / rate)
        if done % CHUNK == 0:
            now, cpu = time.perf_counter(), time.thread_time()
            chunks.append((now - chunk_began) / CHUNK)
            cpu_chunks.append((cpu - cpu_began) / CHUNK)
            chunk_began, cpu_began = now, cpu
        if done >= (rate * length if rate else WARM_UP + length):
            break
    facts.update(steps=done, wall_s=time.perf_counter() - began, rss_mb=rss_mb())
    warm = WARM_UP // CHUNK
    return {**facts, "step_s": chunks[warm:], "step_cpu_s": cpu_chunks[warm:]}


def attached(how: str, model: nn.Module, facts: dict[str, Any]) -> Any:
    """Put a monitor in place, as its own documentation says. Returns the context to wrap a step in."""
    if how == "attach":
        import monitor

        began = time.perf_counter()
        session = monitor.attach(model)
        facts.update(attach_s=time.perf_counter() - began, url=session.url, run=session.run)
    elif how == "traceml":
        import traceml_ai as traceml

        traceml.init(mode="auto")
        return traceml.trace_step
    elif how == "gpuprof":
        import atexit

        import gpuprof

        profile = gpuprof.profile("benchmark", dashboard=True)
        profile.__enter__()
        atexit.register(profile.__exit__, None, None, None)
    nothing = contextlib.nullcontext()
    return lambda _: nothing


def keep(until: float) -> None:
    """Wait until the clock says so."""
    left = until - time.perf_counter()
    if left > SPIN_S:
        time.sleep(left - SPIN_S)
    while time.perf_counter() < until:
        pass


def rss_mb() -> float:
    """Resident memory of this process in MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


if __name__ == "__main__":
    how, loop, length, *rate = sys.argv[1:]
    result = train(how, loop, float(length), float(rate[0]) if rate else None)
    print(json.dumps(result), flush=True)
