"""Follow what a finding advises, run again, and read on the compare page whether its promise came true.

    python benchmarks/promises.py ZOO [--only NAME …] [--keep DIR]

ZOO is a folder of training scripts with a planted fault each, whose repaired twin runs with ZOO_FIX=1. Each
is run as it is and repaired, both under `torchvitals run`; a hub then shows the two side by side, and what
stands here was read from its page in Chromium. Pictures of the pages are left in DIR.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from browser import ARGS, CHROMIUM, address, visitor
from simulated_run import PlayedHub

from monitor import runs

#: One cause each: loader, logging, checkpoints, threads, number format, two ranks.
USUAL = (
    "starve_io_w0",
    "logging_slow_sink",
    "ckpt_every_step",
    "threads_16_on_2",
    "no_amp_cnn",
    "ddp_accum_sync_each",
)


def main() -> None:
    """Run, compare, print a table."""
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("zoo", type=Path)
    ask.add_argument("--only", nargs="+", default=USUAL)
    ask.add_argument("--keep", type=Path, help="runs and pictures")
    args = ask.parse_args()
    known = json.loads((args.zoo / "expected.json").read_text())
    keep = (args.keep or Path(tempfile.mkdtemp(prefix="promises-"))).resolve()
    run_dir = keep / "runs"
    pairs = {
        name: [run(args.zoo, known[f"{name}.py"]["launch"], run_dir, fix) for fix in "01"]
        for name in args.only
    }
    hub = PlayedHub(run_dir)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        print("| script | finding | promised | reached | the page says |\n| --- | --- | --- | --- | --- |")
        for name, (before, after) in pairs.items():
            for row in told(browser, hub, f"#/compare/{before},{after}", keep / f"{name}.png"):
                print(f"| {name} | {' | '.join(row)} |", flush=True)
        browser.close()
    hub.stop()
    print(f"\npictures and runs: {keep}")


def run(zoo: Path, launch: str, run_dir: Path, fix: str) -> str:
    """Run a script of the zoo, as its launch line says, under the monitor; the id of its run."""
    words, env = shlex.split(launch), {**os.environ, "ZOO_FIX": fix}
    while "=" in words[0]:
        name, _, env[name] = words.pop(0).partition("=")
    at = next(i for i, word in enumerate(words) if word.endswith(".py"))
    head = ["-m", "torch.distributed.run", *words[1:at]] if words[0] == "torchrun" else words[1:at]
    watched = ["-m", "monitor", "run", "--no-dashboard", "--run-dir", str(run_dir), *words[at:]]
    subprocess.run([sys.executable, *head, *watched], cwd=zoo, env=env, check=True, capture_output=True)
    return runs.folders(run_dir)[0].name


def told(browser: Browser, hub: PlayedHub, place: str, picture: Path) -> list[list[str]]:
    """What the page says of each promise: finding, promised, reached, verdict."""
    page = visitor(browser, hub)
    page.goto(address(hub, place))
    rows = page.locator(".promises tbody tr")
    rows.first.wait_for()
    found = [row.locator("th, td").all_inner_texts() for row in rows.all()]
    page.screenshot(path=picture, full_page=True)
    page.context.close()
    return [[" ".join(cell.split()) for cell in row] for row in found]


if __name__ == "__main__":
    main()
