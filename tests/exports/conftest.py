"""One run in a real store, told by its agent, with a finding and with names that mean harm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from batches import RUN, Training

from monitor.pipeline import Pipeline
from monitor.store import FILE_NAME, Store

#: A step that waits for its data half of its time.
WAITS = {"data": 12.0, "forward": 4.0, "backward": 7.0, "optimizer": 1.0}
#: What a training may call things.
EVIL = "<script>alert(1)</script>"
FINDING = {
    "code": "data_starvation",
    "severity": "warning",
    "title": f"waits {EVIL}",
    "cause": "num_workers=0",
    "evidence": {"data_share": 0.5, "worker": EVIL, "unknown": None},
    "advice": "start workers",
    "snippet": "DataLoader(…, num_workers=4) # <b>",
    "gain": {"speedup": 2.0, "share_of_step": 0.5, "basis": "hiding the wait"},
    "ranks": [0],
    "first_step": 20,
    "last_step": 99,
    "raised_at_s": 1.0,
    "cleared_at_s": None,
    "location": "train.py:31",
}


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one run of two ranks, 5,000 steps each, and its samples."""
    folder = tmp_path_factory.mktemp("runs")
    pipeline, training = Pipeline(folder), Training(ranks=2, phases=WAITS)
    pipeline.take(training.start(name=EVIL, config={"lr": 0.1, EVIL: EVIL}))
    pipeline.take(training.batch(2500, loss=1.0))
    pipeline.take(training.sample("proc/0", rss_mb=500.0, tree_pss_mb=700.0, main_cpu=1.0))
    pipeline.take(training.batch(2500, training.end(0), training.end(1), idle_s=5.0, loss=float("nan")))
    pipeline.close()
    with Store(folder / RUN / FILE_NAME, create=True) as store:
        store.save_findings(
            [FINDING, {**FINDING, "cause": "no steps", "first_step": None, "last_step": None}]
        )
    return folder


@pytest.fixture
def store(run_dir: Path) -> Iterator[Store]:
    """The run's store, open for reading."""
    with Store(run_dir / RUN / FILE_NAME) as opened:
        yield opened
