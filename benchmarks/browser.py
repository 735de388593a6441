"""What the page costs the browser, and how soon it tells something.

    python benchmarks/browser.py [--quick] [--large] [--loads N] [--seconds S] [--json FILE]

A real hub is fed an invented run: batches twice a second while the page is watched, so that every
chart is drawn at the highest rate there is. Then, for the heap, each batch carries a minute of the
run, so that two minutes of watching are hours of training. --large: the run has STEPS steps already and
RUNS others are listed.

| figure | how |
| --- | --- |
| tiles_ms | from the page request until tiles and verdict stand there, median over cold loads |
| charts_ms | … until every chart on screen is drawn once |
| latency_ms | from a batch's arrival at the hub until its step number is in the page, p50 and p95 |
| long_tasks | main-thread tasks over 50 ms after the first drawing of all charts (PerformanceObserver) |
| long_tasks_cpu | tasks over 50 ms in CPU time: what is left of them on a machine with nothing else to do |
| task_cpu_ms_max | the longest main-thread task in CPU time |
| cpu_share | CPU time of the page's main thread ÷ wall time: no busy neighbour adds to it |
| load | the machine's load average (1 min) while it was watched, before and after |
| list_ms | from the request of the runs page until runs stand in it, median over cold loads |
| list_long_tasks | main-thread tasks over 50 ms meanwhile, in a search, and on the way to the end, in ms |
| list_tasks_cpu_ms | the longest of its main-thread tasks in CPU time |
| zoom_ms | from a range in the address until the charts show it, for ranges of ZOOMS shares of the run |
| heap_mb | JavaScript heap after a collection, at even distances; `heap_slope_mb_per_min` is its trend |
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from finished_runs import finding, keep, steps
from simulated_run import PlayedHub, PlayedRun

CHROMIUM = "/usr/bin/chromium"
ARGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
SCREEN = {"width": 1440, "height": 900}
#: Seconds between two batches: the hub sends at most twice a second.
EVERY_S = 0.5
HEAP_SAMPLES = 8
#: A long training, and many of them.
STEPS, RUNS = 10_000_000, 500
ZOOMS = (0.5, 0.01, 0.0001)
#: What the browser itself calls a long task.
LONG_MS = 50.0

#: Notes when what is on the screen, and every long task.
WATCH = """
window.seen = { long: [], steps: [] };
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) seen.long.push([task.startTime, task.duration]);
}).observe({ type: 'longtask', buffered: true });
const text = (selector) => document.querySelector(selector)?.textContent ?? '';
const judged = () => document.querySelector('.verdict:not([data-tone=waiting])');
let last = '';
const look = () => {
  const numbers = text('[data-tile=steps_per_s] .number');
  if (!seen.tiles && numbers && numbers !== '–' && judged()) {
    seen.tiles = performance.now();
  }
  const drawn = [...document.querySelectorAll('.canvas')].filter((canvas) => canvas.data).length;
  if (!seen.charts && drawn >= 7) seen.charts = performance.now();
  const step = text('.fact .number');
  if (!seen.list && document.querySelector('.runs tbody tr')) seen.list = performance.now();
  if (step !== last) seen.steps.push([Number(step.replace(/\\D/g, '')), Date.now()]);
  last = step;
  requestAnimationFrame(look);
};
look();
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three loads and a few seconds each")
    parser.add_argument("--large", action="store_true", help=f"{STEPS:,} steps and {RUNS} other runs before")
    parser.add_argument("--loads", type=int, default=7, help="cold page loads")
    parser.add_argument("--seconds", type=float, default=60.0, help="watched at 2 Hz, and again for the heap")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    if options.quick:
        options.loads, options.seconds = 3, 10.0
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        hub = PlayedHub(Path(folder))
        run = PlayedRun(hub)
        if options.large:
            grown(hub, run)
        run.play(300)
        path = CHROMIUM if Path(CHROMIUM).exists() else None
        browser = playwright.chromium.launch(executable_path=path, args=ARGS)
        figures = {
            **loads(browser, hub, options.loads),
            **(listed(browser, hub, options.loads) if options.large else {}),
            **zoomed(browser, hub, run),
            **watched(browser, hub, run, options.seconds),
            **heap(browser, hub, run, options.seconds),
        }
        browser.close()
        hub.stop()
    text = json.dumps(figures, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text)


def grown(hub: PlayedHub, run: PlayedRun) -> None:
    """A run that has trained for long, beside many that are over."""
    for number in range(RUNS):
        keep(
            hub.run_dir,
            f"20260101-{number:06}-run-{number:04x}",
            steps(200, seed=number),
            findings=[finding()],
        )
    run.skip(STEPS)


def loads(browser: Browser, hub: PlayedHub, count: int) -> dict[str, Any]:
    """Cold loads: a new context each time, so that nothing is cached."""
    tiles, charts = [], []
    for _ in range(count):
        page = opened(browser, hub)
        tiles.append(page.evaluate("() => seen.tiles"))
        charts.append(page.evaluate("() => seen.charts"))
        page.context.close()
    return {
        "tiles_ms": round(statistics.median(tiles)),
        "tiles_ms_worst": round(max(tiles)),
        "charts_ms": round(statistics.median(charts)),
    }


