"""Are the figures of a GPU true? Each beside an independent measurement, on a machine that has one.

    scripts/gpu_check [--only TWIN ...] [--seconds S] [--write] [--json FILE]

Trains the scripts of benchmarks/gpu under `torchvitals run`, about five minutes in all. Beside our figures
stand those of a bare NVML loop, of torch's own functions in the script, of torch.profiler, and of a second
run that synchronises around each phase. `--write` puts the table into docs/gpu-check.md. Ends with status 1
where a figure is off by more than its tolerance. Without a GPU it says so, claims nothing and ends with 0.
"""

from __future__ import annotations

import argparse
import json
import runpy
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any

from gpu_rows import memory_rows, nvml_rows, oom_rows, time_rows
from gpu_runs import HERE, Checker, device
from gpu_table import Row, found_row, render, write

DOC = HERE.parent / "docs" / "gpu-check.md"
#: Script -> findings that it must have; none: it must have no warning and nothing critical.
TWINS: dict[str, tuple[str, ...]] = {
    "healthy": (),
    "pageable": ("pin_memory_off",),
    "tf32_off": ("tf32_off",),
    "amp_off": ("amp_off",),
    "unaligned": ("amp_unaligned_shapes",),
    "launch_bound": ("launch_bound",),
    "empty_cache": ("empty_cache_churn",),
    "fragmentation": ("memory_fragmentation",),
    "small_allocations": ("small_allocations",),
    "headroom": ("memory_headroom",),
    "host_sync": ("host_sync",),
    "memory_leak": ("memory_leak",),
    "oom": ("memory_pressure",),
}
#: Twins whose cost is measured, bare and watched taking turns, and how many turns.
COSTS, TURNS = ("healthy", "launch_bound"), 3


def cost_rows(checker: Checker) -> list[Row]:
    """What being watched adds to a step; the tolerance is that of the noise, not of the cost."""
    rows = []
    for twin in COSTS:
        bare, watched = [], []
        for _ in range(TURNS):
            bare.append(checker.bare(twin)["step_ms"])
            watched.append(checker.watched(twin).told["step_ms"])
        figure = f"step of {twin}, watched, ms"
        rows.append(Row(figure, median(watched), median(bare), "the same, not watched", 0.05))
    return rows


def codes(report: dict[str, Any]) -> list[str]:
    """Findings that are no mere information, and all others in brackets behind them."""
    loud = [f["code"] for f in report["findings"] if f["severity"] != "info"]
    return loud + [f"({f['code']})" for f in report["findings"] if f["severity"] == "info"]


def examine(checker: Checker, twins: Iterable[str]) -> list[Row]:
    """Run the twins and compare."""
    rows: list[Row] = []
    for twin in twins:
        print(f"{twin} …", file=sys.stderr, flush=True)
        out = checker.watched(twin)
        if twin == "healthy":
            synchronised = checker.bare(twin, "--truth", "synchronised")
            profiled = checker.bare(twin, "--truth", "profiler")
            rows += [*nvml_rows(out), *memory_rows(out), *time_rows(out, synchronised, profiled)]
        elif twin == "oom":
            rows += oom_rows(out)
        elif twin in ("fragmentation", "memory_leak"):
            rows += [replace(row, figure=f"{twin}: {row.figure}") for row in memory_rows(out)]
        rows.append(found_row(twin, TWINS[twin], codes(out.report)))
    return rows


def small(twins: Sequence[str]) -> int:
    """Run the scripts on the CPU for some steps: they work, and nothing is said of any GPU."""
    usual = sys.argv, sys.path[:]
    sys.path.insert(0, str(HERE / "gpu"))
    try:
        for twin in twins:
            sys.argv = [f"{twin}.py", "--device", "cpu", "--steps", "3"]
            with suppress(SystemExit):
                runpy.run_path(str(HERE / "gpu" / f"{twin}.py"), run_name="__main__")
            print(f"{twin}: runs")
    finally:
        sys.argv, sys.path[:] = usual
    return 0


def main() -> int:
    """Check, print, and write where asked."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--only", nargs="+", choices=list(TWINS), metavar="TWIN", help=", ".join(TWINS))
    ask.add_argument("--seconds", type=float, default=7.0, help="how long each script trains (default 7)")
    ask.add_argument("--no-cost", action="store_true", help="do not measure what being watched adds")
    ask.add_argument(
        "--device", choices=["cuda", "cpu"], default="cuda", help="cpu: only see the scripts run"
    )
    ask.add_argument("--write", action="store_true", help=f"put the table into {DOC.name}")
    ask.add_argument("--json", type=Path, help="write the rows there")
    args = ask.parse_args()
    twins = args.only or list(TWINS)
    if args.device == "cpu":
        return small(twins)
    found = device()
    if found is None:
        print("gpu_check: torch sees no GPU here, so nothing was measured and nothing is claimed")
        return 0
    checker = Checker(found["uuid"], args.seconds)
    rows = examine(checker, twins)
    if not (args.no_cost or args.only):
        rows += cost_rows(checker)
    print(render(rows))
    if args.json:
        args.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    if args.write:
        write(DOC, rows, found)
    return int(any(row.holds is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
