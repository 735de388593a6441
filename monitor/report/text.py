"""A report as text for a terminal: whole, and in a few lines for the end of a run."""

from __future__ import annotations

import textwrap
import unicodedata
from collections import Counter
from collections.abc import Mapping
from typing import Any

from monitor.diagnosis.core.quantities import duration, number
from monitor.diagnosis.core.ranking import ranked_forms

Report = Mapping[str, Any]

#: Columns of a text line.
WIDTH = 100
#: Lines of a summary at most, and findings in it.
SUMMARY_LINES, SUMMARY_FINDINGS = 12, 4
#: Notices told at most, the newest.
NOTICES = 3
_BAR = 50
#: Phase -> its letter in the bar.
_LETTERS = {
    "data": "d", "h2d": "h", "forward": "f", "backward": "b", "optimizer": "o",
    "comm": "c", "checkpoint": "k", "eval": "e", "other": "·",
}  # fmt: skip
_MARKS = {"critical": "✖", "warning": "▲", "info": "·"}


def text(report: Report) -> str:
    """The report for a person to read."""
    lines = [*_head(report), *_numbers(report), *_shares(report), ""]
    found = ranked_forms(report["findings"])
    for finding in found:
        lines += [*_finding(finding), ""]
    if not found:
        lines += [_nothing_found(report), ""]
    return "\n".join([*lines, *_unchecked(report)]).rstrip()


def summary(report: Report) -> str:
    """The report in at most twelve lines, for the end of a run."""
    found = ranked_forms(report["findings"])
    lines = [*_head(report), *_numbers(report), *_shares(report)]
    for finding in found[:SUMMARY_FINDINGS]:
        lines.append(_title(finding))
        if finding["advice"]:
            lines.append(
                textwrap.shorten(f"    {finding['advice']}{_speedup(finding)}", WIDTH, placeholder=" …")
            )
            lines[-1] = "    " + lines[-1].lstrip()
    if not found:
        lines.append("  " + _nothing_found(report))
    more = len(found) - SUMMARY_FINDINGS
    others = f", and {more} more findings" if more > 0 else ""
    ending = f"  all of it{others}: torchvitals report {report['run']}"
    return "\n".join(f"{line}" for line in [*lines[: SUMMARY_LINES - 1], ending])


def _head(report: Report) -> list[str]:
    steps, lasted = report["steps"], report["duration_s"]
    took = f" in {duration(lasted)}" if lasted is not None else ""
    ranks = f", {report['world_size']} ranks" if (report["world_size"] or 1) > 1 else ""
    counted = "steps not known" if steps is None else f"{steps:,} steps"
    lines = [f"{report['name']}: {report['status']}, {counted}{took}{ranks}"]
    end = report["exit"] or {}
    if report["status"] in ("crashed", "killed"):
        where = [f"rank {end['rank']}"] if end.get("rank") is not None and ranks else []
        where += [f"after step {end['last_step']}"] if end.get("last_step") is not None else []
        where += [f"in {end['last_phase']}"] if end.get("last_phase") else []
        reason = end.get("reason") or end.get("signal") or f"exit status {end.get('code')}"
        lines.append(
            textwrap.shorten("  ".join(["", ", ".join([str(reason), *where])]), WIDTH, placeholder=" …")
        )
        lines[-1] = "  " + lines[-1].lstrip()
    if reduced := report.get("reduced_ranks"):
        lines.append(f"  {reduced:,} ranks are told as averages over about a second, the others step by step")
    notices = [" ".join(line.split()) for line in report.get("notices") or ()]
    return [*lines, *(f"  ! {line}" for line in notices[-NOTICES:])]  # whole: it may end in a file's path