def listed(browser: Browser, hub: PlayedHub, count: int) -> dict[str, Any]:
    """The list of all runs, and a search in it."""
    shown, tasks, long_ms = [], [], []
    for _ in range(count):
        page = visitor(browser, hub)
        page.add_init_script(WATCH)
        browser.start_tracing(page=page, categories=["toplevel", "__metadata"])
        page.goto(address(hub, "#/runs"))
        page.wait_for_function("() => seen.list", timeout=60_000)
        page.keyboard.press("/")
        page.keyboard.type("run-01f3", delay=50)
        page.wait_for_function("() => document.querySelectorAll('.runs tbody tr').length === 1")
        page.get_by_label("Search runs").fill("")
        for _ in range(RUNS // 50):
            page.mouse.wheel(0, 5000)
            page.wait_for_timeout(100)
        tasks += main_thread_ms(browser.stop_tracing())
        shown.append(page.evaluate("() => seen.list"))
        long_ms += [round(duration) for _, duration in page.evaluate("() => seen.long")]
        page.context.close()
    return {
        "list_ms": round(statistics.median(shown)),
        "list_long_tasks": sorted(long_ms),
        "list_tasks_cpu_ms": round(max(tasks)),
    }


def zoomed(browser: Browser, hub: PlayedHub, run: PlayedRun) -> dict[str, Any]:
    """Charts of a part of the run, from its permalink."""
    taken = {}
    for share in ZOOMS:
        end = run.t_s * (0.5 + share / 2)
        place = f"#/run/{run.run}?from={end - run.t_s * share:.1f}&to={end:.1f}"
        page = opened(browser, hub, place)
        taken[f"{share:g}"] = round(page.evaluate("() => seen.charts"))
        page.context.close()
    return {"zoom_ms": taken}


def watched(browser: Browser, hub: PlayedHub, run: PlayedRun, seconds: float) -> dict[str, Any]:
    """Two updates a second, every chart drawn at each."""
    page = opened(browser, hub)
    page.wait_for_timeout(1000)
    page.evaluate("() => { seen.long.length = 0; seen.steps.length = 0; }")
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    load = os.getloadavg()[0]
    browser.start_tracing(page=page, categories=["toplevel", "__metadata"])
    before, began = busy_s(session), time.monotonic()
    sent = feed(page, run, seconds, rows=1)
    tasks_ms = main_thread_ms(browser.stop_tracing())
    share = (busy_s(session) - before) / (time.monotonic() - began)
    long_ms = sorted(duration for _, duration in page.evaluate("() => seen.long"))
    shown = dict(page.evaluate("() => seen.steps"))
    late = sorted(shown[step] - unix_ms for step, unix_ms in sent.items() if step in shown)
    page.context.close()
    return {
        "updates": len(sent),
        "latency_ms": {"p50": round(late[len(late) // 2]), "p95": round(late[int(0.95 * (len(late) - 1))])},
        "long_tasks": len(long_ms),
        "long_tasks_ms": [round(duration) for duration in long_ms[-5:]],
        "long_tasks_cpu": sum(task > LONG_MS for task in tasks_ms),
        "task_cpu_ms_max": round(max(tasks_ms)),
        "cpu_share": round(share, 3),
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
    }


def heap(browser: Browser, hub: PlayedHub, run: PlayedRun, seconds: float) -> dict[str, Any]:
    """A minute of training with each update."""
    page = opened(browser, hub)
    session = page.context.new_cdp_session(page)
    sizes: list[float] = []
    began = run.t_s
    for _ in range(HEAP_SAMPLES):
        feed(page, run, seconds / HEAP_SAMPLES, rows=60)
        session.send("HeapProfiler.collectGarbage")
        sizes.append(session.send("Runtime.getHeapUsage")["usedSize"] / 1e6)
    page.context.close()
    later = sizes[2:]  # the first samples still fill what is bounded
    minutes = [i * seconds / HEAP_SAMPLES / 60 for i in range(len(later))]
    slope = statistics.linear_regression(minutes, later).slope
    return {
        "heap_mb": [round(size, 1) for size in sizes],
        "heap_slope_mb_per_min": round(slope, 2),
        "heap_trained_min": round((run.t_s - began) / 60),
    }


def opened(browser: Browser, hub: PlayedHub, place: str = "") -> Page:
    """The page of the run, each chart drawn once."""
    page = visitor(browser, hub)
    page.add_init_script(WATCH)
    page.goto(address(hub, place))
    page.wait_for_function("() => seen.charts", timeout=60_000)
    return page


def visitor(browser: Browser, hub: PlayedHub) -> Page:
    """An empty page with nothing cached. The cookie is there before, so no redirect counts."""
    context = browser.new_context(viewport=SCREEN)
    context.request.get(hub.url())
    return context.new_page()


def address(hub: PlayedHub, place: str) -> str:
    """A place on the hub's page, for whoever has the cookie."""
    return hub.url().split("?")[0] + place


def feed(page: Page, run: PlayedRun, seconds: float, rows: int) -> dict[int, float]:
    """Batches for so long. Returns step -> when the hub got it, in unix ms."""
    sent = {}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        due = time.monotonic() + EVERY_S
        run.play(rows)
        sent[run.steps] = time.time() * 1e3
        page.wait_for_timeout(max(0.0, due - time.monotonic()) * 1e3)
    return sent


def main_thread_ms(trace: bytes) -> list[float]:
    """CPU time of each task of the pages' main threads."""
    events = json.loads(trace)["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"].get("name") for e in events if e["name"] == "thread_name"}
    ours = {thread for thread, name in names.items() if name == "CrRendererMain"}
    tasks = [e for e in events if e["name"].endswith("RunTask") and (e["pid"], e["tid"]) in ours]
    return [task["tdur"] / 1e3 for task in tasks if "tdur" in task]


def busy_s(session: CDPSession) -> float:
    """CPU seconds that the page's main thread has taken."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


if __name__ == "__main__":
    main()
