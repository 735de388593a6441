"""From a step's end in the training loop to its number on the screen.

    python benchmarks/latency.py [--seconds S] [--step-ms MS] [--json FILE]

A real script trains through the real agent and hub; the page in Chromium notes when its step counter
changes. Both use the same machine's wall clock. A step's latency lasts from its end until the page shows
its number or a higher one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

CHROMIUM = "/usr/bin/chromium"
ARGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()

TRAIN = """
import sys, time, torch
from torch import nn
import monitor
seconds, pause = float(sys.argv[1]), float(sys.argv[2]) / 1e3
model = nn.Linear(8, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.randn(16, 8), torch.randn(16, 1)
session = monitor.attach(model)
print(session.url, flush=True)
ends = []
until = time.time() + seconds
while time.time() < until:
    opt.zero_grad()
    (model(x) - y).pow(2).mean().backward()
    opt.step()
    ends.append(time.time())
    time.sleep(pause)
print(" ".join(f"{t:.6f}" for t in ends), flush=True)
"""

WATCH = """
window.seen = [];
let last = '';
setInterval(() => {
  const label = [...document.querySelectorAll('.fact .label')].find((item) => item.textContent === 'step');
  const text = label?.nextElementSibling?.textContent.replace(/\\D/g, '') ?? '';
  if (text && text !== last) { seen.push([Number(text), Date.now() / 1000]); last = text; }
}, 20);
"""


def measure(seconds: float, step_ms: float) -> list[float]:
    """Latencies in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "MONITOR_STATE_DIR": f"{folder}/state", "MONITOR_RUN_DIR": f"{folder}/runs"}
        script = Path(folder) / "train.py"
        script.write_text(TRAIN)
        command = [sys.executable, str(script), str(seconds), str(step_ms)]
        trainer = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
        assert trainer.stdout is not None
        url = re.search(r"http://\S+", trainer.stdout.readline())
        assert url is not None
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=CHROMIUM, args=ARGS)
            page = browser.new_page()
            page.add_init_script(WATCH)
            page.goto(url[0])
            ends = [float(word) for word in trainer.stdout.readline().split()]
            seen: list[list[float]] = page.evaluate("seen")
            browser.close()
        trainer.wait()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and folder in _command(entry):
                os.kill(int(entry.name), 15)
        time.sleep(1)
    # "step N" on the page is N steps done: the N-th end. The first sights come with the page itself.
    latencies, done = [], int(seen[3][0])
    for step, at in seen[4:]:
        latencies += [at - end for end in ends[done : int(step)]]
        done = int(step)
    return latencies


def _command(entry: Path) -> str:
    try:
        return (entry / "cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def main() -> None:
    """Measure and print."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--seconds", type=float, default=40.0)
    ask.add_argument("--step-ms", type=float, default=20.0)
    ask.add_argument("--json", type=Path)
    options = ask.parse_args()
    found = sorted(measure(options.seconds, options.step_ms))
    figures: dict[str, Any] = {
        "steps": len(found),
        "latency_s_p50": round(statistics.median(found), 3),
        "latency_s_p95": round(found[int(0.95 * (len(found) - 1))], 3),
        "latency_s_max": round(found[-1], 3),
        "load": [round(value, 1) for value in os.getloadavg()],
    }
    print(json.dumps(figures, indent=1))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
