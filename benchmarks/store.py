"""How long a chart of a very long run takes to read: `python benchmarks/store.py [--rows N]`.

Builds a run of N steps × 20 metrics through `Store.append`, opens it as another process would, and
asks for 600 points of nine metrics at many zooms and places. Prints medians and the worst.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from array import array
from collections.abc import Callable
from pathlib import Path

import numpy as np

from monitor.batch import MAX_ROWS, Batch, Block
from monitor.store import Store

METRICS = 20
STEP_S = 0.05
#: Lengths of the ranges that are asked for, as shares of the run.
ZOOMS = (1.0, 0.5, 0.2, 0.1, 0.03, 0.01, 0.003, 0.001, 1e-5)
#: As many as the step-time ribbon has phases.
KEYS = tuple(f"m{i}" for i in range(9))


def build(path: Path, rows: int) -> float:
    """Append the run; seconds it took, without making the numbers."""
    pool = np.random.default_rng(0).lognormal(3, 0.3, (METRICS, 2 * MAX_ROWS)).astype(np.float32)
    spent = 0.0
    with Store(path, create=True) as store:
        for seq, first in enumerate(range(0, rows, MAX_ROWS), 1):
            count, at = min(MAX_ROWS, rows - first), seq * 997 % MAX_ROWS
            t_s = array("d", np.arange(first + 1, first + count + 1) * STEP_S)
            columns = {f"m{i}": array("f", pool[i, at : at + count]) for i in range(METRICS)}
            batch = Batch("bench", "host", seq, t_s[-1], (Block("rank/0", first, t_s, columns),))
            began = time.perf_counter()
            store.append(batch)
            spent += time.perf_counter() - began
    return spent


def timed(action: Callable[[], object], times: int) -> tuple[float, float]:
    """Median and worst of `times` calls, in milliseconds."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        action()
        taken.append(1e3 * (time.perf_counter() - began))
    return statistics.median(taken), max(taken)


def zoom(store: Store, share: float, rows: int, times: int) -> tuple[float, float, float]:
    """Median and worst time of a query for a range of this share at random places; points it gave."""
    dice, counts = random.Random(1), []
    whole = rows * STEP_S

    def query() -> None:
        start = dice.uniform(0, whole * (1 - share))
        counts.append(len(store.series("rank/0", KEYS, start, start + share * whole, 600)["t"]))

    return *timed(query, times), statistics.median(counts)


def open_and_list(path: Path) -> None:
    """What a viewer who comes to the run asks first."""
    with Store(path) as store:
        store.meta(), store.streams(), store.keys("rank/0")


def main() -> None:
    """Build, ask, print."""
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--rows", type=int, default=10_000_000)
    ask.add_argument("--times", type=int, default=15)
    ask.add_argument("--dir", help="where the store is built (default: a temporary folder)")
    args = ask.parse_args()
    with tempfile.TemporaryDirectory(dir=args.dir) as folder:
        path = Path(folder) / "store.sqlite"
        took = build(path, args.rows)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        print(f"{args.rows:,} steps × {METRICS} metrics: {took:.1f} s, {args.rows / took:,.0f} rows/s, "
              f"{size / 1e6:,.0f} MB")  # fmt: skip
        say("open and list", lambda: open_and_list(path), args.times)
        with Store(path) as store:
            for share in ZOOMS:
                median, worst, points = zoom(store, share, args.rows, args.times)
                print(
                    f"{share * args.rows:>14,.0f} steps: median {median:5.1f} ms, worst {worst:5.1f} ms, "
                    f"{points:.0f} points of {len(KEYS)} metrics"
                )
            eleven = [f"m{i}" for i in range(11)]
            say("totals of 11 metrics", lambda: store.totals("rank/0", eleven), args.times)
            say("quantiles of the run", lambda: store.quantiles("rank/0", "m0", [0.5, 0.95, 0.99]), 3)


def say(what: str, action: Callable[[], object], times: int) -> None:
    """Time an action and print it."""
    median, worst = timed(action, times)
    print(f"{what}: median {median:.1f} ms, worst {worst:.1f} ms")


if __name__ == "__main__":
    main()
