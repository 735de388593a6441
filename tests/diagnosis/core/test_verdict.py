"""One sentence about a run: true in every state, never healthy for a dead one."""

from __future__ import annotations

import string
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.diagnosis.core.finding import Finding, gain_from_share
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.ranking import ranked
from monitor.diagnosis.core.verdict import TEXTS, verdict
from monitor.diagnosis.signals.training_steps import MIN_STEPS

STARVED = Finding(
    "data_starvation",
    "warning",
    "Training waits for data",
    "num_workers=0",
    gain=gain_from_share(0.5, "half"),
)
ADVICE = Finding("amp_off", "info", "Mixed precision is off", "float32")
NOISY = Finding("noisy_neighbour", "warning", "Others", "shared")
HUNG = Finding(
    "stall", "critical", "No progress", "stalled", {"phase": "data", "stalled_s": 12.4}, ranks=(3, 0)
)
DIED = Finding("process_died", "critical", "Died", "SIGKILL", {"signal": "SIGKILL"})
STARVED_MEMORY = Finding("process_died", "critical", "Died", "out of memory", {"oom_kill": True})


def key(status: str, *findings: Finding, steps: int = 500, **more: Any) -> str:
    return str(verdict(status, findings, steps=steps, **more)["key"])


@pytest.mark.parametrize(
    ("status", "findings", "steps", "expected"),
    [
        ("running", (), 0, "waiting"),
        ("running", (), MIN_STEPS - 1, "collecting"),
        ("running", (), MIN_STEPS, "healthy"),
        ("running", (ADVICE,), 500, "healthy"),
        ("running", (STARVED,), 500, "finding_gain"),
        ("running", (NOISY,), 500, "healthy_busy"),
        ("stalled", (HUNG,), 500, "stalled"),
        ("stalled", (), 500, "stalled_unknown"),
        ("finished", (), 500, "finished"),
        ("finished", (), 0, "finished_unmeasured"),
        ("finished", (), 3, "finished_early"),
        ("finished", (STARVED,), 500, "finding_gain"),
        ("killed", (DIED,), 500, "killed"),
        ("killed", (), 0, "killed"),
        ("killed", (STARVED_MEMORY,), 500, "killed_memory"),
        ("crashed", (), 500, "crashed"),
    ],
)
def test_every_state_has_its_sentence(status: str, findings: tuple[Finding, ...], steps: int, expected: str):
    """Status, what stands and how much was seen decide what is said."""
    assert key(status, *findings, steps=steps) == expected


@pytest.mark.parametrize("status", ["killed", "crashed", "stalled"])
@pytest.mark.parametrize("findings", [(), (ADVICE,), (STARVED,)])
def test_a_dead_run_is_never_healthy(status: str, findings: tuple[Finding, ...]):
    """Whatever was found or not, the tone of a dead or hung run is critical."""
    assert verdict(status, findings, steps=500)["tone"] == "critical"


@pytest.mark.parametrize("end", [{"reason": "KeyboardInterrupt"}, {"signal": 2}])
def test_stopping_by_hand_is_told_as_that(end: dict[str, Any]):
    """Ctrl-C is no crash."""
    assert key("crashed", exit=end) == "interrupted"


def test_the_reason_of_a_crash_is_told():
    """Its first line, at a length that fits."""
    end = {"code": 1, "reason": "RuntimeError: " + "x" * 500 + "\nmore"}
    text = verdict("crashed", (), steps=7, exit=end)["text"]
    assert text.startswith("Crashed after 7 steps: RuntimeError: xxx")
    assert len(text) < 220


def test_the_gain_is_told():
    """The first finding with what fixing it brings."""
    assert verdict("running", (STARVED,), steps=500)["text"].endswith("the run would be 2 times as fast.")


def test_training_without_visible_steps_says_what_to_do():
    """Never "no training": it says that steps are not seen. A few passes may be one long accumulation."""
    assert key("running", steps=0, uncounted=8) == "waiting"
    for status, passes in (("running", 1000), ("finished", 8)):
        said = verdict(status, (), steps=0, uncounted=passes)
        assert "session.step()" in said["text"]
        assert f"{passes:,} backward passes" in said["text"]
    assert key("finished", steps=40, uncounted=8) == "finished"


def test_what_is_over_is_told_at_the_end():
    """A run that had trouble along the way was not simply fine."""
    assert key("finished", cleared=(STARVED,)) == "finished_cleared"
    assert key("finished", cleared=(ADVICE,)) == "finished"


def test_the_rank_that_hangs_is_named():
    """Rank, phase and seconds."""
    assert verdict("stalled", (HUNG,), steps=9)["text"] == "No progress: rank 3 has been in data for 12 s."


def test_findings_are_ranked():
    """Gravest first, then by gain; those without one as they came."""
    small = Finding("eval_share", "warning", "Evaluation", "x", gain=gain_from_share(0.3, ""))
    assert ranked([ADVICE, small, NOISY, STARVED, DIED]) == [DIED, STARVED, small, NOISY, ADVICE]


@pytest.mark.parametrize("one", sorted(TEXTS))
def test_texts_can_be_translated(one: str):
    """Sentences are whole, and all that changes in them are named parameters."""
    tone, text = TEXTS[one]
    names = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
    assert tone in {"good", "info", "warning", "critical", "waiting"}
    assert (text[-1], all(name.isidentifier() for name in names)) == (".", True)


@given(
    status=st.sampled_from(["running", "finished", "crashed", "killed", "stalled"]),
    findings=st.lists(st.sampled_from([STARVED, ADVICE, NOISY, HUNG, DIED]), max_size=4),
    steps=st.integers(0, 10**6),
    end=st.none()
    | st.fixed_dictionaries(
        {
            "code": st.none() | st.integers(),
            "signal": st.none() | st.integers(),
            "reason": st.none() | st.text(),
        }
    ),
)
def test_there_is_always_a_sentence(
    status: str, findings: list[Finding], steps: int, end: dict[str, Any] | None
):
    """No combination leaves a run without its sentence, filled with its parameters."""
    said = verdict(status, findings, steps=steps, exit=end)
    assert said["text"] == TEXTS[said["key"]][1].format(**said["params"])


def test_inference_is_judged_by_latency_and_throughput() -> None:
    """Unless something is found; with too few steps nothing is said yet."""
    known = {"p50": 4.2, "p95": 5.0, "p99": 9.876, "samples_per_s": 15_000.0, "batch": 64.0}
    said = verdict("running", (), steps=500, inference=known)
    assert said["key"] == "inference_counted"
    for word in ("4.2 ms", "p99 9.88", "15,000 samples/s", "batches of 64"):
        assert word in said["text"]
    only = {name: known[name] for name in ("p50", "p95", "p99")}
    assert key("finished", inference=only) == "inference"
    assert key("running", STARVED, inference=known) == "finding_gain"
    assert key("running", steps=MIN_STEPS - 1, inference=known) == "collecting"


def test_a_verdict_can_be_said_in_another_language():
    """Beside the sentence stands its template, numbers as in the sentence, the cause with its own."""
    found = replace(STARVED, cause=message("slower {phase}", phase="data"))
    template, params = verdict("running", (found,), steps=500)["i18n"]
    assert template == TEXTS["finding_gain"][1]
    assert params == {"title": found.title, "cause": ["slower {phase}", {"phase": "data"}], "speedup": "2"}
