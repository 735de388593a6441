"""TensorBoard: event files that it reads, made of its own records and messages. TensorFlow is not needed."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.types_pb2 import DT_STRING
from tensorboard.summary.writer.record_writer import RecordWriter

from monitor.bridges.finding_text import finding_text


class TensorBoard:
    """One event file in `folder`.

    Args:
        folder: the log folder; made where it is absent.

    Raises:
        OSError: the file cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}.torchvitals"
        self._records = RecordWriter((folder / name).open("xb"))
        self._write(Event(wall_time=time.time(), file_version="brain.Event:2"))

    def row(self, step: int, unix_s: float, values: Mapping[str, float]) -> None:
        """Each value is a scalar `torchvitals/NAME`."""
        scalars = [Summary.Value(tag=f"torchvitals/{key}", simple_value=values[key]) for key in values]
        self._write(Event(wall_time=unix_s, step=step, summary=Summary(value=scalars)))

    def finding(self, finding: Mapping[str, Any], step: int, unix_s: float) -> None:
        """A text `torchvitals/findings/CODE`."""
        self._text(f"torchvitals/findings/{finding['code']}", finding_text(finding), step, unix_s)

    def close(self, found: Mapping[str, Any]) -> None:
        """The verdict as a text, then the end of the file."""
        verdict = (found.get("verdict") or {}).get("text")
        if verdict:
            self._text("torchvitals/verdict", str(verdict), int(found["steps"] or 0), time.time())
        self._records.close()

    def _text(self, tag: str, text: str, step: int, unix_s: float) -> None:
        tensor = TensorProto(
            dtype=DT_STRING,
            tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)]),
            string_val=[text.encode("utf-8", "replace")],
        )
        plugin = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
        value = Summary.Value(tag=tag, tensor=tensor, metadata=plugin)
        self._write(Event(wall_time=unix_s, step=step, summary=Summary(value=[value])))

    def _write(self, event: Event) -> None:
        """Whole records only reach the disk, so a reader that follows sees each at once."""
        self._records.write(event.SerializeToString())
        self._records.flush()
