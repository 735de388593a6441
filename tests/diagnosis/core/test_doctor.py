"""The doctor asks every detector, breaks on none, and never calls unchecked fine."""

from __future__ import annotations

import pytest
from windows import rank, window

from monitor.diagnosis.core import needs
from monitor.diagnosis.core.doctor import Detector, discover, examine
from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.training_steps import MIN_STEPS

NO_NEEDS: frozenset[str] = frozenset()


def detector(
    code: str,
    severity: str | None = "warning",
    *,
    needs: tuple[str, ...] = (),
    explains: tuple[str, ...] = (),
):
    finding = Finding(code, severity, code, "cause") if severity else None
    return Detector(code, frozenset(needs), lambda _: finding, frozenset(explains))


def broken(_: Window) -> Finding | None:
    raise ZeroDivisionError("nothing to divide by")


def test_every_file_is_discovered():
    """Discovery finds the detectors by their files, each once."""
    codes = [one.code for one in discover()]
    assert "data_starvation" in codes
    assert len(codes) == len(set(codes))


def test_every_need_exists():
    """No detector names a need nobody can answer."""
    assert {need for one in discover() for need in one.needs} <= set(needs.NEEDS)


def test_what_is_explained_exists():
    """EXPLAINS names only codes that another detector speaks for."""
    codes = {one.code for one in discover()}
    assert {code for one in discover() for code in one.explains} <= codes


def test_a_broken_detector_breaks_nothing():
    """One that raises is named with its error; the others are heard."""
    seen = examine(window(), (Detector("bad", NO_NEEDS, broken), detector("good")))
    assert [finding.code for finding in seen.findings] == ["good"]
    told = [(entry["code"], entry["why"]) for entry in seen.not_checked]
    assert told == [("bad", "the check failed: ZeroDivisionError: nothing to divide by")]


def test_absent_needs_are_said():
    """A detector whose needs are absent is not asked, and says why."""
    seen = examine(window(facts={}), (detector("late", needs=("loader",)),))
    assert (seen.findings, seen.not_checked) == ([], [{"code": "late", "why": "no DataLoader seen"}])


def test_consequences_are_held_back():
    """A finding that another one explains is not told beside it."""
    seen = examine(window(), (detector("cause", explains=("effect",)), detector("effect")))
    assert [finding.code for finding in seen.findings] == ["cause"]


def test_information_explains_nothing_away():
    """Advice does not hide an alarm."""
    seen = examine(window(), (detector("cause", "info", explains=("effect",)), detector("effect")))
    assert [finding.code for finding in seen.findings] == ["cause", "effect"]


@pytest.mark.parametrize(
    "empty", [Window(0.0, {}), Window(0.0, {0: Rank(0)}), Window(0.0, {0: Rank(0)}, finished=True)]
)
def test_an_empty_window_is_no_trouble(empty: Window):
    """Before the first step nothing is found and no check fails."""
    seen = examine(empty)
    assert seen.findings == []
    assert [one for one in seen.not_checked if "failed" in one["why"]] == []


@pytest.mark.parametrize("count", [0, 1, 2, 5, 6, 19, 24, 25, 26])
def test_few_steps_are_no_trouble(count: int):
    """No check fails on any small number of steps, healthy steps raise nothing."""
    seen = examine(window(rank(count)) if count else window(Rank(0)))
    assert (seen.findings, [one for one in seen.not_checked if "failed" in one["why"]]) == ([], [])


def test_a_healthy_run_is_healthy():
    """The zoo's baseline raises nothing at all."""
    assert examine(window()).findings == []


def test_a_reason_with_numbers_can_be_translated():
    """Beside the English reason stands its template; a reason that never changes is its own."""
    window = Window(1.0, {0: Rank(0, {}, {}, {})}, 1)
    reasons = {entry["why"]: entry.get("i18n") for entry in examine(window).not_checked}
    few = "fewer than {steps} steps after warm-up"
    assert reasons[few.format(steps=MIN_STEPS)] == [few, {"steps": str(MIN_STEPS)}]
    assert reasons["no model seen"] is None


def test_a_lost_signal_is_named():
    """By its own name, beside the checks that could not run without it."""
    found = examine(window(rank(facts={"signals_lost": {"forward": "torch 9 has no such name"}})), ())
    assert [(entry["code"], entry["why"]) for entry in found.not_checked] == [
        ("forward", "not measured: torch 9 has no such name")
    ]
