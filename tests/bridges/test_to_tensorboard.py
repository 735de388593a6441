"""Event files: read back record by record here, and by TensorBoard itself where it is installed."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from monitor.bridges.follow import follow
from monitor.bridges.to_tensorboard import TensorBoard, crc32c
from monitor.store import Store


@pytest.mark.parametrize(("data", "crc"), [(b"", 0), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA)])
def test_the_checksum_is_the_published_one(data: bytes, crc: int):
    """RFC 3720, B.4."""
    assert crc32c(data) == crc


def records(folder: Path) -> list[bytes]:
    """Records of the one file in `folder`, each checksum checked."""
    [path] = folder.iterdir()
    data, out = path.read_bytes(), []
    while data:
        length, crc = struct.unpack_from("<QI", data)
        body = data[12 : 12 + length]
        assert crc == masked(data[:8])
        assert struct.unpack_from("<I", data, 12 + length)[0] == masked(body)
        out.append(body)
        data = data[16 + length :]
    return out


def masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_a_file_is_whole_records_from_its_first_moment(tmp_path: Path):
    """A reader that follows never sees half of one; the first names the format."""
    board = TensorBoard(tmp_path / "a" / "b")
    assert b"brain.Event:2" in records(tmp_path / "a" / "b")[0]
    board.row(300, 1.8e9, {"loss": 0.5})
    event = records(tmp_path / "a" / "b")[1]
    assert event[:9] == b"\x09" + struct.pack("<d", 1.8e9)
    assert event[9:12] == b"\x10\xac\x02"  # field 2, 300 as a varint
    board.close({"steps": 1})
    assert b"torchvitals/loss\x15" + struct.pack("<f", 0.5) in event


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path):
    """Told at once, to whoever asked."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        TensorBoard(tmp_path / "file" / "logs")


def test_tensorboard_reads_it(store: Store, tmp_path: Path):
    """Scalars with their steps and times, findings and verdict as texts."""
    module = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    follow(store, TensorBoard(tmp_path), lambda _: True)
    read = module.EventAccumulator(str(tmp_path))
    read.Reload()
    [memory] = read.Scalars("torchvitals/proc/0/rss_mb")
    assert (memory.value, memory.wall_time) == (500.0, pytest.approx(1.8e9 + 5.0))
    assert read.Scalars("torchvitals/run_loss")
    texts = read.Tags()["tensors"]
    assert {"torchvitals/findings/data_starvation", "torchvitals/verdict"} <= set(texts)
    [finding] = read.Tensors("torchvitals/findings/data_starvation")
    assert b"start workers" in finding.tensor_proto.string_val[0]
    assert read.SummaryMetadata("torchvitals/verdict").plugin_data.plugin_name == "text"
