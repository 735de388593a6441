"""What a page is sent and what the report says are the same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from batches import STEP, Training

from monitor import report
from monitor.batch import Batch
from monitor.pipeline import Pipeline
from monitor.schema import PHASES


def test_two_ranks_that_differ(tmp_path: Path) -> None:
    """Each tile of a steady run is its number in the report, though one rank takes twice as long a step."""
    updates: list[dict[str, Any]] = []
    pipeline = Pipeline(tmp_path, publish=lambda _, update: updates.append(update), alert=lambda *_: None)
    fast, slow = Training(ranks=2), Training(ranks=2, phases={**STEP, "forward": 25.0})
    pipeline.take(fast.start())
    memory = [("proc/0", 500.0), ("proc/1", 700.0)]
    for _ in range(10):
        blocks = fast.batch(100, tokens=64.0).blocks[0], slow.batch(50, tokens=64.0).blocks[1]
        fast.seq += 1
        pipeline.take(Batch(fast.run, fast.host, fast.seq, fast.now_s, blocks))
    for stream, rss_mb in memory:
        pipeline.take(fast.sample(stream, rss_mb=rss_mb, tree_pss_mb=rss_mb + 1))
    tiles, rows = updates[-1]["tiles"], pipeline.snapshot(fast.run)["rows"]["run"]
    pipeline.close()
    told = report.build(tmp_path / fast.run)
    assert told["step_ms"]["p50"] == pytest.approx(30)
    for key in ("p50", "p95", "p99"):
        assert tiles[f"step_{key}_ms"] == pytest.approx(told["step_ms"][key])
    for key in ("steps_per_s", "samples_per_s", "tokens_per_s"):
        assert tiles[key] == pytest.approx(told["throughput"][key])
    assert tiles["data_share"] == pytest.approx(told["time_share"]["data"])
    assert tiles["tree_pss_mb"] == told["memory"]["rss_mb"] == 1202
    assert updates[-1]["steps"] == told["steps"]
    spent = {phase: rows[f"run_{phase}_ms"][-1] for phase in PHASES}
    assert spent["forward"] == pytest.approx((5 + 25) / 2)
