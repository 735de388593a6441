"""A comparison for a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from finished_runs import changed, finding, keep, steps

from monitor.compare import compare, lines


def told(tmp_path: Path, after: dict[str, Any], **before: Any) -> str:
    """The comparison's text."""
    first = keep(tmp_path, "first", findings=[finding()], **before)
    return "\n".join(lines(compare(first, keep(tmp_path, "second", **after))))


def test_the_loop_in_one_look(tmp_path: Path) -> None:
    """One thing was changed, it brought what was promised, and the words say so."""
    after = {
        "facts": changed("loader/1", num_workers=4, prefetch_factor=2),
        "step_ms": steps(ms=24.0, seed=1),
        "loss": 0.5,
    }
    text = told(tmp_path, after, data_ms=26.0, loss=0.5)
    assert "exactly one thing differs: num_workers 0 → 4 (prefetch_factor – → 2)" in text
    assert "steps/s, 2.1" in text
    assert "95 % interval" in text
    assert ": faster" in text
    assert (
        "✔ confirmed: Training waits for data (data_starvation: num_workers=0): promised 2.00 times" in text
    )
    assert "loss at step 399: 0.5 → 0.5" in text
    assert "  data           26.00 ms →      0.00 ms" in text


def test_nothing_differs(tmp_path: Path) -> None:
    """The same thing twice."""
    text = told(tmp_path, {"findings": [finding()]})
    assert "nothing that is recorded differs" in text
    assert "no difference that can be told from chance" in text
    assert "· not followed" in text


def test_only_the_code_differs(tmp_path: Path) -> None:
    """An edited script is named; what was edited in it is not known."""
    text = told(tmp_path, {"facts": changed("script", digest="bbbb")})
    assert "the script train.py was edited; nothing else that is recorded differs" in text


def test_several_things_differ(tmp_path: Path) -> None:
    """Then no single one explains the rest, and the first twenty are listed."""
    many = changed("optimizer/1", **{f"option_{i}": i for i in range(30)})
    text = told(tmp_path, {"facts": many})
    assert "30 things differ, so no single one explains the rest:" in text
    assert "… and 10 more" in text


def test_too_short_to_tell(tmp_path: Path) -> None:
    """No interval, and no steps: both in words."""
    assert "too few steps" in told(tmp_path, {"step_ms": steps(12)})
    assert "one of the runs has no steps" in told(tmp_path / "b", {"step_ms": np.empty(0)})


def test_a_busy_machine_is_told(tmp_path: Path) -> None:
    """Whose times are not its own, and that the interval allows for it."""
    busy = [
        ("proc/0", {"runq_share": 0.6, "main_cpu": 0.4, "workers_cpu": 0.0}),
        ("host/box", {"cpu_used": 2.0, "cpu_usable": 2.0}),
    ]
    text = told(tmp_path, {"sampled": busy})
    assert "of the candidate's time; the interval allows for it" in text
    assert "baseline's time" not in text