def _numbers(report: Report) -> list[str]:
    rates, step, memory = report["throughput"], report["step_ms"], report["memory"]
    parts = [
        f"{number(rates[key])} {unit}"
        for key, unit in (
            ("steps_per_s", "steps/s"),
            ("samples_per_s", "samples/s"),
            ("tokens_per_s", "tokens/s"),
        )
        if rates[key] is not None
    ]
    if step["p50"] is not None:
        parts.append(f"step {number(step['p50'])} ms (p95 {number(step['p95'])}, p99 {number(step['p99'])})")
    if memory["rss_mb"] is not None:
        parts.append(f"memory {number(memory['rss_mb'])} MB")
    if memory.get("cuda_allocated_mb") is not None:
        parts.append(f"GPU memory {number(memory['cuda_allocated_mb'])} MB")
    return ["  " + " · ".join(parts)] if parts else []


def _shares(report: Report) -> list[str]:
    known = {phase: share for phase, share in report["time_share"].items() if share is not None}
    if not known:
        return []
    sampled = {name: f" (from {count} samples)" for name, count in (report.get("samples") or {}).items()}
    named = [
        f"{phase} {share:.0%}{sampled.get(phase, '')}"
        for phase, share in sorted(known.items(), key=lambda item: -item[1])
    ]
    return [f"  [{_bar(known)}] " + ", ".join(named[:4])]


def _bar(shares: Mapping[str, float]) -> str:
    """A bar of letters, each phase as wide as its share; rounded so that the widths add up."""
    out, reached = "", 0.0
    for phase, letter in _LETTERS.items():
        reached += shares.get(phase, 0.0)
        out += letter * (round(reached * _BAR) - len(out))
    return out[:_BAR]


def _finding(finding: Mapping[str, Any]) -> list[str]:
    lines = [_title(finding)]
    advice = " ".join(filter(None, [finding["advice"], _gain(finding)]))
    lines += textwrap.wrap(advice, WIDTH - 4, initial_indent="    ", subsequent_indent="    ")
    evidence = ", ".join(f"{key} {_value(value)}" for key, value in finding["evidence"].items())
    lines += textwrap.wrap(evidence, WIDTH - 4, initial_indent="    ", subsequent_indent="    ")
    if finding["snippet"]:
        comment = [f"      # {finding['location']}"] if finding["location"] else []
        lines += [*comment, *textwrap.indent(finding["snippet"], "      ").splitlines()]
    elif finding["location"]:
        lines.append(f"    at {finding['location']}")
    return lines


def _title(finding: Mapping[str, Any]) -> str:
    mark = _MARKS.get(finding["severity"], "·")
    over = "" if finding["cleared_at_s"] is None else f" (over since {duration(finding['cleared_at_s'])})"
    cause = f": {finding['cause']}" if finding["cause"] else ""
    words = f"{finding['code']}: {finding['title']}{cause}{over}".split()
    return f"  {mark} {' '.join(words)}"[: WIDTH + 20]


def _gain(finding: Mapping[str, Any]) -> str:
    gain = finding["gain"]
    return f"That makes training {gain['speedup']:.2f} times as fast: {gain['basis']}." if gain else ""


def _speedup(finding: Mapping[str, Any]) -> str:
    gain = finding["gain"]
    return f" ({gain['speedup']:.2f} times as fast)" if gain else ""


def _nothing_found(report: Report) -> str:
    verdict = report.get("verdict") or {}
    return str(verdict.get("text") or "Nothing was found.")


def _unchecked(report: Report) -> list[str]:
    """What could not be judged, in one line: how many checks, and why, the most frequent reason first."""
    reasons = Counter(entry["why"] for entry in report["not_checked"])
    if not reasons:
        return []
    counts = ", ".join(f"{why} ({count})" for why, count in reasons.most_common())
    line = f"  {len(report['not_checked'])} checks could not run: {counts}"
    return [textwrap.shorten(line.strip(), 2 * WIDTH, placeholder=" …; --json names all").join(("  ", ""))]


def harmless(text: str) -> str:
    """Text for a terminal without what would steer it (escape sequences, carriage returns) or turn its
    letters around: a run's names and findings are those of whoever trained it.
    """
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs"))


def _value(value: Any) -> str:
    if isinstance(value, float):
        return number(value)
    return "–" if value is None else str(value)
