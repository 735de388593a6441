"""Loops that nobody tuned for: what the monitor counts, beside what the script itself counted.

    python benchmarks/wild.py [--keep DIR] [--python PYTHON | --venv DIR] [SCRIPT …]

Without scripts, those of examples/loops. Each is run bare and under `torchvitals run`. It tells what it
counted by itself in the file named by LOOP_TRUTH, or as JSON in its last line: `steps`; `samples`, `epochs`,
`micro_batches` where they are plain; `shares` of its time that it measured around its own calls; `weights`,
a hash; `findings` that would be right; a `notice` that has to be given. `or_zero` says that no step can be
counted there without session.step(). Two runs must print the same (but for what they measured and for the
summary) and end alike. A share that is null is no claim, so it is right; evaluation that the script has none
of has to be 0. With --venv (or --python), the scripts of another environment, in which torchvitals is
installed as well.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

LOOPS = Path(__file__).parents[1] / "examples" / "loops"
#: A share may differ by so much from the one that was measured by hand.
POINTS = 0.05
#: Phases that a script has none of unless it says so.
ABSENT = ("eval", "checkpoint", "h2d", "comm")
#: Findings about the machine, not about the script.
OTHERS = {"noisy_neighbour"}
HEAD = """| script | counted | steps | shares, by hand > ours | findings | differs |
| --- | ---: | ---: | --- | --- | --- |"""


class Ran(NamedTuple):
    """One run of a script: how it ended, what it printed, what it counted."""

    status: int
    stdout: str
    stderr: str
    counted: dict[str, Any]


def main() -> None:
    """Run, compare, print a table; exit status 1 where something differs."""
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("scripts", nargs="*", type=Path)
    which = ask.add_mutually_exclusive_group()
    which.add_argument("--python", default=sys.executable)
    which.add_argument("--venv", type=Path, help="an environment whose Python runs the scripts")
    ask.add_argument("--keep", type=Path, help="runs and reports")
    args = ask.parse_args()
    keep = (args.keep or Path(tempfile.mkdtemp(prefix="wild-"))).resolve()
    keep.mkdir(parents=True, exist_ok=True)
    python = str(args.venv.absolute() / "bin" / "python") if args.venv else args.python
    right = 0
    scripts = args.scripts or sorted(path for path in LOOPS.glob("*.py") if path.name[0] != "_")
    print(HEAD)
    for script in scripts:
        row = compared(python, script.resolve(), keep)
        right += not row[-1]
        print(f"| {script.stem} | {' | '.join(map(str, row))} |", flush=True)
    print(f"\n{right} of {len(scripts)} right; reports in {keep}")
    sys.exit(right != len(scripts))


def compared(python: str, script: Path, keep: Path) -> tuple[Any, ...]:
    """Steps by the script's count and by ours, shares, findings, and in what the two differ."""
    report = keep / f"{script.stem}.json"
    report.unlink(missing_ok=True)
    bare = ran([python, str(script)], keep / f"{script.stem}.bare")
    watched_by = [python, "-m", "monitor", "run", "--no-dashboard", "--run-dir", str(keep)]
    watched = ran([*watched_by, "--json", str(report), str(script)], keep / f"{script.stem}.watched")
    if not report.exists():
        return watched.counted.get("steps", "?"), "?", "", "", f"no report: {watched.stderr.strip()[-200:]}"
    said = json.loads(report.read_text())
    rows = exported(python, said["run"], keep, keep / f"{script.stem}.csv")
    codes = [finding["code"] for finding in said["findings"] if finding["severity"] != "info"]
    differs = [
        *changed(bare, watched, script.stem),
        *differences(watched.counted, said, rows),
        *alarms(watched.counted, said["findings"], codes),
    ]
    shares = "; ".join(
        f"{phase} {share:.2f} > {'null' if (ours := said['time_share'][phase]) is None else f'{ours:.2f}'}"
        for phase, share in watched.counted.get("shares", {}).items()
    )
    return watched.counted.get("steps", "?"), said["steps"], shares, ", ".join(codes), "; ".join(differs)


