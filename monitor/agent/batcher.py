"""Gathers rows and events and cuts them into batches that the sink will take."""

from __future__ import annotations

import contextlib
import re
from array import array
from collections.abc import Mapping
from typing import Any

from monitor.batch import Batch, Block

#: Limits of one batch, well below what `monitor.batch` refuses.
ROWS_A_BATCH = 10_000
BLOCKS_A_BATCH = 512
EVENTS_A_BATCH = 1_000
#: Events of one batch, measured as Python prints them; encoded they are at most six times as long.
EVENT_CHARS_A_BATCH = 500_000
#: Longest name of a column; see `monitor.batch`.
NAME_CHARS = 64

#: Events that are rows of a stream, and of which.
ROWS = {"log": "user", "cuda": "cuda"}

_UNFIT = re.compile(r"[^A-Za-z0-9_./-]")


class Batcher:
    """Rows and events between two batches.

    Args:
        run, host: as they stand in each batch.
    """

    def __init__(self, run: str, host: str) -> None:
        self._run = run
        self._host = host
        self._seq = 0
        self._blocks: list[Block] = []
        self._events: list[dict[str, Any]] = []
        self._samples: dict[str, list[tuple[float, Mapping[str, float]]]] = {}
        self._next_row: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._blocks or self._events or self._samples)

    @property
    def full(self) -> bool:
        """Whether a batch is due for its size."""
        return sum(map(len, self._blocks)) >= ROWS_A_BATCH or len(self._events) >= EVENTS_A_BATCH

    def block(self, block: Block) -> None:
        """Add rows that came as a block."""
        self._blocks.append(block)

    def sample(self, stream: str, t_s: float, values: Mapping[str, float]) -> None:
        """Add one row of a stream whose rows are numbered here."""
        self._samples.setdefault(stream, []).append((t_s, values))

    def event(self, event: dict[str, Any]) -> None:
        """Add one event, which has its `kind` and `t_s`.

        A rank's `log` becomes a row of `user/RANK`, its `cuda` one of `cuda/RANK`.
        """
        stream = ROWS.get(event["kind"])
        if stream and isinstance(event.get("values"), Mapping):
            self.sample(f"{stream}/{event.get('rank', 0)}", event["t_s"], _numbers(event["values"]))
        else:
            self._events.append(event)

    def close(self, now_s: float) -> list[Batch]:
        """What was gathered, as few batches as the limits allow; none when nothing was."""
        blocks = self._blocks + [self._rows(stream, rows) for stream, rows in self._samples.items()]
        events = self._events
        self._blocks, self._events, self._samples = [], [], {}
        batches = []
        while blocks or events:
            taken, blocks = _cut_blocks(blocks)
            fitting, events = _cut_events(events)
            self._seq += 1
            batches.append(Batch(self._run, self._host, self._seq, now_s, tuple(taken), tuple(fitting)))
        return batches

    def _rows(self, stream: str, rows: list[tuple[float, Mapping[str, float]]]) -> Block:
        first = self._next_row.get(stream, 0)
        self._next_row[stream] = first + len(rows)
        keys = list(dict.fromkeys(key for _, values in rows for key in values))
        columns = {key: array("f", [values.get(key, float("nan")) for _, values in rows]) for key in keys}
        return Block(stream, first, array("d", [t_s for t_s, _ in rows]), columns)


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """The user's numbers under names that a column may have."""
    found = {}
    for name, value in values.items():
        key = _UNFIT.sub("_", str(name))[:NAME_CHARS]
        with contextlib.suppress(TypeError, ValueError):
            found[key if key[:1].isalpha() else f"_{key[1:]}"] = float(value)
    return found


def _cut_blocks(blocks: list[Block]) -> tuple[list[Block], list[Block]]:
    rows = 0
    for count, block in enumerate(blocks):
        rows += len(block)
        if count == BLOCKS_A_BATCH or (count and rows > ROWS_A_BATCH):
            return blocks[:count], blocks[count:]
    return blocks, []


def _cut_events(events: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    chars = 0
    for count, event in enumerate(events):
        chars += len(repr(event))
        if count == EVENTS_A_BATCH or (count and chars > EVENT_CHARS_A_BATCH):
            return events[:count], events[count:]
    return events, []
