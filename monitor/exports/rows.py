"""A stream's rows in blocks of bounded size, oldest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from monitor.exports.choice import Choice
from monitor.store import Store
from monitor.store.pack import Array

#: Rows of a block: some tens of columns of them are converted in a few milliseconds, so that a long
#: export leaves the hub's other threads their turns.
BLOCK = 2_000
#: Rows whose times are looked at together when a range is sought.
BATCH_ROWS = 50_000


def blocks(
    store: Store, choice: Choice, keys: Sequence[str], size: int = BLOCK
) -> Iterator[dict[str, Array]]:
    """`row`, `t_s` and each key, of the rows in the choice's range, at most `size` at a time.

    A block without any row is left out. The run may grow meanwhile; what comes later is not in it.
    """
    for begin, end in _spans(store, choice):
        for first in range(begin, end + 1, size):
            block = store.rows(choice.named, keys, first, min(first + size - 1, end))
            if len(block["row"]):
                yield block


def _spans(store: Store, choice: Choice) -> Iterator[tuple[int, int]]:
    """First and last number of wanted rows, piece by piece. Only their times are read."""
    span = store.span(choice.named)
    if span is None:
        return
    if choice.first_s is None and choice.last_s is None:
        yield span["first_row"], span["last_row"]
        return
    low = -np.inf if choice.first_s is None else choice.first_s
    high = np.inf if choice.last_s is None else choice.last_s
    for first in range(span["first_row"], span["last_row"] + 1, BATCH_ROWS):
        held = store.rows(choice.named, [], first, min(first + BATCH_ROWS - 1, span["last_row"]))
        wanted = held["row"][(held["t_s"] >= low) & (held["t_s"] <= high)]
        if len(wanted):
            yield int(wanted[0]), int(wanted[-1])
        if len(held["row"]) and held["t_s"][0] > high:
            return
