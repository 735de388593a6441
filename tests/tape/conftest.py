"""Tapes of this test's own, and values for their steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from monitor.schema import TAPE_METRICS
from monitor.tape.writer import TapeWriter


def values_of(step: int) -> list[float]:
    """Values from which the step can be told again: every field holds `step`, in its own unit."""
    return [step * 1_000_000 if metric.tape == "ns" else float(step) for metric in TAPE_METRICS]


@pytest.fixture
def values() -> Callable[[int], list[float]]:
    return values_of


@pytest.fixture
def unmeasured() -> list[float]:
    return [0 if metric.tape == "ns" else math.nan for metric in TAPE_METRICS]


@pytest.fixture
def tape_path(tmp_path: Path) -> str:
    return str(tmp_path / "rank-0-1.tape")


@pytest.fixture
def writer(tape_path: str) -> Iterator[TapeWriter]:
    made = TapeWriter(tape_path, rank=0, world_size=1, local_rank=0, slots=8)
    yield made
    made.close()
