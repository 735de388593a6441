"""How much faster one run is than another, and whether that can be told from chance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finished_runs import keep, steps

from monitor.compare import read, speed


def compared(tmp_path: Path, *sides: dict[str, Any]) -> dict[str, Any]:
    """The speeds of two runs given as `keep` takes them."""
    before, after = (read(keep(tmp_path, f"run-{i}", **side)) for i, side in enumerate(sides))
    return speed(before, after)


@pytest.mark.parametrize(("ms", "verdict"), [(25.0, "faster"), (50.0, "no difference"), (100.0, "slower")])
def test_the_speed_up_and_its_interval(tmp_path: Path, ms: float, verdict: str) -> None:
    """Twenty seconds of steps tell a factor of two from chance, in both directions."""
    found = compared(tmp_path, {"step_ms": steps(ms=50.0)}, {"step_ms": steps(ms=ms, seed=1)})
    assert found["verdict"] == verdict
    assert found["low"] < 50.0 / ms < found["high"]
    assert found["speedup"] == pytest.approx(50.0 / ms, rel=0.03)
    assert found["candidate_per_s"] == pytest.approx(1e3 / ms, rel=0.03)


def test_the_same_thing_twice_is_neither_faster_nor_slower(tmp_path: Path) -> None:
    """Forty pairs of one and the same, each run with a luck of its own of some percent: none is judged."""
    rng = np.random.default_rng(11)
    sides = [
        read(keep(tmp_path, f"r{i}", steps(150, 40.0 * rng.lognormal(0, 0.03), seed=i))) for i in range(40)
    ]
    verdicts = [speed(a, b)["verdict"] for a, b in zip(sides[::2], sides[1::2], strict=True)]
    assert set(verdicts) == {"no difference"}


def test_a_short_run_needs_a_larger_difference(tmp_path: Path) -> None:
    """A third faster is told in five minutes, and not in two seconds, of the same scatter."""
    short = compared(tmp_path / "s", {"step_ms": steps(100, 20)}, {"step_ms": steps(100, 15, seed=1)})
    long = compared(tmp_path / "l", {"step_ms": steps(4000, 80)}, {"step_ms": steps(4000, 60, seed=1)})
    assert (short["verdict"], long["verdict"]) == ("no difference", "faster")
    assert long["high"] - long["low"] < 0.15


def test_larger_batches_are_compared_by_samples(tmp_path: Path) -> None:
    """Twice the batch in one and a half times the time is faster, though there are fewer steps a second."""
    found = compared(tmp_path, {"step_ms": steps(ms=50)}, {"step_ms": steps(ms=75, seed=1), "samples": 32.0})
    assert found["unit"] == "samples"
    assert found["speedup"] == pytest.approx(4 / 3, rel=0.03)
    assert found["verdict"] == "faster"
    assert found["candidate_per_s"] == pytest.approx(32 / 0.075, rel=0.03)
    assert found["candidate_steps_per_s"] == pytest.approx(1 / 0.075, rel=0.03)


def test_more_ranks_are_compared_by_samples(tmp_path: Path) -> None:
    """Two ranks at the speed of one train twice as much."""
    found = compared(tmp_path, {}, {"step_ms": steps(seed=1), "meta": {"world_size": 2}})
    assert (found["unit"], found["verdict"]) == ("samples", "faster")
    assert found["speedup"] == pytest.approx(2.0, rel=0.03)


def test_a_busy_machine_widens_the_interval(tmp_path: Path) -> None:
    """Half as fast while others had the CPUs may be chance; the same on a quiet machine is not."""
    busy = [
        ("proc/0", {"runq_share": 0.6, "main_cpu": 0.4, "workers_cpu": 0.0}),
        ("host/box", {"cpu_used": 2.0, "cpu_usable": 2.0}),
    ]
    quiet = compared(tmp_path / "q", {"step_ms": steps(ms=30)}, {"step_ms": steps(ms=50, seed=1)})
    noisy = compared(
        tmp_path / "n", {"step_ms": steps(ms=30)}, {"step_ms": steps(ms=50, seed=1), "sampled": busy}
    )
    assert (quiet["verdict"], noisy["verdict"]) == ("slower", "no difference")
    assert noisy["lost_share"][0] == 0.0
    assert noisy["lost_share"][1] > 0.3


def test_a_machine_too_busy_to_tell(tmp_path: Path) -> None:
    """A run that hardly got a CPU says nothing, however many steps it took."""
    crowd = [
        ("proc/0", {"runq_share": 0.95, "main_cpu": 0.02, "workers_cpu": 0.0}),
        ("host/box", {"cpu_used": 2.0, "cpu_usable": 2.0}),
    ]
    found = compared(tmp_path, {"step_ms": steps(ms=10)}, {"step_ms": steps(ms=50), "sampled": crowd})
    assert (found["low"], found["high"], found["verdict"]) == (None, None, "unknown")


def test_too_few_steps(tmp_path: Path) -> None:
    """A mean without an interval, and no judgement."""
    found = compared(tmp_path, {"step_ms": steps(12)}, {"step_ms": steps(12, 25.0)})
    assert (found["low"], found["high"], found["verdict"]) == (None, None, "unknown")
    assert found["speedup"] == pytest.approx(2.0, rel=0.2)


def test_no_steps(tmp_path: Path) -> None:
    """Nothing is known, and nothing invented."""
    found = compared(tmp_path, {"step_ms": np.empty(0)}, {})
    assert found["speedup"] is None
    assert found["baseline_per_s"] is None
    assert found["candidate_per_s"] is not None
    assert found["verdict"] == "unknown"
