"""Lines for a terminal: written by the agent, read by the command, whole ones only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from monitor.agent import terminal
from monitor.agent.terminal import NAME, Terminal, TerminalLines, line

STALL = {
    "kind": "stall", "rank": 1, "for_s": 7.5, "phase": "data", "location": "data.py:9",
    "function": "fetch", "cause": "a loader worker does not come back",
}  # fmt: skip


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (
            STALL,
            "no progress: rank 1 has made no step for 7.5 s in data, at data.py:9 (fetch): "
            "a loader worker does not come back",
        ),
        (
            {**STALL, "phase": None, "location": None},
            "no progress: rank 1 has made no step for 7.5 s: a loader worker does not come back",
        ),
        ({"kind": "stall_over", "rank": 1, "for_s": 9.0}, "no progress: over on rank 1 after 9 s"),
        ({"kind": "on_stall", "text": "its stacks are in x"}, "its stacks are in x"),
        ({"kind": "log"}, None),
    ],
)
def test_words(event: dict[str, Any], said: str | None) -> None:
    """Rank, since when, phase, line and cause; nothing for what is no matter of a terminal."""
    assert line(event) == said


def test_what_is_said_is_heard_once(tmp_path: Path) -> None:
    """In order, each line once, and none before it is whole."""
    told, heard = Terminal(tmp_path), TerminalLines(tmp_path)
    assert heard.new() == []
    told.print_event(STALL)
    told.print_event({"kind": "stall_over", "rank": 1, "for_s": 9.0})
    first = heard.new()
    with (tmp_path / NAME).open("a") as file:
        file.write("half a li")
    assert (len(first), heard.new()) == (2, [])


def test_a_terminal_is_no_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After so many lines no more come; and a spool that is gone is no trouble."""
    monkeypatch.setattr(terminal, "LINES", 3)
    told, heard = Terminal(tmp_path), TerminalLines(tmp_path)
    for _ in range(5):
        told.print_event(STALL)
    Terminal(tmp_path / "gone").print_event(STALL)
    assert len(heard.new()) == 3
