"""Which of several ends is the cause."""

from __future__ import annotations

import pytest

from monitor.run_state.ending import clean, ending, signal_name

CLEAN = {"rank": 0, "t_s": 9.0, "code": 0, "signal": None, "reason": "end of the script", "clean": True}
RAISED = {**CLEAN, "code": 1, "reason": "RuntimeError: no", "clean": False}
KILLED = {**CLEAN, "code": None, "signal": 9, "reason": "killed by SIGKILL", "clean": False}
TAKEN_ALONG = {**KILLED, "signal": 15, "reason": "killed by SIGTERM"}
BEREFT = {**RAISED, "reason": "RuntimeError: [gloo/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:2"}
VANISHED = {**KILLED, "signal": None, "reason": "it vanished, and nobody can say how"}


@pytest.mark.parametrize(
    ("ends", "status", "reason"),
    [
        ([CLEAN], "finished", "end of the script"),
        ([CLEAN, {**RAISED, "rank": 1}], "crashed", "RuntimeError: no"),
        ([{**KILLED, "t_s": 1.0}, {**RAISED, "rank": 1, "t_s": 2.0}], "killed", "killed by SIGKILL"),
        ([{**KILLED, "t_s": 2.0}, {**RAISED, "rank": 1, "t_s": 1.0}], "crashed", "RuntimeError: no"),
        ([{**TAKEN_ALONG, "t_s": 1.0}, {**RAISED, "rank": 1, "t_s": 2.0}], "crashed", "RuntimeError: no"),
        ([TAKEN_ALONG], "killed", "killed by SIGTERM"),
        ([{**BEREFT, "t_s": 1.0}, {**RAISED, "rank": 1, "t_s": 2.0}], "crashed", "RuntimeError: no"),
        ([{**BEREFT, "t_s": 1.0}, {**KILLED, "rank": 1, "t_s": 2.0}], "killed", "killed by SIGKILL"),
        ([BEREFT, {**TAKEN_ALONG, "t_s": 1.0}], "crashed", BEREFT["reason"]),
        (
            [{**RAISED, "failed_s": 8.0, "reason": "KeyError: late"}, {**RAISED, "rank": 1, "failed_s": 7.9}],
            "crashed",
            "RuntimeError: no",
        ),
        ([VANISHED], "killed", "it vanished, and nobody can say how"),
        ([{**VANISHED, "exception": "ValueError: x", "reason": "ValueError: x"}], "crashed", "ValueError: x"),
        ([], "finished", None),
    ],
)
def test_cause(ends: list[dict], status: str, reason: str | None) -> None:
    """The first rank that came to no clean end decides; one that was asked to end never does."""
    told, end = ending(ends)
    assert (told, end["reason"]) == (status, reason)
    assert end.keys() == {"code", "signal", "reason", "rank", "last_step", "last_phase"}


def test_signal_has_its_name() -> None:
    """The report names the signal."""
    assert ending([KILLED])[1]["signal"] == "SIGKILL"
    assert [signal_name(n) for n in (None, 15, "SIGABRT", 99)] == [None, "SIGTERM", "SIGABRT", "signal 99"]


def test_clean() -> None:
    """Where the agent does not say, code and signal tell."""
    assert clean({"code": 0})
    assert clean({"code": None, "signal": None})
    assert not clean({"code": 3})
    assert not clean({"signal": 9})
    assert not clean({"exception": "ValueError"})
