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
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from gpu_rows import copy_rows, device_rows, fits_row, memory_rows, nvml_rows, oom_rows, time_rows
from gpu_runs import HERE, Checker, Outcome, device, sample_ms
from gpu_table import Row, found_row, render, write

DOC = HERE.parent / "docs" / "gpu-check.md"


class Twin(NamedTuple):
    """A script, what it must be found to have, and in what environment it runs.

    Attributes:
        wanted: findings; none: it must have no warning and nothing critical.
        neighbour: another process uses the device meanwhile.
    """

    script: str
    wanted: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    neighbour: bool = False


EXPANDABLE = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
TWINS = {
    "healthy": Twin("healthy"),
    "pageable": Twin("pageable", ("pin_memory_off",)),
    "tf32_off": Twin("tf32_off", ("tf32_off",)),
    "amp_off": Twin("amp_off", ("amp_off",)),
    "unaligned": Twin("unaligned", ("amp_unaligned_shapes",)),
    "launch_bound": Twin("launch_bound", ("launch_bound",)),
    "empty_cache": Twin("empty_cache", ("empty_cache_churn",)),
    "fragmentation": Twin("fragmentation", ("memory_fragmentation",)),
    "expandable": Twin("fragmentation", (), EXPANDABLE),
    "small_allocations": Twin("small_allocations", ("small_allocations",)),
    "headroom": Twin("headroom", ("memory_headroom",)),
    "host_sync": Twin("host_sync", ("host_sync",)),
    "memory_leak": Twin("memory_leak", ("memory_leak",)),
    "oom": Twin("oom", ("memory_pressure",)),
    "shared": Twin("healthy", ("gpu_shared",), neighbour=True),
}
#: Scripts whose cost is measured, bare and watched taking turns, and how many turns.
COSTS, TURNS = ("healthy", "launch_bound"), 2
#: Milliseconds that a sample of the devices may take the agent once a second (own).
SAMPLE_MS = 5.0


def cost_rows(checker: Checker) -> list[Row]:
    """What being watched adds to a step; the tolerance is that of the noise, not of the cost."""
    rows = []
    for twin in COSTS:
        bare, watched = [], []
        for _ in range(TURNS):
            bare.append(checker.bare(twin)["step_ms"])
            watched.append(checker.watched(twin).told["step_ms"])
        figure = f"step of {twin}, watched, ms"
        rows.append(Row(figure, median(watched), median(bare), "the same, not watched", 0.05, "most"))
    return rows


def codes(report: dict[str, Any]) -> list[str]:
    """Findings that are no mere information, and all others in brackets behind them."""
    loud = [f["code"] for f in report["findings"] if f["severity"] != "info"]
    return loud + [f"({f['code']})" for f in report["findings"] if f["severity"] == "info"]


def examine(checker: Checker, names: Iterable[str]) -> list[Row]:
    """Run the twins and compare."""
    rows: list[Row] = []
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        twin = TWINS[name]
        out = run(checker, twin)
        rows += figures(checker, name, out)
        rows.append(found_row(name, twin.wanted, codes(out.report)))
    return rows


def run(checker: Checker, twin: Twin) -> Outcome:
    """One twin under the monitor, with a neighbour where it must have one."""
    if not twin.neighbour:
        return checker.watched(twin.script, twin.env)
    neighbour = checker.neighbour()
    try:
        return checker.watched(twin.script, twin.env)
    finally:
        neighbour.kill()
        neighbour.wait()


def figures(checker: Checker, name: str, out: Outcome) -> list[Row]:
    """What is compared beside the findings."""
    if name == "healthy":
        synchronised = checker.bare(name, "--truth", "synchronised")
        profiled = checker.bare(name, "--truth", "profiler")
        times = time_rows(out, synchronised, profiled)
        return [*nvml_rows(out), *device_rows(out), *memory_rows(out), *times]
    if name == "pageable":
        return copy_rows(out)
    if name == "headroom":
        return [fits_row(out, tried_batch(checker, out))]
    if name == "oom":
        return oom_rows(out)
    if name in ("fragmentation", "memory_leak"):
        return [replace(row, figure=f"{name}: {row.figure}") for row in memory_rows(out)]
    return []


def tried_batch(checker: Checker, out: Outcome) -> dict[str, Any]:
    """The last line of a run with the batch that should fit; empty where none was named, or it died."""
    found = [f["evidence"] for f in out.report["findings"] if f["code"] == "memory_headroom"]
    size = found[0].get("batch_size_that_fits") if found else None
    return checker.bare("headroom", "--batch", str(size)) if size else {}


def small(names: Sequence[str]) -> int:
    """Run the scripts on the CPU for some steps: they work, and nothing is said of any GPU."""
    usual = sys.argv, sys.path[:]
    sys.path.insert(0, str(HERE / "gpu"))
    try:
        for script in dict.fromkeys(TWINS[name].script for name in names):
            sys.argv = [f"{script}.py", "--device", "cpu", "--steps", "3"]
            with suppress(SystemExit):
                runpy.run_path(str(HERE / "gpu" / f"{script}.py"), run_name="__main__")
            print(f"{script}: runs")
    finally:
        sys.argv, sys.path[:] = usual
    return 0


def main() -> int:
    """Check, print, and write where asked."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--only", nargs="+", choices=list(TWINS), metavar="TWIN", help=", ".join(TWINS))
    ask.add_argument("--seconds", type=float, default=6.0, help="how long each script trains (default 6)")
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
        rows.append(Row("a sample of all devices, ms", sample_ms(), SAMPLE_MS, "the aim", 0, "most"))
    print(render(rows))
    if args.json:
        args.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    if args.write:
        write(DOC, rows, found)
    return int(any(row.holds is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
