"""What attach adds to a step of each framework, beside the framework's own cheapest callback.

    python benchmarks/frameworks.py [--rounds N] [--steps N] [--only NAME] [--json FILE]

Linear 32→32, batch 16, SGD, one thread. In one process the bare loop, ours and theirs take turns, each
with a trainer of its own; a turn's figure is the lower quartile over chunks of 20 steps (what is slower
is the machine's), a row's the median over turns of the difference to the bare turn before it. Beside
the wall's stands the thread's CPU time. What is measured is all that runs in the training process;
agent and hub, which no framework changes, are measured by overhead.py. A framework that is not
installed is left out. Read ratios and differences, not third digits.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import itertools
import json
import logging
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from monitor.probe import adapters
from monitor.probe.probe import Probe
from monitor.probe.recorder import Recorder
from monitor.tape.writer import JournalWriter, TapeWriter

CHUNK = 20
WARM_UP = 40

Row = dict[str, Any]


class Net(nn.Module):
    """The model; notes the time at each forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(32, 32)
        self.wall_ns: list[int] = []
        self.cpu_ns: list[int] = []

    def forward(self, x: torch.Tensor, y: torch.Tensor | None = None) -> Any:
        self.wall_ns.append(time.perf_counter_ns())
        self.cpu_ns.append(time.thread_time_ns())
        out = self.layer(x)
        return out if y is None else {"loss": nn.functional.mse_loss(out, y), "logits": out}

    def us_a_step(self, times: list[int]) -> float:
        """Lower quartile over chunks of the time from one forward pass to the next."""
        marks = times[WARM_UP::CHUNK]
        return statistics.quantiles(((b - a) / CHUNK / 1e3 for a, b in itertools.pairwise(marks)), n=4)[0]


def data(steps: int) -> Any:
    return TensorDataset(torch.randn(16 * steps, 32), torch.randn(16 * steps, 32))


def loader(steps: int) -> Any:
    return DataLoader(data(steps), batch_size=16)


