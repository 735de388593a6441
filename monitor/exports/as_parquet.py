"""Parquet: one stream's raw rows in columns. The only file that knows pyarrow."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

import pyarrow
import pyarrow.parquet

from monitor.exports.choice import Choice
from monitor.exports.rows import blocks
from monitor.schema import BY_KEY
from monitor.store import Store
from monitor.store.pack import Array

#: Rows of a row group: readers skip whole groups by their minimum and maximum.
GROUP = 50_000
#: Bytes handed on at a time.
_PIECE = 256 * 1024


def write(store: Store, choice: Choice) -> Iterator[bytes]:
    """The file. Its footer comes last and counts all, so it is written to disk (unnamed) before it leaves.

    `row` is int64, `t_s` float64, each metric float32 with its unit in the field's metadata. What was not
    measured is null.
    """
    keys = store.keys(choice.named)
    schema = _schema(store, choice, keys)
    with tempfile.TemporaryFile() as file:
        with pyarrow.parquet.ParquetWriter(file, schema) as writer:
            for block in blocks(store, choice, keys, GROUP):
                writer.write_table(_table(block, schema))
        file.seek(0)
        while piece := file.read(_PIECE):
            yield piece


def _schema(store: Store, choice: Choice, keys: list[str]) -> Any:
    fields = [pyarrow.field("row", pyarrow.int64()), pyarrow.field("t_s", pyarrow.float64())]
    for key in keys:
        unit = BY_KEY[key].unit if key in BY_KEY else ""
        fields.append(pyarrow.field(key, pyarrow.float32(), metadata={"unit": unit}))
    about = {"run": str(store.meta().get("run")), "stream": choice.named}
    return pyarrow.schema(fields, metadata=about)


def _table(block: dict[str, Array], schema: Any) -> Any:
    columns = [pyarrow.array(block[f.name], f.type, from_pandas=f.name not in ("row", "t_s")) for f in schema]
    return pyarrow.Table.from_arrays(columns, schema=schema)
