"""What the scripts of this folder share: arguments, a loop of some seconds, and figures of their own.

Every script is a small training with one fault, or with none. Each takes

    --device cuda|cpu   cpu: the same lines in small, to see that they run
    --seconds S         how long it trains (default 8)
    --steps N           at most so many steps
    --batch N           another batch size, where a loader gives the batches
    --truth WHAT        measure by another way than the monitor's: `synchronised` times phases with a
                        synchronise around each, `profiler` adds up the kernels that torch.profiler saw

and ends with one line of JSON: steps, seconds, and what torch's allocator says.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

#: Steps before those that are measured by another way.
WARM_UP = 10
#: Steps that the profiler looks at.
PROFILED = 20


class Loop:
    """One training of some seconds.

    Attributes:
        device: where it trains.
        small: on the CPU everything is small.
        batch: the batch size that was asked for; None: the script's own.
        copied_mb: what was copied to the device, in MB (1e6).
    """

    def __init__(self, about: str | None) -> None:
        ask = argparse.ArgumentParser(description=about)
        ask.add_argument("--device", default="cuda")
        ask.add_argument("--seconds", type=float, default=8.0)
        ask.add_argument("--steps", type=int, default=1_000_000)
        ask.add_argument("--batch", type=int)
        ask.add_argument("--truth", choices=["synchronised", "profiler"])
        self._args = ask.parse_args()
        self.device = torch.device(self._args.device)
        self.small = self.device.type == "cpu"
        self._times: dict[str, list[float]] = defaultdict(list)
        self._step_ms: list[float] = []
        self._figures: dict[str, float] = {}
        self._steps = 0
        self.batch: int | None = self._args.batch
        self.copied_mb = 0.0
        torch.manual_seed(0)

    def size(self, usual: int, small: int) -> int:
        """A size on a GPU, and on the CPU."""
        return small if self.small else usual

    def steps(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Batches until the time is up, epoch after epoch; each is one step."""
        began = last = time.perf_counter()
        with self._profiler() as profiler:
            while True:
                for batch in batches:
                    yield batch
                    if profiler is not None:
                        profiler.step()
                    self._steps += 1
                    now = time.perf_counter()
                    self._step_ms.append((now - last) * 1e3)
                    last = now
                    if now - began > self._args.seconds or self._steps >= self._args.steps:
                        self._figures["seconds"] = now - began
                        return

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """A part of the step; timed with the device at rest before and after, where that was asked for."""
        if self._args.truth != "synchronised" or self.small:
            yield
            return
        torch.cuda.synchronize()
        began = time.perf_counter()
        yield
        torch.cuda.synchronize()
        self._times[name].append((time.perf_counter() - began) * 1e3)

    @contextlib.contextmanager
    def _profiler(self) -> Iterator[Any]:
        if self._args.truth != "profiler" or self.small:
            yield None
            return
        schedule = torch.profiler.schedule(wait=WARM_UP, warmup=2, active=PROFILED, repeat=1)
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CUDA], schedule=schedule, on_trace_ready=self._read
        ) as profiler:
            yield profiler

    def _read(self, profiler: Any) -> None:
        """Milliseconds of kernels and copies a step, from the profiler's own sums."""
        total_us = sum(getattr(event, "self_device_time_total", 0) for event in profiler.key_averages())
        self._figures["kernels_ms"] = total_us / 1e3 / PROFILED

    def done(self, **more: Any) -> None:
        """Print what was measured, as the last line."""
        figures: dict[str, Any] = {
            "steps": self._steps,
            "copied_mb": self.copied_mb,
            **self._figures,
            **more,
        }
        if len(self._step_ms) > WARM_UP:
            figures["step_ms"] = statistics.median(self._step_ms[WARM_UP:])
        for name, times in self._times.items():
            figures[f"{name}_ms"] = statistics.mean(times[WARM_UP:] or times)
        if not self.small:
            figures.update(allocator())
        print(json.dumps(figures), flush=True)