def ran(command: list[str], told: Path) -> Ran:
    """Run a script; what it counted is in the file `told`, or in the last line that it printed."""
    told.unlink(missing_ok=True)
    state = str(told.parent / "state")
    env = {**os.environ, "MONITOR_STATE_DIR": state, "PYTHONHASHSEED": "0", "LOOP_TRUTH": str(told)}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if told.exists():
        return Ran(done.returncode, done.stdout, done.stderr, json.loads(told.read_text().splitlines()[-1]))
    return Ran(done.returncode, done.stdout, done.stderr, last_line(done.stdout))


def exported(python: str, run: str, keep: Path, path: Path) -> list[dict[str, str]]:
    """The run's steps, a row each; none where it has none."""
    path.unlink(missing_ok=True)
    command = [python, "-m", "monitor", "report", run, "--run-dir", str(keep), "--csv", str(path)]
    env = {**os.environ, "MONITOR_STATE_DIR": str(keep / "state")}
    subprocess.run(command, capture_output=True, env=env)
    return list(csv.DictReader(path.open())) if path.exists() else []


def changed(bare: Ran, watched: Ran, name: str) -> list[str]:
    """What is not as it was without the monitor. The summary comes last on stderr, after the run's name."""
    rest = watched.stderr.removeprefix(bare.stderr)
    silent = watched.stderr.startswith(bare.stderr) and (not rest or rest.startswith(f"{name}: "))
    return [
        *([] if bare.status == watched.status else [f"exit {bare.status}, {watched.status}"]),
        *([] if plain(bare.stdout) == plain(watched.stdout) else ["stdout"]),
        *([] if silent else ["stderr"]),
        *([] if bare.counted.get("weights") == watched.counted.get("weights") else ["weights"]),
    ]


def differences(counted: dict[str, Any], said: dict[str, Any], rows: list[dict[str, str]]) -> list[str]:
    """In what a report differs from what the script counted."""
    found = []
    allowed = {counted.get("steps"), 0} if counted.get("or_zero") else {counted.get("steps")}
    if said["steps"] not in allowed:
        found.append(f"steps {said['steps']} of {counted.get('steps')}")
    if counted.get("or_zero") and not said["steps"]:
        return found
    for key in ("samples", "micro_batches"):
        sum_ = sum(float(row[key] or 0) for row in rows if key in row)
        if key in counted and sum_ != counted[key]:
            found.append(f"{key} {sum_:.0f} of {counted[key]}")
    if "epochs" in counted and rows and float(rows[-1].get("epoch") or 0) != counted["epochs"]:
        found.append(f"epoch {rows[-1].get('epoch')} of {counted['epochs']}")
    by_hand = counted.get("shares", {})
    for phase, share in ({**dict.fromkeys(ABSENT, 0.0), **by_hand} if by_hand else {}).items():
        ours = said["time_share"][phase]
        if ours is not None and abs(ours - share) > POINTS:
            found.append(f"{phase} {ours:.2f}, by hand {share:.2f}")
    if not any(counted.get("notice", "") in str(notice) for notice in [*said.get("notices", []), ""]):
        found.append("notice missing")
    return found


def alarms(counted: dict[str, Any], findings: list[dict[str, Any]], codes: list[str]) -> list[str]:
    """Warnings that a script gave no reason for. One without `findings` claims less."""
    if "findings" in counted:
        right = {*counted["findings"], *OTHERS}
        loud = [finding for finding in findings if finding["code"] in codes and finding["code"] not in right]
        return [f"alarm {finding['code']} (gain {speedup(finding)})" for finding in loud]
    return ["false alarm"] if counted.get("no_findings") and set(codes) - OTHERS else []


def speedup(finding: dict[str, Any]) -> str:
    """What a finding promises."""
    gain = finding.get("gain") or {}
    return f"{gain['speedup']:.2f}x" if gain.get("speedup") else "none"


def last_line(stdout: str) -> dict[str, Any]:
    """The last line of what a script printed."""
    lines = stdout.strip().splitlines()
    try:
        return dict(json.loads(lines[-1]))
    except (IndexError, ValueError, TypeError):
        return {}


def plain(stdout: str) -> str:
    """What a script printed, but for what it measured."""
    counted = last_line(stdout)
    rest = stdout.strip().splitlines()[: -1 if counted else None]
    measured = ("shares", "waiting")
    return "\n".join([*rest, *(f"{key} {counted[key]}" for key in counted if key not in measured)])


if __name__ == "__main__":
    main()
