"""Activity between two samples, where the GPU can tell."""

from __future__ import annotations

import math
from pathlib import Path

from .conftest import ONE, Ask, but

KEYS = ("gpu_sm_activity", "gpu_tensor_activity", "gpu_dram_activity")


def activity(ask: Ask) -> list[float | None]:
    row = ask("sample")["0"]
    return [None if math.isnan(row[key]) else row[key] for key in KEYS]


def test_it_takes_two_samples(ask: Ask) -> None:
    """The first row has none; the stub refuses one sample, or two in the wrong order."""
    assert [activity(ask) for _ in range(4)] == [[None] * 3, [60, 19, 30], [60, 19, 30], [60, 19, 30]]
    assert ask("events") == []


def test_a_gpu_before_hopper_says_nothing(ask: Ask, state: Path) -> None:
    """It is not supported there, which is no error."""
    state.write_text(but(ONE, u0_gpm=0))
    assert [activity(ask) for _ in range(2)] == [[None] * 3] * 2
    assert ask("events") == []


def test_one_metric_may_be_missing(ask: Ask, state: Path) -> None:
    """The others are there."""
    state.write_text("\n".join(line for line in ONE.splitlines() if not line.startswith("0.gpm.5")) + "\n")
    activity(ask)
    assert activity(ask) == [60, None, 30]


def test_a_sample_that_failed_is_not_compared_with(ask: Ask, state: Path) -> None:
    """After a failure it takes two good samples again."""
    activity(ask)
    activity(ask)
    state.write_text(ONE + "fail.nvmlGpmSampleGet 999\n")
    failed = activity(ask)
    state.write_text(ONE)
    assert (failed, activity(ask), activity(ask)) == ([None] * 3, [None] * 3, [60, 19, 30])
