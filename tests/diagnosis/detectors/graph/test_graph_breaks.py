"""Breaks of a compiled graph are told with their line; code that never compiled is told too."""

from __future__ import annotations

from typing import Any

import pytest
from windows import window

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.graph.graph_breaks import WARNING, detect

ITEM = {"reason": "Unsupported Tensor.item() call with capture_scalar_outputs=False", "location": "net.py:19"}


def broken(*breaks: dict[str, Any], **compiled: Any) -> Finding | None:
    return detect(window(facts={"compile": {"used": True, "graph_breaks": list(breaks), **compiled}}))


@pytest.mark.parametrize(("count", "severity"), [(0, None), (WARNING - 1, "info"), (WARNING, "warning")])
def test_it_speaks_from_its_thresholds_on(count: int, severity: str | None):
    """None is fine, a single one is a word, several are a fault."""
    one = broken({**ITEM, "count": count})
    assert (one.severity if one else None) == severity


def test_the_most_frequent_break_is_told():
    """Of several breaks the one that occurs most, with its line."""
    one = broken({**ITEM, "count": 4}, {"reason": "print", "location": "net.py:3", "count": 1})
    assert one is not None
    assert (one.location, one.evidence["graph_breaks"]) == ("net.py:19", 5)


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("Tensor.item()", "a tensor's value steers Python"),
        ("Data-dependent branching", "a tensor's value steers Python"),
        ("call to print()", "printing or logging"),
        ("skipped function socket.recv", "a call the compiler cannot follow"),
    ],
)
def test_reasons_are_told_apart(reason: str, cause: str):
    """What breaks the graph decides the advice."""
    one = broken({"reason": reason, "count": 3})
    assert one is not None
    assert one.cause == cause


@pytest.mark.parametrize(
    ("called", "graphs", "speaks"),
    [(True, 0, True), (True, 1, False), (False, 0, False), (True, None, False)],
)
def test_code_that_silently_runs_uncompiled_is_told(called: bool, graphs: int | None, speaks: bool):
    """A compiled function that was called and left no graph was never compiled."""
    one = broken(called=called, unique_graphs=graphs)
    assert (one is not None) == speaks
    assert one is None or one.cause == "runs uncompiled"
