"""What holds for tests: they wait in one way, and none of them says how fast something must be."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from sources import FUNCTION, ROOT

WAITING = ROOT / "tests/support/waiting.py"
#: Names of functions that wait for a condition.
WAITS = re.compile(r"_?(a?wait_)?(until|for_condition|eventually)(_|$)|_?wait_for(_|$)")
#: Clocks on the wall. A test may need the moment (`time.time`, `perf_counter_ns`), not how long it took.
CLOCKS = {"monotonic", "monotonic_ns", "perf_counter"}


def files_of_tests() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if path != WAITING:
            yield path, ast.parse(path.read_text())


def test_waiting_is_defined_once():
    """`waiting.until` waits for a condition; nobody writes another one."""
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno} defines {node.name}; use waiting.until"
        for path, tree in files_of_tests()
        for node in ast.walk(tree)
        if isinstance(node, FUNCTION) and WAITS.match(node.name)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_test_looks_at_a_clock_on_the_wall():
    """Tests run beside others: what comes late has come. How fast something is stands in benchmarks/.

    CPU time may be bounded (`process_time`, best of several). Helpers in support/, and a trainer that plays,
    keep a pace and bound nothing.
    """
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno} reads time.{node.attr}; use waiting.until"
        for path, tree in files_of_tests()
        if path.name.startswith("test_") or path.name == "conftest.py"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in CLOCKS and ast.unparse(node.value) == "time"
    ]
    assert not wrong, "\n".join(wrong)
