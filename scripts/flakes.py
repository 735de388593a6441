"""The second run of scripts/test: what failed beside others and passes alone is a flake.

    python scripts/flakes.py --last-failed     # what follows goes to pytest

Every flake is counted and named. One that docs/flaky.md does not list is new and printed loudly. The second
flake of a test fails the run: the page lists it as seen once, or it came twice in this run (parameters are
not counted as tests of their own). A test that is listed as a known race is named and fails nothing.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs/flaky.md"
#: The heading below which the entries stand.
LIST = "## The list"
#: How a list entry begins: the test, since when, and what it stands for.
ENTRY = re.compile(r"^\* `([^`]+)`, since (\d{4}-\d\d-\d\d), (seen once|known race): \S", re.MULTILINE)


@dataclass(frozen=True)
class Verdict:
    """What the flakes of one run mean.

    Attributes:
        summary: one line, "flaky: 2: a, b"; empty where there was none.
        new: the tests that the page does not list.
        again: those of which this was the second flake: the run fails.
    """

    summary: str
    new: tuple[str, ...]
    again: tuple[str, ...]


def entries(page: str) -> dict[str, str]:
    """Test -> "seen once" or "known race", from the text of docs/flaky.md."""
    return {test: state for test, _, state in ENTRY.findall(page.partition(LIST)[2])}


def judge(flaked: Iterable[str], known: Mapping[str, str]) -> Verdict:
    """The verdict on the tests that failed first and then passed.

    Args:
        flaked: their ids as pytest names them, with parameters.
        known: as `entries` gives it.
    """
    times = Counter(name.partition("[")[0] for name in flaked)
    summary = f"flaky: {times.total()}: {', '.join(sorted(times))}" if times else ""
    new = tuple(sorted(test for test in times if test not in known))
    again = tuple(
        sorted(
            test
            for test, count in times.items()
            if known.get(test) != "known race" and (count > 1 or test in known)
        )
    )
    return Verdict(summary, new, again)


class Flakes:
    """Collects the tests that pass; in a run of what failed before, those are the flakes."""

    def __init__(self, page: Path = PAGE) -> None:
        self._page, self._passed, self._failed = page, dict[str, None](), set[str]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how a test went; one that fails in its setup or teardown has not passed."""
        if report.failed:
            self._failed.add(report.nodeid)
        elif report.when == "call" and report.passed:
            self._passed[report.nodeid] = None

    def _verdict(self) -> Verdict:
        return judge(
            [test for test in self._passed if test not in self._failed], entries(self._page.read_text())
        )

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the run at the second flake of a test."""
        if self._verdict().again and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> Generator[None, object, object]:
        """Name the flakes, below everything but pytest's closing line."""
        result = yield
        verdict = self._verdict()
        for test in verdict.new:
            terminalreporter.write_sep("!", f"new flake: {test}", red=True, bold=True)
            terminalreporter.write_line("find its race, or list it in docs/flaky.md")
        for test in verdict.again:
            terminalreporter.write_sep("!", f"flaked a second time: {test}", red=True, bold=True)
        if verdict.summary:
            terminalreporter.write_line(verdict.summary)
        return result


if __name__ == "__main__":
    sys.path[0] = ""  # as `python -m pytest` has it
    sys.exit(pytest.main(sys.argv[1:], plugins=[Flakes()]))
