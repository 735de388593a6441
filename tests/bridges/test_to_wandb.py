"""Weights & Biases, the real package, offline. Skipped where it is not installed."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

pytest.importorskip("wandb")

from wandb.proto import wandb_internal_pb2

from monitor.bridges.follow import follow
from monitor.bridges.to_wandb import Wandb
from monitor.store import Store

#: The file is a log in LevelDB's form behind a head of seven bytes: blocks of this size, chunks with heads.
BLOCK, FILE_HEAD, CHUNK_HEAD = 32768, 7, struct.Struct("<IHB")
FULL, LAST = 1, 4


def records(file: Path) -> list[wandb_internal_pb2.Record]:
    """What wandb wrote, as it would send it."""
    data, at, part, out = file.read_bytes(), FILE_HEAD, b"", []
    while at + CHUNK_HEAD.size <= len(data):
        if BLOCK - at % BLOCK < CHUNK_HEAD.size:
            at += BLOCK - at % BLOCK
            continue
        _, length, kind = CHUNK_HEAD.unpack_from(data, at)
        at += CHUNK_HEAD.size
        part += data[at : at + length]
        at += length
        if kind in (FULL, LAST):
            out.append(wandb_internal_pb2.Record.FromString(part))
            part = b""
    return out


@pytest.mark.filterwarnings("ignore")
def test_a_run_arrives_whole(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Configuration, numbers over our own step, findings and verdict in the summary, exit code 0."""
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    follow(store, Wandb(store.meta(), "digits"), lambda _: True)
    [file] = tmp_path.rglob("run-*.wandb")
    told = records(file)
    items = [item for record in told for item in record.history.item]
    named = {"/".join(item.nested_key) or item.key: item.value_json for item in items}
    assert named["torchvitals/proc/0/rss_mb"] in ("500", "500.0")
    assert "torchvitals/step" in named
    summary = {"/".join(u.nested_key) or u.key: u.value_json for r in told for u in r.summary.update}
    assert "start workers" in str(summary)
    assert "torchvitals/verdict" in summary
    [end] = [record.exit for record in told if record.HasField("exit")]
    assert end.exit_code == 0
