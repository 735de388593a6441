"""One sentence about a run. All its wording is here, by key, ready to be translated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.messages import message
from monitor.diagnosis.core.ranking import ranked
from monitor.diagnosis.signals.training_steps import MIN_STEPS

#: key -> (tone, sentence). Tones: "good", "info", "warning", "critical", "waiting".
TEXTS: Mapping[str, tuple[str, str]] = {
    "waiting": ("waiting", "Attached. Waiting for the first training step."),
    "collecting": ("waiting", "Not enough data yet: {steps} of {needed} steps."),
    "healthy": ("good", "Healthy: nothing is slowing this run down."),
    "inference": ("good", "Inference: a step takes {p50:.3g} ms; p95 {p95:.3g} ms, p99 {p99:.3g} ms."),
    "inference_counted": ("good", "Inference: a step takes {p50:.3g} ms (p95 {p95:.3g}, p99 {p99:.3g}),"
        " {samples_per_s:,.0f} samples/s in batches of {batch:.0f}."),
    "healthy_busy": ("info", "No fault of this run's own, but other processes take its CPUs."),
    "finished": ("good", "Finished after {steps} steps. Nothing slowed this run down."),
    "unexplained": ("info", "{share:.0%} of the time is in no phase that is known, {place}. Nothing else was"
        " found."),
    "finished_unexplained": ("info", "Finished after {steps} steps. {share:.0%} of the time was in no phase"
        " that is known, {place}. Nothing else was found."),
    "finished_unmeasured": ("info", "Finished, and no training step was seen: nothing was judged. If it did"
        " train, call session.step() after each update."),
    "uncounted": ("info", "It trains ({passes:,} backward passes so far), but where a step ends cannot be"
        " seen: call session.step() after each update."),
    "finished_uncounted": ("info", "Finished. It trained ({passes:,} backward passes or more), but where a"
        " step ends could not be seen, so nothing was judged: call session.step() after each update."),
    "finished_early": ("info", "Finished after {steps} steps: too few to judge."),
    "finished_cleared": ("info", "Finished after {steps} steps. Along the way: {title} (over since)."),
    "finding": ("warning", "{title}: {cause}."),
    "finding_gain": ("warning", "{title}: {cause}. Without it the run would be {speedup:.2g} times as fast."),
    "stalled": ("critical", "No progress: rank {rank} has been in {phase} for {seconds:.0f} s."),
    "stalled_unknown": ("critical", "No progress: the run has stopped making steps."),
    "killed": ("critical", "Killed by {signal} after {steps} steps."),
    "killed_memory": ("critical", "Killed for lack of memory after {steps} steps."),
    "crashed": ("critical", "Crashed after {steps} steps: {reason}."),
    "interrupted": ("info", "Stopped by hand after {steps} steps."),
}  # fmt: skip

#: Backward passes without a step after which a run that goes on is no longer thought to accumulate.
_MANY_PASSES = 100
#: Longest reason that fits into a sentence.
_REASON = 160


def verdict(
    status: str,
    findings: Sequence[Finding],
    *,
    steps: int,
    exit: Mapping[str, Any] | None = None,  # noqa: A002 the report's own name for it
    cleared: Sequence[Finding] = (),
    inference: Mapping[str, Any] | None = None,
    uncounted: int = 0,
) -> dict[str, Any]:
    """What to say of a run.

    Args:
        status: of the contract's report: running, finished, crashed, killed or stalled.
        findings: those that stand, oldest first.
        steps: steps taken so far.
        exit: the report's `exit` ({"code", "signal", "reason", "rank"}), None while it runs.
        cleared: findings that once stood and are over.
        inference: of a run that trains nothing: p50, p95, p99 (milliseconds a step), and samples_per_s
            and batch where they are known.
        uncounted: backward passes of a run whose weights change in a way that torch does not count.

    Returns:
        {"key", "params", "text", "tone", "i18n"}: `text` is `TEXTS[key]` filled with `params`, `i18n` its
        pair (see `message`).
    """
    loud = ranked([finding for finding in findings if finding.severity != "info"])
    if status in ("killed", "crashed"):
        return _dead(status, exit or {}, steps, loud)
    if status == "stalled":
        return _stalled(loud)
    if loud:
        return _found(loud[0])
    if steps == 0 and (uncounted >= _MANY_PASSES or (uncounted and status == "finished")):
        return _entry("finished_uncounted" if status == "finished" else "uncounted", passes=uncounted)
    if inference is not None and steps >= MIN_STEPS:
        return _entry("inference_counted" if inference.get("batch") else "inference", **inference)
    if status == "finished":
        gone = ranked([finding for finding in cleared if finding.severity != "info"])
        return _finished(steps, gone, _unexplained(findings))
    if steps == 0:
        return _entry("waiting")
    if steps < MIN_STEPS:
        return _entry("collecting", steps=steps, needed=MIN_STEPS)
    unexplained = _unexplained(findings)
    return _entry("unexplained", **unexplained) if unexplained else _entry("healthy")


def _dead(status: str, end: Mapping[str, Any], steps: int, loud: Sequence[Finding]) -> dict[str, Any]:
    died = next((finding for finding in loud if finding.code == "process_died"), None)
    evidence = died.evidence if died else {}
    if evidence.get("oom_kill"):
        return _entry("killed_memory", steps=steps)
    reason = str(end.get("reason") or evidence.get("reason") or "")
    if "KeyboardInterrupt" in reason or end.get("signal") in (2, "SIGINT"):
        return _entry("interrupted", steps=steps)
    if status == "killed":
        return _entry(
            "killed", steps=steps, signal=evidence.get("signal") or end.get("signal") or "an unknown hand"
        )
    reason = reason or f"exit status {end.get('code')}"
    return _entry("crashed", steps=steps, reason=reason.splitlines()[0][:_REASON].rstrip("."))


def _stalled(loud: Sequence[Finding]) -> dict[str, Any]:
    stall = next((finding for finding in loud if finding.code == "stall"), None)
    if stall is None or not {"phase", "stalled_s"} <= stall.evidence.keys():
        return _entry("stalled_unknown")
    evidence = stall.evidence
    return _entry(
        "stalled", rank=stall.ranks[0], phase=evidence["phase"], seconds=float(evidence["stalled_s"])
    )


def _found(finding: Finding) -> dict[str, Any]:
    if finding.code == "noisy_neighbour":
        return _entry("healthy_busy")
    if finding.gain is None:
        return _entry("finding", title=finding.title, cause=finding.cause)
    return _entry("finding_gain", title=finding.title, cause=finding.cause, speedup=finding.gain.speedup)


def _unexplained(findings: Sequence[Finding]) -> dict[str, Any] | None:
    """Share and place of the time that nothing accounts for; None where that is less than a tenth."""
    found = next((finding for finding in findings if finding.code == "untracked_time"), None)
    if found is None:
        return None
    return {"share": found.evidence["untracked_share"], "place": found.cause}


def _finished(
    steps: int, cleared: Sequence[Finding], unexplained: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    if steps == 0:
        return _entry("finished_unmeasured")
    if cleared:
        return _entry("finished_cleared", steps=steps, title=cleared[0].title)
    if unexplained and steps >= MIN_STEPS:
        return _entry("finished_unexplained", steps=steps, **unexplained)
    return _entry("finished" if steps >= MIN_STEPS else "finished_early", steps=steps)


def _entry(key: str, **params: Any) -> dict[str, Any]:
    tone, template = TEXTS[key]
    text = message(template, **params)
    return {"key": key, "params": params, "text": text, "tone": tone, "i18n": text.pair}
