"""Event files, read by TensorBoard itself; with the extra `tensorboard`, as CONTRIBUTING.md says."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from monitor.bridges.follow import follow
from monitor.store import Store

event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
from tensorboard.compat.proto.event_pb2 import Event  # noqa: E402  what skips the tests comes first

from monitor.bridges.to_tensorboard import TensorBoard  # noqa: E402


def records(folder: Path) -> list[bytes]:
    """Records of the one file in `folder`, each whole."""
    [path] = folder.iterdir()
    data, out = path.read_bytes(), []
    while data:
        (length,) = struct.unpack_from("<Q", data)
        assert len(data) >= 16 + length
        out.append(data[12 : 12 + length])
        data = data[16 + length :]
    return out


def test_a_file_is_whole_records_from_its_first_moment(tmp_path: Path):
    """A reader that follows never sees half of one; the first names the format."""
    board = TensorBoard(tmp_path / "a" / "b")
    assert b"brain.Event:2" in records(tmp_path / "a" / "b")[0]
    board.row(300, 1.8e9, {"loss": 0.5})
    event = Event.FromString(records(tmp_path / "a" / "b")[1])
    assert (event.step, event.wall_time) == (300, 1.8e9)
    [value] = event.summary.value
    assert (value.tag, value.simple_value) == ("torchvitals/loss", 0.5)
    board.close({"steps": 1})


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path):
    """Told at once, to whoever asked."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        TensorBoard(tmp_path / "file" / "logs")


def test_tensorboard_reads_it(store: Store, tmp_path: Path):
    """Scalars with their steps and times, findings and verdict as texts."""
    follow(store, TensorBoard(tmp_path), lambda _: True)
    read = event_accumulator.EventAccumulator(str(tmp_path))
    read.Reload()
    [memory] = read.Scalars("torchvitals/proc/0/rss_mb")
    assert (memory.value, memory.wall_time) == (500.0, pytest.approx(1.8e9 + 5.0))
    assert read.Scalars("torchvitals/run_loss")
    texts = read.Tags()["tensors"]
    assert {"torchvitals/findings/data_starvation", "torchvitals/verdict"} <= set(texts)
    [finding] = read.Tensors("torchvitals/findings/data_starvation")
    assert b"start workers" in finding.tensor_proto.string_val[0]
    assert read.SummaryMetadata("torchvitals/verdict").plugin_data.plugin_name == "text"


def test_it_loads_no_tensorflow(tmp_path: Path):
    """TensorBoard would load it where it is installed, for seconds; records and messages need none of it."""
    code = (
        "import sys; from pathlib import Path; from monitor.bridges.to_tensorboard import TensorBoard; "
        f"TensorBoard(Path({str(tmp_path)!r})).close({{}}); print('tensorflow' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
