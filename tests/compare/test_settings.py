"""What a run was told and what was seen of it, as flat names, noise left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from finished_runs import FACTS, changed, keep
from hypothesis import given
from hypothesis import strategies as st

from monitor.compare import read
from monitor.compare.settings import code, options, settings


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ([], {}),
        (["a/train.py"], {"script": "train.py"}),
        (["t.py", "--lr", "0.1"], {"script": "t.py", "lr": "0.1"}),
        (["t.py", "--lr=0.1", "-v"], {"script": "t.py", "lr": "0.1", "v": True}),
        (["t.py", "--amp", "--epochs", "3"], {"script": "t.py", "amp": True, "epochs": "3"}),
        (["t.py", "fit", "--bias", "-0.5"], {"script": "t.py", "argument 1": "fit", "bias": "-0.5"}),
        (["t.py", "--save-dir", "x", "--data-dir", "/d"], {"script": "t.py", "data-dir": "/d"}),
        (["t.py", "--log-interval", "10"], {"script": "t.py", "log-interval": "10"}),
        (["t.py", "-"], {"script": "t.py", "argument 1": "-"}),
    ],
)
def test_a_command_line(argv: list[str], expected: dict[str, object]) -> None:
    """Both spellings of an option are one, flags are True; where output goes is noise, where data is not."""
    assert options(argv) == expected


@given(st.lists(st.text(max_size=12), max_size=8))
def test_any_command_line(argv: list[str]) -> None:
    """Whatever words there are, they become names and values."""
    assert all(isinstance(name, str) for name in options(argv))


def test_facts_without_noise(tmp_path: Path) -> None:
    """Settings stay, places, process ids and counts go."""
    flat = settings(read(keep(tmp_path, "a")))
    assert flat["loader/1.num_workers"] == 0
    assert flat["model/1.dtypes"] == "float32"
    assert flat["precision.clips"] is False
    assert flat["host"] == "box"
    gone = ("location", "call", "launcher_pid", "matmuls", "backward_calls", "scaler_skips", "script")
    assert [name for name in flat if name.endswith(gone) and name != "option.script"] == []


@pytest.mark.parametrize(("digest", "edited"), [("aaaa", False), ("bbbb", True)])
def test_the_script(tmp_path: Path, digest: str, edited: bool) -> None:
    """An edit of the script is known by its digest."""
    first, second = (
        read(keep(tmp_path, "a")),
        read(keep(tmp_path, "b", facts=changed("script", digest=digest))),
    )
    assert code(first, second) == {"name": "train.py", "edited": edited}


def test_the_script_of_an_older_run(tmp_path: Path) -> None:
    """Where one of them did not tell, nobody knows."""
    without = {name: fact for name, fact in FACTS.items() if name != "script"}
    first, second = read(keep(tmp_path, "a", facts=without)), read(keep(tmp_path, "b"))
    assert code(first, second) == {"name": "train.py", "edited": None}