def allocator() -> dict[str, float]:
    """What torch's own functions say of the memory, in MB (1e6), and of the device."""
    stats = torch.cuda.memory_stats()
    return {
        "allocated_mb": torch.cuda.memory_allocated() / 1e6,
        "reserved_mb": torch.cuda.memory_reserved() / 1e6,
        "peak_mb": torch.cuda.max_memory_allocated() / 1e6,
        "split_mb": stats["inactive_split_bytes.all.current"] / 1e6,
        "retries": stats["num_alloc_retries"],
        "ooms": stats["num_ooms"],
        "allocations": stats["allocation.all.allocated"],
        "device_allocs": stats["num_device_alloc"],
    }


class Images(Dataset[tuple[torch.Tensor, int]]):
    """Pictures made in advance, so that the loader is never what is slow."""

    def __init__(self, side: int, count: int = 4096) -> None:
        self._images = torch.randn(16, 3, side, side)
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self._images[index % 16], index % 10


def images(loop: Loop, *, side: int, batch: int, pinned: bool = True) -> DataLoader[Any]:
    """A loader of pictures, as one should be set up, or from pageable memory."""
    return DataLoader(
        Images(loop.size(side, 8), loop.size(4096, 32)),
        batch_size=loop.batch or loop.size(batch, 4),
        num_workers=loop.size(6, 0),
        persistent_workers=not loop.small,
        pin_memory=pinned and not loop.small,
    )


def convolutions(loop: Loop, width: int = 64, depth: int = 8) -> nn.Module:
    """A small network of convolutions."""
    wide = loop.size(width, 8)
    layers: list[nn.Module] = [nn.Conv2d(3, wide, 3, stride=2, padding=1), nn.ReLU()]
    for _ in range(loop.size(depth, 1)):
        layers += [nn.Conv2d(wide, wide, 3, padding=1), nn.BatchNorm2d(wide), nn.ReLU()]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(wide, 16)]
    return nn.Sequential(*layers).to(loop.device)


def perceptron(loop: Loop, width: int, layers: int) -> nn.Module:
    """Linear layers, all of one width."""
    wide = loop.size(width, 16)
    parts = [part for _ in range(loop.size(layers, 2)) for part in (nn.Linear(wide, wide), nn.ReLU())]
    return nn.Sequential(*parts).to(loop.device)


def made_there(loop: Loop, rows: int, width: int, batches: int = 64) -> list[torch.Tensor]:
    """Batches that lie on the device already: nothing is loaded or copied."""
    shape = (loop.size(rows, 4), loop.size(width, 16))
    return [torch.randn(*shape, device=loop.device) for _ in range(min(batches, loop.size(batches, 4)))]


def regress(
    loop: Loop,
    model: nn.Module,
    batches: Iterable[torch.Tensor],
    *,
    half: bool = False,
    after: Callable[[torch.Tensor], None] = lambda loss: None,
) -> None:
    """Train a model on what it is given: forward, backward, optimizer. `after` is called after each step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for x in loop.steps(batches):
        with loop.phase("forward"), torch.autocast(loop.device.type, torch.bfloat16, enabled=half):
            loss = model(x).float().pow(2).mean()
        with loop.phase("backward"):
            loss.backward()
        with loop.phase("optimizer"):
            optimizer.step()
            optimizer.zero_grad()
        after(loss)


def classify(loop: Loop, model: nn.Module, batches: Iterable[Any], *, half: bool = True) -> None:
    """Train a classifier of pictures that come from a loader."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for x, y in loop.steps(batches):
        loop.copied_mb += x.nbytes / 1e6
        x, y = x.to(loop.device, non_blocking=True), y.to(loop.device, non_blocking=True)
        with loop.phase("forward"), torch.autocast(loop.device.type, torch.bfloat16, enabled=half):
            loss = nn.functional.cross_entropy(model(x), y)
        with loop.phase("backward"):
            loss.backward()
        with loop.phase("optimizer"):
            optimizer.step()
            optimizer.zero_grad()
