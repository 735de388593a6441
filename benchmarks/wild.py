"""Loops that nobody tuned for: what the monitor counts, beside what the script itself counted.

    python benchmarks/wild.py [--keep DIR] [--python PYTHON] [SCRIPT …]

Without scripts, those of examples/loops. Each is run bare and under `torchvitals run`. It prints as its last
line, as JSON, what it counted by itself: `steps`; `samples`, `epochs`, `micro_batches` where they are plain;
`shares` of its time that it measured around its own calls. `or_zero` says that no step can be counted there
without session.step(). Two runs must print the same (but for what they measured) and end alike. With
--python, the scripts of another environment, in which torchvitals is installed as well.
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
from typing import Any

LOOPS = Path(__file__).parents[1] / "examples" / "loops"
#: A share may differ by so much from the one that was measured by hand.
POINTS = 0.05


def main() -> None:
    """Run, compare, print a table; exit status 1 where something differs."""
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("scripts", nargs="*", type=Path)
    ask.add_argument("--python", default=sys.executable)
    ask.add_argument("--keep", type=Path, help="runs and reports")
    args = ask.parse_args()
    keep = (args.keep or Path(tempfile.mkdtemp(prefix="wild-"))).resolve()
    keep.mkdir(parents=True, exist_ok=True)
    right = 0
    scripts = args.scripts or sorted(path for path in LOOPS.glob("*.py"))
    print("| script | steps | counted | findings | differs |\n| --- | ---: | ---: | --- | --- |")
    for script in scripts:
        row = compared(args.python, script.resolve(), keep)
        right += not row[-1]
        print(f"| {script.stem} | {' | '.join(map(str, row))} |", flush=True)
    print(f"\n{right} of {len(scripts)} right; reports in {keep}")
    sys.exit(right != len(scripts))


def compared(python: str, script: Path, keep: Path) -> tuple[Any, ...]:
    """Steps by the script's count and by ours, findings, and in what the two differ."""
    env = {**os.environ, "MONITOR_STATE_DIR": str(keep / "state"), "PYTHONHASHSEED": "0"}
    bare = subprocess.run([python, str(script)], capture_output=True, text=True, env=env)
    report = keep / f"{script.stem}.json"
    watched_by = [python, "-m", "monitor", "run", "--no-dashboard", "--run-dir", str(keep)]
    watched = subprocess.run(
        [*watched_by, "--json", str(report), str(script)], capture_output=True, text=True, env=env
    )
    said = json.loads(report.read_text())
    rows = keep / f"{script.stem}.csv"
    exported = [python, "-m", "monitor", "report", said["run"], "--run-dir", str(keep), "--csv", str(rows)]
    subprocess.run(exported, capture_output=True, env=env)
    counted = truth(watched.stdout)
    differs = [
        *([] if bare.returncode == watched.returncode else [f"exit {bare.returncode}, {watched.returncode}"]),
        *([] if plain(bare.stdout) == plain(watched.stdout) else ["stdout"]),
        *differences(counted, said, list(csv.DictReader(rows.open())) if rows.exists() else []),
    ]
    codes = [finding["code"] for finding in said["findings"] if finding["severity"] != "info"]
    if counted.get("no_findings") and set(codes) - {"noisy_neighbour"}:
        differs.append("false alarm")
    return counted.get("steps", "?"), said["steps"], ", ".join(codes), ", ".join(differs)


def differences(counted: dict[str, Any], said: dict[str, Any], rows: list[dict[str, str]]) -> list[str]:
    """In what a report differs from what the script counted."""
    found = []
    allowed = {counted.get("steps"), 0} if counted.get("or_zero") else {counted.get("steps")}
    if said["steps"] not in allowed:
        found.append("steps")
    for key in ("samples", "micro_batches"):
        sum_ = sum(float(row[key] or 0) for row in rows if key in row)
        if key in counted and sum_ != counted[key]:
            found.append(f"{key} {sum_:.0f} of {counted[key]}")
    if "epochs" in counted and rows and float(rows[-1].get("epoch") or 0) != counted["epochs"]:
        found.append(f"epoch {rows[-1].get('epoch')} of {counted['epochs']}")
    for phase, share in counted.get("shares", {}).items():
        ours = said["time_share"][phase]
        if ours is not None and abs(ours - share) > POINTS:
            found.append(f"{phase} {ours:.2f}, by hand {share:.2f}")
    return found


def truth(stdout: str) -> dict[str, Any]:
    """The last line of what a script printed."""
    lines = stdout.strip().splitlines()
    try:
        return dict(json.loads(lines[-1]))
    except (IndexError, ValueError):
        return {}


def plain(stdout: str) -> str:
    """What a script printed, but for what it measured."""
    counted = truth(stdout)
    rest = stdout.strip().splitlines()[: -1 if counted else None]
    measured = ("shares", "waiting")
    return "\n".join([*rest, *(f"{key} {counted[key]}" for key in counted if key not in measured)])


if __name__ == "__main__":
    main()
