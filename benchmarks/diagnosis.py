"""What a full diagnosis costs: every detector over a window of 100,000 steps. Aim: 50 ms.

    python benchmarks/diagnosis.py [--steps N] [--ranks N]

Prints the median and the worst of 15 examinations in milliseconds, and the five dearest detectors. Measured
is CPU time, so that a busy machine changes nothing; on an idle one it is the wall's.
Windows: a healthy run with very short steps, so that all of them lie within the minutes that rules look
back, and a starved one whose every step is a candidate.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import numpy as np
from windows import env, loader, rank, samples, window

from monitor.diagnosis.core.doctor import Detector, discover, examine
from monitor.diagnosis.core.window import Window

TIMES = 15
AIM_MS = 50.0


def long_window(steps: int, ranks: int, wait_ms: float) -> Window:
    """A run of `steps` steps of about 3 ms with epochs, samples, loss, scale and garbage collection."""
    random = np.random.default_rng(0)
    noise = 1 + 0.2 * random.random(steps)
    facts = {
        **env(),
        **loader(),
        "precision": {"autocast": True, "autocast_dtype": "float16", "scaler": True},
    }
    facts |= {
        "model/1": {"class": "Net", "parameters": 9, "dtypes": {"float32": 9}},
        "compile": {"used": True},
    }
    columns = {
        "data": wait_ms * noise, "forward": 0.8 * noise, "backward": 1.2 * noise, "optimizer": 0.2,
        "loss": random.random(steps), "loss_scale": 65536.0, "amp_skipped": 0.0, "gc_ms": 0.0,
        "tokens": 32.0, "optimizer_steps": 1.0, "epoch": np.arange(steps) // 1000,
    }  # fmt: skip
    taken = samples(300, 1.0, rss_mb=500.0, tree_pss_mb=900.0, runq_share=0.01, main_cpu=1.0, workers_cpu=0.3)
    hosts = {"here": samples(300, 1.0, cpu_used=1.4, cpu_usable=2.0, memory_limit_mb=8e3)}
    return window(*(rank(steps, n, facts=facts, samples=taken, **columns) for n in range(ranks)), hosts=hosts)


def measure(one: Window, using: tuple[Detector, ...]) -> list[float]:
    """Milliseconds of `TIMES` examinations, after one to warm up."""
    examine(one, using)
    took = []
    for _ in range(TIMES):
        began = time.process_time()
        examine(one, using)
        took.append((time.process_time() - began) * 1e3)
    return took


def main() -> int:
    """Print the figures; exit status 1 when the aim is missed."""
    ask = argparse.ArgumentParser(description="What a full diagnosis costs.")
    ask.add_argument("--steps", type=int, default=100_000)
    ask.add_argument("--ranks", type=int, default=1)
    args = ask.parse_args()
    missed = False
    for name, wait_ms in (("healthy", 0.3), ("starved", 6.0)):
        one = long_window(args.steps, args.ranks, wait_ms)
        took = measure(one, discover())
        dear = sorted(((statistics.median(measure(one, (d,))), d.code) for d in discover()), reverse=True)[:5]
        print(f"{name}: median {statistics.median(took):.1f} ms, worst {max(took):.1f} ms (aim {AIM_MS:.0f})")
        print("   " + ", ".join(f"{code} {ms:.1f}" for ms, code in dear))
        missed |= statistics.median(took) > AIM_MS
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
