"""Training that is watched by a real probe, writing to a real tape: for tests of what the probe sees."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from monitor.probe.probe import Probe
from monitor.probe.recorder import Recorder
from monitor.schema import PHASES
from monitor.tape.reader import JournalReader, TapeReader
from monitor.tape.writer import JournalWriter, TapeWriter

_numbers = itertools.count(1)

#: What a loop gets: call it with the modules that it trains. It does nothing where nobody watches.
See = Callable[..., None]
#: A loop trains and returns whatever its result is made of: losses, modules, tensors.
Loop = Callable[[See], Any]


class Watch:
    """One probe at work, and what it wrote.

    Attributes:
        rows: after the end, a dict a step: times in ms, `step_ms` with them.
        events: after the end, what the journal holds.
    """

    def __init__(self, folder: Path, modules: Iterable[nn.Module] = (), device: Any = None) -> None:
        self._stem = str(folder / f"rank-0-{next(_numbers)}")
        journal = JournalWriter(f"{self._stem}.journal")
        tape = TapeWriter(f"{self._stem}.tape", rank=0, world_size=1, local_rank=0, slots=2048)
        self.recorder = Recorder(tape, journal)
        self.probe = Probe(self.recorder, modules, device)
        self.rows: list[dict[str, float]] = []
        self.events: list[dict[str, Any]] = []

    def see(self, *modules: nn.Module) -> None:
        """As `attach(module)` for each."""
        for module in modules:
            self.probe.module_hooks.add(module)

    def finish(self) -> None:
        """Detach, and read what was written."""
        self.probe.finish(code=0, reason="detached")
        found = TapeReader(f"{self._stem}.tape").read(0, 4096)
        keys = list(found.columns)
        self.rows = [dict(zip(keys, row, strict=True)) for row in zip(*found.columns.values(), strict=True)]
        self.events = JournalReader(f"{self._stem}.journal").read()

    @property
    def steps(self) -> int:
        """Steps on the tape."""
        return len(self.rows)

    def column(self, key: str) -> list[float]:
        """One value of every step."""
        return [row[key] for row in self.rows]

    def total(self, phase: str) -> float:
        """Milliseconds of all steps in one phase."""
        return sum(self.column(f"{phase}_ms"))

    def longest(self) -> str:
        """The phase that took most of all time."""
        return max(PHASES, key=self.total)

    def kinds(self, kind: str) -> list[dict[str, Any]]:
        """The events of one kind."""
        return [event for event in self.events if event["kind"] == kind]

    def facts(self) -> dict[str, Any]:
        """The newest value of each fact."""
        return {event["name"]: event["value"] for event in self.kinds("fact")}


@contextmanager
def watching(folder: Path, *modules: nn.Module, device: Any = None) -> Iterator[Watch]:
    """A probe for the time of a `with`; its rows and events can be read afterwards."""
    watch = Watch(folder, modules, device)
    try:
        yield watch
    finally:
        watch.finish()


def ignore(*_: nn.Module) -> None:
    """Nobody watches."""


def alike(loop: Loop, folder: Path, *, named: bool = True) -> Watch:
    """Run a loop bare and watched, from the same seed; assert that the results agree to the last bit.

    Args:
        named: whether the probe is told the modules (`attach(model)`) or finds them (`attach()`).
    """
    torch.manual_seed(0)
    bare = digest(loop(ignore))
    with watching(folder) as watch:
        torch.manual_seed(0)
        watched = digest(loop(watch.see if named else ignore))
    assert watched == bare
    return watch


def digest(result: Any) -> str:
    """One text for a result: equal only where every bit of every number is."""
    sum_ = hashlib.md5()
    for part in _parts(result):
        sum_.update(part)
    return sum_.hexdigest()


def _parts(result: Any) -> Iterator[bytes]:
    if isinstance(result, torch.Tensor):
        # by way of float64 for the sake of types that numpy does not know; exact for all of them
        yield result.detach().double().numpy().tobytes()
    elif isinstance(result, nn.Module):
        yield from _parts(result.state_dict())
    elif isinstance(result, dict):
        for key in result:
            yield str(key).encode()
            yield from _parts(result[key])
    elif isinstance(result, list | tuple):
        for item in result:
            yield from _parts(item)
    else:
        yield repr(result).encode()
