"""A test that fails beside others and passes alone is a flake: it is counted, named, and forgiven once."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from flakes import ENTRY, LIST, PAGE, entries, judge
from sources import ROOT

LISTED = """## The list

* `tests/test_a.py::test_one`, since 2026-12-01, seen once: nothing is known.
* `tests/test_a.py::test_two`, since 2026-11-30, known race: torch ends a thread too late.
"""
ONE, TWO, NEW = "tests/test_a.py::test_one", "tests/test_a.py::test_two", "tests/test_b.py::test_new"

#: Fails the first time it is run in a folder, and passes from then on.
FLAKY = """
from pathlib import Path

def test_flaky():
    seen = Path("seen")
    found = seen.exists()
    seen.touch()
    assert found

def test_broken():
    assert Path("mended").exists()
"""


def test_no_flake_says_nothing():
    """What failed twice is no flake, and what never failed is not run again."""
    assert judge([], entries(LISTED)) == judge([], {})
    assert judge([], {}).summary == ""


def test_a_new_flake_is_named_and_forgiven_once():
    """It is counted and told apart from those that the page lists."""
    verdict = judge([NEW], entries(LISTED))
    assert (verdict.summary, verdict.new, verdict.again) == (f"flaky: 1: {NEW}", (NEW,), ())


def test_the_second_flake_of_a_test_fails():
    """Listed as seen once, or twice in one run under two parameters."""
    assert judge([ONE], entries(LISTED)).again == (ONE,)
    verdict = judge([f"{NEW}[a]", f"{NEW}[b]"], {})
    assert (verdict.summary, verdict.again) == (f"flaky: 2: {NEW}", (NEW,))


def test_a_known_race_fails_nothing():
    """It is counted and named each time."""
    verdict = judge([f"{TWO}[a]", f"{TWO}[b]"], entries(LISTED))
    assert (verdict.summary, verdict.new, verdict.again) == (f"flaky: 2: {TWO}", (), ())


def test_entries_of_the_page_name_tests_that_exist():
    """Every list entry of docs/flaky.md has the form that the plugin reads, and its test is there."""
    page = PAGE.read_text()
    _, heading, listed = page.partition(LIST)
    assert heading
    lines = [line for line in listed.splitlines() if line.startswith("* ")]
    assert [line for line in lines if not ENTRY.match(line)] == []
    for test in entries(page):
        file, _, name = test.partition("::")
        assert re.search(rf"^\s*def {name}\(", (ROOT / file).read_text(), re.MULTILINE), test


@pytest.mark.parametrize(
    ("mended", "status", "last"), [(False, 1, "1 failed, 1 passed in"), (True, 0, "2 passed in")]
)
def test_what_passes_alone_is_told_above_the_closing_line(
    tmp_path: Path, mended: bool, status: int, last: str
):
    """The last line stays pytest's own; what fails again is no flake."""
    (tmp_path / "test_real.py").write_text(FLAKY)

    def run(*program: str) -> subprocess.CompletedProcess[str]:
        words = "-q --rootdir . -c /dev/null -o cache_dir=.cache".split()
        return subprocess.run(
            [sys.executable, *program, *words], cwd=tmp_path, capture_output=True, text=True
        )

    assert run("-m", "pytest").returncode == 1
    if mended:
        (tmp_path / "mended").touch()
    done = run(str(ROOT / "scripts/flakes.py"), "--last-failed")
    lines = done.stdout.splitlines()
    assert (done.returncode, lines[-1].startswith(last)) == (status, True), done.stdout
    named = (
        "flaky: 2: test_real.py::test_broken, test_real.py::test_flaky"
        if mended
        else "flaky: 1: test_real.py::test_flaky"
    )
    assert lines[-2] == named
    assert any("new flake: test_real.py::test_flaky" in line for line in lines)
