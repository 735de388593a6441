"""The report as a person reads it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.diagnosis.core.quantities import duration, number
from monitor.report.text import SUMMARY_LINES, WIDTH, harmless, summary, text
from monitor.schema import PHASES


def finding(**fields: Any) -> dict[str, Any]:
    return {
        "code": "data_starvation",
        "severity": "warning",
        "title": "The loop waits for the next batch",
        "cause": "num_workers=0",
        "evidence": {"data_share": 0.3123},
        "advice": "Load batches in two worker processes.",
        "snippet": "DataLoader(train,\n           num_workers=2)",
        "gain": {"speedup": 1.45, "share_of_step": 0.31, "basis": "the loop waited 31 % of the time"},
        "ranks": [0],
        "first_step": 20,
        "last_step": 1234,
        "raised_at_s": 4.1,
        "cleared_at_s": None,
        "location": "train.py:31",
        **fields,
    }


def report(**fields: Any) -> dict[str, Any]:
    shares = {"data": 0.31, "forward": 0.2, "backward": 0.35, "optimizer": 0.1, "other": 0.04}
    return {
        "run": "20261130-031620-digits-1f3a",
        "name": "digits",
        "status": "finished",
        "exit": {"code": 0, "signal": None, "reason": None, "rank": 0},
        "world_size": 1,
        "steps": 1234,
        "duration_s": 61.2,
        "throughput": {"steps_per_s": 20.1, "samples_per_s": 643.0, "tokens_per_s": None},
        "step_ms": {"p50": 49.0, "p95": 55.2, "p99": 81.0},
        "time_share": {phase: shares.get(phase, 0.0) for phase in PHASES},
        "memory": {"rss_mb": 900},
        "findings": [],
        "not_checked": [],
        "verdict": {"text": "Finished. Nothing slowed this run down."},
        **fields,
    }


EMPTY = report(
    steps=0,
    duration_s=None,
    throughput=dict.fromkeys(("steps_per_s", "samples_per_s", "tokens_per_s")),
    step_ms=dict.fromkeys(("p50", "p95", "p99")),
    time_share=dict.fromkeys(PHASES),
    memory={"rss_mb": None},
    verdict=None,
)


def test_healthy() -> None:
    """Status, throughput, a bar of the step, and the verdict."""
    assert text(report()).splitlines() == [
        "digits: finished, 1,234 steps in 61.2 s",
        "  20.1 steps/s · 643 samples/s · step 49 ms (p95 55.2, p99 81) · memory 900 MB",
        "  [" + "d" * 16 + "f" * 10 + "b" * 17 + "o" * 5 + "·" * 2 + "] "
        "backward 35%, data 31%, forward 20%, optimizer 10%",
        "",
        "Finished. Nothing slowed this run down.",
    ]


def test_a_device_s_memory_is_told() -> None:
    """The most that torch had allocated, where there was a device."""
    told = text(report(memory={"rss_mb": 900, "cuda_allocated_mb": 62_000.0}))
    assert "memory 900 MB · GPU memory 62,000 MB" in told


def test_finding() -> None:
    """A finding with its advice, its gain, and a snippet that can be copied as it is."""
    told = text(report(findings=[finding()]))
    assert "▲ data_starvation: The loop waits for the next batch: num_workers=0" in told
    assert "Load batches in two worker processes. That makes training 1.45 times as fast" in told
    assert "      # train.py:31\n      DataLoader(train,\n                 num_workers=2)" in told
    assert "data_share 0.312" in told


def test_gravest_first() -> None:
    """What stands comes before what is over, and the grave before the light."""
    told = text(
        report(
            findings=[
                finding(code="a", severity="critical", cleared_at_s=50.0),
                finding(code="b", severity="info"),
                finding(code="c", severity="critical"),
                finding(code="d", gain=None),
                finding(code="e"),
            ]
        )
    )
    places = [told.index(f" {code}: ") for code in "cedba"]
    assert places == sorted(places)
    assert "over since 50 s" in told


def test_crash() -> None:
    """A run that died says why, and where it was."""
    end = {
        "code": None,
        "signal": "SIGKILL",
        "reason": "killed by SIGKILL",
        "rank": 1,
        "last_step": 99,
        "last_phase": "data",
    }
    told = text(report(status="killed", exit=end, world_size=2))
    assert "digits: killed, 1,234 steps in 61.2 s, 2 ranks" in told
    assert "killed by SIGKILL, rank 1, after step 99, in data" in told


def test_not_checked_is_one_line() -> None:
    """What could not be judged takes one line, however much it is."""
    reasons = [{"code": f"c{i}", "why": f"reason number {i % 30} is long"} for i in range(60)]
    lines = [line for line in text(report(not_checked=reasons)).splitlines() if "could not run" in line]
    assert len(lines) == 1
    assert len(lines[0]) <= 2 * WIDTH + 2
    assert "60 checks" in lines[0]


@pytest.mark.parametrize("count", [0, 1, 3, 9])
def test_summary_is_short(count: int) -> None:
    """The end of a run takes at most twelve lines, and says where the rest is."""
    told = summary(report(findings=[finding(code=f"c{i}") for i in range(count)])).splitlines()
    assert len(told) <= SUMMARY_LINES
    assert told[0].startswith("digits: finished")
    assert "torchvitals report 20261130-031620-digits-1f3a" in told[-1]
    assert (count > 4) == ("more findings" in told[-1])


def test_nothing_measured() -> None:
    """A run with no numbers prints none."""
    for told in (text(EMPTY), summary(EMPTY)):
        assert told.startswith("digits: finished, 0 steps")
        assert "None" not in told
        assert "0.0" not in told


def test_numbers() -> None:
    """Three digits that matter; a dash for what is not known."""
    values = (None, 0.05123, 1.0, 20.14, 643.4, 12345.6)
    assert [number(v) for v in values] == ["–", "0.0512", "1", "20.1", "643", "12,346"]


def test_durations() -> None:
    """The two largest units."""
    values = (None, 0.25, 41, 200, 7500, 7200, 3 * 86400 + 4 * 3600)
    assert [duration(v) for v in values] == [
        "–",
        "0.25 s",
        "41 s",
        "3 min 20 s",
        "2 h 5 min",
        "2 h",
        "3 d 4 h",
    ]


NUMBERS = st.none() | st.floats(0, 1e7)
FINDINGS = st.builds(
    finding,
    code=st.text(max_size=20),
    severity=st.sampled_from(["critical", "warning", "info"]),
    cause=st.text(max_size=300),
    advice=st.text(max_size=900),
    snippet=st.text(max_size=200),
    evidence=st.dictionaries(st.text(max_size=9), NUMBERS | st.text(max_size=90), max_size=5),
    gain=st.none() | st.just({"speedup": 1.2, "share_of_step": 0.2, "basis": "b"}),
    cleared_at_s=NUMBERS,
    location=st.none() | st.just("a.py:1"),
)


SHARES = st.fixed_dictionaries({phase: st.none() | st.floats(0, 1) for phase in PHASES})
STEPS = st.fixed_dictionaries(dict.fromkeys(("p50", "p95", "p99"), NUMBERS))
ENDS = st.none() | st.fixed_dictionaries(
    {"code": st.none() | st.integers(), "reason": st.none() | st.text(max_size=400)}
)
STATUS = st.sampled_from(["running", "finished", "crashed", "killed", "stalled"])


@settings(max_examples=60, deadline=None)
@given(st.lists(FINDINGS, max_size=7), SHARES, STEPS, STATUS, ENDS)
def test_any_report_can_be_read(
    findings: list, shares: dict, steps: dict, status: str, end: dict | None
) -> None:
    """Whatever is null, long or odd: there is a text, and the summary stays short."""
    odd = report(findings=findings, time_share=shares, step_ms=steps, status=status, exit=end)
    assert text(odd)
    lines = summary(odd).split("\n")
    assert len(lines) <= SUMMARY_LINES
    assert max(map(len, lines)) <= WIDTH + 40


def test_what_steers_a_terminal_is_left_out() -> None:
    """Lines and columns stay, and so does every letter of every language."""
    assert harmless("\x1b[2Ja\tb\nc\rd\x9b\u202e é 中文 → –\ud800") == "[2Ja\tb\ncd é 中文 → –"
