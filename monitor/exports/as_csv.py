"""CSV: one stream's raw rows, a column a metric. What was not measured is empty, never zero."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import numpy as np

from monitor.exports.choice import Choice
from monitor.exports.rows import blocks
from monitor.store import Store
from monitor.store.pack import Array

#: A cell that begins so is a formula to a spreadsheet, and metrics are named by whoever trains.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write(store: Store, choice: Choice) -> Iterator[bytes]:
    """Header and rows. The first column is the step of a rank, or the sample's number; `t_s` seconds since
    the run began, to the microsecond; the rest as short as float32 can be told apart.
    """
    keys = store.keys(choice.named)
    number = "step" if choice.named.startswith("rank/") else "row"
    yield _line([number, "t_s", *keys])
    for block in blocks(store, choice, keys):
        columns = [_text(block[name]) for name in ("row", "t_s", *keys)]
        yield "".join(",".join(cells) + "\n" for cells in zip(*columns, strict=True)).encode()


def _line(names: list[str]) -> bytes:
    out = io.StringIO()
    safe = [f"'{name}" if name.startswith(_FORMULA) else name for name in names]
    csv.writer(out, lineterminator="\n").writerow(safe)
    return out.getvalue().encode("utf-8", "replace")


def _text(column: Array) -> list[str]:
    if column.dtype.kind != "f":
        return [str(value) for value in column.tolist()]
    values = np.round(column, 6) if column.dtype == np.float64 else column
    texts: list[str] = np.where(np.isnan(column), "", values.astype(str)).tolist()
    return texts
