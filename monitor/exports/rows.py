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


def blocks(
    store: Store, choice: Choice, keys: Sequence[str], size: int = BLOCK
) -> Iterator[dict[str, Array]]:
    """`row`, `t_s` and each key, of the rows in the choice's range, at most `size` at a time.

    A block without any row is left out. The run may grow meanwhile; what comes later is not in it.
    """
    span = store.span(choice.named)
    if span is None:
        return
    for first in range(span["first_row"], span["last_row"] + 1, size):
        last = min(first + size - 1, span["last_row"])
        times = store.rows(choice.named, [], first, last)["t_s"]
        if choice.last_s is not None and len(times) and times[0] > choice.last_s:
            return
        inside = _inside(choice, times)
        if inside.any():
            block = store.rows(choice.named, keys, first, last)
            yield {name: column[: len(inside)][inside] for name, column in block.items()}


def _inside(choice: Choice, times: Array) -> Array:
    low = -np.inf if choice.first_s is None else choice.first_s
    high = np.inf if choice.last_s is None else choice.last_s
    return np.asarray((times >= low) & (times <= high))