def plain(net: Net, steps: int, how: str) -> tuple[Any, Callable[[], Any]]:
    """A loop by hand, for comparison."""
    optimizer = torch.optim.SGD(net.parameters(), 0.01)

    def run() -> None:
        for x, y in loader(steps):
            loss = nn.functional.mse_loss(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return net, run


def lightning(net: Net, steps: int, how: str) -> tuple[Any, Callable[[], Any]]:
    import lightning.pytorch as pl
    from lightning.pytorch.loggers.logger import DummyLogger

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def training_step(self, batch: Any, index: int) -> Any:
            return nn.functional.mse_loss(self.net(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.01)

    class Cheapest(pl.Callback):
        def on_train_batch_end(self, *_: Any) -> None:
            return

    theirs = {"theirs": [Cheapest()], "device monitor": [pl.callbacks.DeviceStatsMonitor(cpu_stats=True)]}
    trainer = pl.Trainer(
        max_epochs=1, accelerator="cpu", logger=DummyLogger(), enable_progress_bar=False,
        enable_model_summary=False, enable_checkpointing=False, callbacks=theirs.get(how),
        log_every_n_steps=1 if how == "device monitor" else 50,
    )  # fmt: skip
    return trainer, lambda: trainer.fit(Module(), loader(steps))


def huggingface(net: Net, steps: int, how: str) -> tuple[Any, Callable[[], Any]]:
    import transformers

    class Cheapest(transformers.TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            return

    arguments = transformers.TrainingArguments(
        tempfile.mkdtemp(), per_device_train_batch_size=16, num_train_epochs=1, report_to=[], use_cpu=True,
        save_strategy="no", logging_strategy="no", disable_tqdm=True, dataloader_pin_memory=False,
    )  # fmt: skip
    rows = [{"x": x, "y": y} for x, y in data(steps)]
    callbacks = [Cheapest()] if how == "theirs" else []
    trainer = transformers.Trainer(net, arguments, train_dataset=rows, callbacks=callbacks)
    return trainer, trainer.train


def accelerate(net: Net, steps: int, how: str) -> tuple[Any, Callable[[], Any]]:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)

    def run() -> None:
        model, stepper, batches = accelerator.prepare(net, optimizer, loader(steps))
        for x, y in batches:
            with accelerator.accumulate(model):
                accelerator.backward(nn.functional.mse_loss(model(x), y))
                stepper.step()
                stepper.zero_grad()
            if how == "theirs":
                accelerator.log({"loss": 1.0})

    return accelerator, run


def ignite(net: Net, steps: int, how: str) -> tuple[Any, Callable[[], Any]]:
    from ignite.engine import Events, create_supervised_trainer

    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    trainer = create_supervised_trainer(net, optimizer, nn.MSELoss())
    if how == "theirs":
        trainer.add_event_handler(Events.ITERATION_COMPLETED, lambda _: None)
    return trainer, lambda: trainer.run(loader(steps), max_epochs=1)


def fastai(net: Net, steps: int, how: str) -> tuple[Any, Callable[[], Any]]:
    from fastai.callback.core import Callback
    from fastai.data.core import DataLoaders
    from fastai.data.load import DataLoader as Load
    from fastai.learner import Learner

    class Cheapest(Callback):
        def after_batch(self) -> None:
            return

    dls = DataLoaders(Load(data(steps), bs=16), Load(data(1), bs=16))
    learner = Learner(dls, net, loss_func=nn.MSELoss(), cbs=[Cheapest()] if how == "theirs" else [])
    learner.logger = lambda *_: None
    return learner, lambda: learner.fit(1)


FRAMEWORKS: dict[str, tuple[str, Callable[..., Any]]] = {
    "plain": ("torch", plain),
    "lightning": ("lightning", lightning),
    "huggingface": ("transformers", huggingface),
    "accelerate": ("accelerate", accelerate),
    "ignite": ("ignite", ignite),
    "fastai": ("fastai", fastai),
}


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Frameworks talk a lot."""
    logging.disable(logging.WARNING)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def watched(target: Any) -> Iterator[None]:
    """As `attach` watches it, without an agent."""
    with tempfile.TemporaryDirectory() as folder:
        tape = TapeWriter(f"{folder}/tape", rank=0, world_size=1, local_rank=0)
        probe = Probe(Recorder(tape, JournalWriter(f"{folder}/journal")))
        if isinstance(target, nn.Module):
            probe.module_hooks.add(target)
        else:
            probe.attach(adapters.find(target), target)
        try:
            yield
        finally:
            probe.finish(code=0)


def turn(make: Callable[..., Any], how: str, steps: int) -> tuple[float, float]:
    """One training: µs a step by the wall, and of the thread's CPU time."""
    torch.manual_seed(0)
    net = Net()
    with quiet():
        target, run = make(net, steps, how)
        with watched(target) if how == "ours" else contextlib.nullcontext():
            run()
    return net.us_a_step(net.wall_ns), net.us_a_step(net.cpu_ns)


def measure(name: str, rounds: int, steps: int) -> Row:
    """The bare loop's µs a step, and what each of the others adds to it."""
    _, make = FRAMEWORKS[name]
    hows = [
        "ours",
        *([] if name == "plain" else ["theirs"]),
        *(["device monitor"] if name == "lightning" else []),
    ]
    for how in ("bare", *hows):
        turn(make, how, WARM_UP + 3 * CHUNK)
    bare: list[tuple[float, float]] = []
    added: dict[str, list[tuple[float, float]]] = {how: [] for how in hows}
    for _ in range(rounds):
        bare.append(turn(make, "bare", steps))
        for how in hows:
            wall, cpu = turn(make, how, steps)
            added[how].append((wall - bare[-1][0], cpu - bare[-1][1]))
    row: Row = {"framework": name, "bare_us": _medians(bare)[0]}
    for how in hows:
        row[f"{how}_us"], row[f"{how}_cpu_us"] = _medians(added[how])
    return row


def _medians(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    wall, cpu = zip(*pairs, strict=True)
    return round(statistics.median(wall), 1), round(statistics.median(cpu), 1)


def main() -> None:
    """Measure what is installed, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="turns of each kind (default 7)")
    parser.add_argument("--steps", type=int, default=600, help="steps a turn (default 600)")
    parser.add_argument("--only", help="one framework: " + ", ".join(FRAMEWORKS))
    parser.add_argument("--json", type=Path, help="write the figures there")
    args = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.set_num_threads(1)
    print("µs a step     bare    ours (CPU)    theirs (CPU)   device monitor (CPU)", flush=True)
    rows = []
    for name, (package, _) in FRAMEWORKS.items():
        if args.only not in (None, name) or importlib.util.find_spec(package) is None:
            continue
        rows.append(row := measure(name, args.rounds, args.steps))
        cells = [
            f"{row[f'{how}_us']:+7.1f} ({row[f'{how}_cpu_us']:+6.1f})" if f"{how}_us" in row else " " * 16
            for how in ("ours", "theirs", "device monitor")
        ]
        print(f"{name:<12}{row['bare_us']:7.0f} " + " ".join(cells), flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
