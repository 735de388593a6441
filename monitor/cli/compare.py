"""`torchvitals compare BASELINE CANDIDATE`: what changed, and which predictions came true."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from monitor import runs, state
from monitor.cli import UsageError
from monitor.compare import compare
from monitor.store import StoreError

HELP = "what changed between two runs, and which predictions came true"
EXAMPLE = """  torchvitals compare 20261130-0316 latest
  torchvitals compare baseline candidate --fail-if-slower 5"""

#: Differences shown; the JSON has all.
SHOWN = 20


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("baseline", metavar="BASELINE", help="a run's id, name or folder")
    parser.add_argument("candidate", metavar="CANDIDATE", help="the run after the change")
    parser.add_argument("--json", metavar="FILE", help="write JSON to FILE ('-': to the standard output)")
    parser.add_argument("--run-dir", metavar="DIR", help="where the runs are kept")
    parser.add_argument(
        "--fail-if-slower",
        type=float,
        metavar="PCT",
        help="exit status 1 when the candidate is surely more than PCT percent slower",
    )


def run(args: argparse.Namespace) -> int:
    """Print the comparison, or write it."""
    folder = state.run_dir(args.run_dir)
    try:
        found = compare(runs.resolve(args.baseline, folder), runs.resolve(args.candidate, folder))
    except (runs.NoSuchRunError, StoreError) as error:
        raise UsageError(str(error)) from None
    if args.json is None:
        sys.stdout.write("\n".join(lines(found)) + "\n")
    else:
        _write(args.json, found)
    limit = args.fail_if_slower
    return 1 if limit is not None and _slower(found["speed"], limit) else 0


def _write(target: str, found: dict[str, Any]) -> None:
    content = json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if target == "-":
        sys.stdout.write(content)
        return
    try:
        Path(target).write_text(content, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror}; give another file to --json") from None


def _slower(speed: dict[str, float | None], percent: float) -> bool:
    """Whether even the favourable end of the interval is slower by more than `percent`."""
    best = speed["high"] if speed["high"] is not None else speed["speedup"]
    return best is not None and best < 1 - percent / 100


def lines(found: dict[str, Any]) -> list[str]:
    """The comparison as text."""
    speed, changed = found["speed"], found["changed"]
    out = [f"{found['baseline']['run']} → {found['candidate']['run']}", ""]
    count = len(changed)
    out.append(
        {0: "nothing changed in the configuration", 1: "one thing changed:"}.get(
            count, f"{count} things changed:"
        )
    )
    out += [f"  {c['name']}: {c['before']} → {c['after']}" for c in changed[:SHOWN]]
    if count > SHOWN:
        out.append(f"  … and {count - SHOWN} more")
    out += ["", f"speed: {_speed(speed)}"]
    before, after = found["memory"]["rss_mb"]
    if before and after:
        out.append(f"memory: {before:.0f} MB → {after:.0f} MB")
    for phase, (was, now) in found["phases"].items():
        if was is not None and now is not None and max(was, now) >= 0.05:
            out.append(f"  {phase:<10} {was:9.2f} ms → {now:9.2f} ms")
    for row in found["predictions"]:
        reached = f", reached {row['reached']:.2f}" if row["reached"] is not None else ""
        out.append(
            f"{row['verdict']}: {row['title']} ({row['code']}): promised {row['promised']:.2f} times{reached}"
        )
    return out


def _speed(speed: dict[str, float | None]) -> str:
    ratio = speed["speedup"]
    if ratio is None:
        return "unknown: one of the runs has no steps to compare"
    before, after = speed["baseline_steps_per_s"], speed["candidate_steps_per_s"]
    text = f"{before:.2f} → {after:.2f} steps/s, {ratio:.2f} times"
    if speed["low"] is None or speed["high"] is None:
        return f"{text} (too few steps for an interval)"
    return f"{text} (95 % interval {speed['low']:.2f} to {speed['high']:.2f})"
