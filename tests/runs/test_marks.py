"""What people say of a run, in a file beside its store."""

from __future__ import annotations

import contextlib
import json
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.runs.marks import FILE_NAME, NOTHING, TAGS, MarkError, checked, mark, marks


def test_a_run_of_which_nothing_is_said(tmp_path: Path) -> None:
    """No file, no marks."""
    assert marks(tmp_path) == NOTHING == {"tags": [], "note": "", "archived": False}


def test_marks_are_kept(tmp_path: Path) -> None:
    """Each change leaves the others as they are, and nobody else may read the file."""
    mark(tmp_path, {"tags": ["ablation", "lr 0.1"], "note": "first\nsecond"})
    assert mark(tmp_path, {"archived": True}) == {
        "tags": ["ablation", "lr 0.1"],
        "note": "first\nsecond",
        "archived": True,
    }
    assert marks(tmp_path)["archived"] is True
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_tags_are_tidied(tmp_path: Path) -> None:
    """Spaces around them, empty ones, ones that come twice, and control characters go."""
    assert mark(tmp_path, {"tags": [" a ", "a", "", "b\x00c", "\ud800"]})["tags"] == ["a", "bc"]


@pytest.mark.parametrize(
    "changes",
    [
        None, [], {"colour": "red"}, {"tags": "a"}, {"tags": [1]}, {"tags": ["x" * 41]}, {"note": None},
        {"tags": [str(i) for i in range(TAGS + 1)]}, {"note": "x" * 2001},
        {"archived": 1}, {"archived": "yes"},
    ],
)  # fmt: skip
def test_what_is_no_mark(tmp_path: Path, changes: Any) -> None:
    """One line says what is; nothing is written."""
    with pytest.raises(MarkError) as caught:
        mark(tmp_path, changes)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"tags": 3}', "\x00", '{"x": 1}', "9" * 70_000])
def test_a_damaged_file_counts_as_none(tmp_path: Path, text: str) -> None:
    """Whatever lies there, the run is listed."""
    (tmp_path / FILE_NAME).write_text(text)
    assert marks(tmp_path) == NOTHING


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """A link where the file should be is replaced; what it leads to stays."""
    target = tmp_path / "target"
    target.write_text("precious")
    run = tmp_path / "run"
    run.mkdir()
    (run / FILE_NAME).symlink_to(target)
    mark(run, {"note": "x"})
    assert target.read_text() == "precious"
    assert json.loads((run / FILE_NAME).read_text())["note"] == "x"


@given(
    st.dictionaries(
        st.sampled_from(["tags", "note", "archived", "x"]), st.text() | st.booleans() | st.lists(st.text())
    )
)
def test_any_change(changes: dict[str, Any]) -> None:
    """Either it is a mark that can be written, or it is refused."""
    with contextlib.suppress(MarkError):
        json.dumps(checked(changes), ensure_ascii=False).encode()


def test_many_at_once(tmp_path: Path) -> None:
    """Changes of several browsers at a time are all kept, and none fails."""
    changes = ({"tags": ["t"]}, {"note": "n" * 2000}, {"archived": True}) * 40
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda change: mark(tmp_path, change), changes))
    assert marks(tmp_path) == {"tags": ["t"], "note": "n" * 2000, "archived": True}
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """The old marks stay, whole, and no piece of the new ones does. A process of its own has the limit."""
    mark(tmp_path, {"note": "old"})
    code = (
        "import resource, signal, sys, pathlib\n"
        "from monitor.runs.marks import mark\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "try: mark(pathlib.Path(sys.argv[1]), {'note': 'x' * 2000})\n"
        "except OSError: sys.exit(7)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == 7
    assert marks(tmp_path)["note"] == "old"
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]
