"""One run in a real store, and a target that remembers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from batches import RUN, Training

from monitor.pipeline import Pipeline
from monitor.store import FILE_NAME, Store

FINDING = {
    "code": "data_starvation",
    "severity": "warning",
    "title": "the loop waits",
    "cause": "num_workers=0",
    "evidence": {},
    "advice": "start workers",
    "snippet": "DataLoader(…, num_workers=4)",
    "gain": {"speedup": 2.0, "share_of_step": 0.5, "basis": "hiding the wait"},
    "raised_at_s": 1.0,
    "cleared_at_s": None,
    "location": "train.py:31",
}


class Remembered:
    """A target of a test."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, float, Mapping[str, float]]] = []
        self.findings: list[tuple[int, Mapping[str, Any]]] = []
        self.closed: list[Mapping[str, Any]] = []

    def row(self, step: int, unix_s: float, values: Mapping[str, float]) -> None:
        self.rows.append((step, unix_s, values))

    def finding(self, finding: Mapping[str, Any], step: int, unix_s: float) -> None:
        self.findings.append((step, finding))

    def close(self, found: Mapping[str, Any]) -> None:
        self.closed.append(found)


@pytest.fixture
def target() -> Remembered:
    """Remembers what it is told."""
    return Remembered()


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one finished run: 500 steps of 20 ms, a sample after 250, and a finding."""
    folder = tmp_path_factory.mktemp("runs")
    pipeline, training = Pipeline(folder), Training()
    pipeline.take(training.start(config={"lr": 0.1}))
    pipeline.take(training.batch(250, loss=1.0))
    pipeline.take(training.sample("proc/0", rss_mb=500.0))
    pipeline.take(training.sample("user/0", accuracy=0.5))
    pipeline.take(training.batch(250, training.end(), loss=0.5))
    pipeline.close()
    with Store(folder / RUN / FILE_NAME, create=True) as store:
        store.save_findings([FINDING])
    return folder


@pytest.fixture
def store(run_dir: Path) -> Iterator[Store]:
    """The run's store, open for reading."""
    with Store(run_dir / RUN / FILE_NAME) as opened:
        yield opened
