"""The run that others of its project are measured against."""

from __future__ import annotations

import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from monitor.runs.baselines import FILE_NAME, baselines, project, set_baseline


def test_one_a_project(tmp_path: Path) -> None:
    """A new baseline takes the old one's place; projects do not know of one another."""
    assert baselines(tmp_path) == {}
    set_baseline(tmp_path, "train", "run-1")
    set_baseline(tmp_path, "other", "run-7")
    set_baseline(tmp_path, "train", "run-2")
    assert baselines(tmp_path) == {"train": "run-2", "other": "run-7"}
    set_baseline(tmp_path, "train", None)
    set_baseline(tmp_path, "nobody", None)
    assert baselines(tmp_path) == {"other": "run-7"}
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600


def test_several_at_once(tmp_path: Path) -> None:
    """Of baselines set at the same time none is lost."""
    threads = [threading.Thread(target=set_baseline, args=(tmp_path, f"p{i}", "r")) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(baselines(tmp_path)) == 8


@pytest.mark.parametrize("text", ["", "[1]", '{"train": 3}', "\x00\x01"])
def test_a_damaged_file_counts_as_none(tmp_path: Path, text: str) -> None:
    """The list of runs is shown all the same, and the next baseline is kept."""
    (tmp_path / FILE_NAME).write_text(text)
    assert baselines(tmp_path) == {}
    set_baseline(tmp_path, "train", "run-1")
    assert baselines(tmp_path) == {"train": "run-1"}


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({"argv": ["/home/me/train.py", "--lr", "1"], "name": "baseline"}, "train"),
        ({"argv": ["train"], "name": "x"}, "train"),
        ({"argv": ["/x/ipykernel_launcher.py"], "name": "notebook"}, "notebook"),
        ({"argv": ["-c"], "name": "inline"}, "inline"),
        ({"argv": ["/x/pkg/__main__.py"], "name": "pkg"}, "pkg"),
        ({"argv": [], "name": "named"}, "named"),
        ({"argv": "odd", "name": None}, "run"),
        ({}, "run"),
    ],
)
def test_a_project_is_a_script(meta: dict[str, Any], expected: str) -> None:
    """However its runs are called; where no script tells, their name does."""
    assert project(meta) == expected
