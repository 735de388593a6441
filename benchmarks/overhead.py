"""What the monitor costs the training process, and what its own processes take.

    python benchmarks/overhead.py [--quick] [--rivals] [--repeats N] [--json FILE]

The bare loop, `attach` and `run` (dashboard on) take turns, each in a process of its own, so that a
machine that is busy for a while is busy for all of them. A process reports the median over chunks of
100 steps; the figures are medians over processes. Read ratios and differences, not third digits.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TRAINEE = HERE / "trainee.py"
#: Rival -> what is installed, and the command that starts a script under it.
RIVALS = {
    "traceml": (["traceml-ai"], ["{bin}/traceml", "run", "{script}", "--args"]),
    "gpuprof": (["gpuprof[server,host]"], ["{bin}/python", "{script}"]),
}
MB = 1024 * 1024
TICK_S = 1 / os.sysconf("SC_CLK_TCK")

Result = dict[str, Any]


class Bench:
    """A state folder of its own, the processes started from it, and how to end them."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="overhead-"))
        self.env = {
            **os.environ,
            "MONITOR_STATE_DIR": str(self.folder / "state"),
            "MONITOR_RUN_DIR": str(self.folder / "runs"),
        }
        self.env.pop("MONITOR", None)

    def train(self, how: str, loop: str, steps: int) -> Result:
        """One training process; `how` as in trainee.py, or `run`."""
        words = [str(TRAINEE), "bare" if how == "run" else how, loop, str(steps)]
        return self.start([sys.executable, *(["-m", "monitor", "run"] if how == "run" else []), *words])

    def start(self, command: list[str]) -> Result:
        """Run a command from the state folder; its last line of JSON."""
        done = subprocess.run(command, env=self.env, cwd=self.folder, capture_output=True, text=True)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode or not lines:
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
        return dict(json.loads(lines[-1]))

    def helpers(self) -> dict[int, str]:
        """Our own processes, by process id: those that were given this state folder and run our commands."""
        mark = f"MONITOR_STATE_DIR={self.env['MONITOR_STATE_DIR']}".encode()
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            words = read(folder / "cmdline").split(b"\0")
            command = next((word.decode() for word in words if word in (b"agent", b"serve")), None)
            if command and mark in read(folder / "environ").split(b"\0"):
                found[int(folder.name)] = command
        return found

    def _ended(self) -> bool:
        """Ask again until none is left: an agent that has steps to hand over starts a hub that is gone."""
        for pid in self.helpers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        return not self.helpers()

    def close(self) -> None:
        """End the hub and any agent that is left, and forget what was recorded."""
        wait_for(self._ended, 30)
        shutil.rmtree(self.folder, ignore_errors=True)


def read(path: Path) -> bytes:
    """What a file of /proc says; nothing where the process is gone or another user's."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def pss_mb(pid: int) -> float:
    """Proportional memory of a process in MB."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(text.split("\nPss:")[1].split()[0]) / 1024


def cpu_s(pid: int) -> float:
    """CPU seconds a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def median(values: list[float]) -> float:
    """The median."""
    return statistics.median(values)


def per_step(bench: Bench, loop: str, repeats: int, steps: int) -> Result:
    """Microseconds a step, bare, attached and under `run`, and what the monitored ones add."""
    rounds: dict[str, list[Result]] = {"bare": [], "attach": [], "run": []}
    for number in range(repeats):
        order = list(rounds) if number % 2 else list(reversed(rounds))
        for how in order:
            rounds[how].append(bench.train(how, loop, steps))
    return compared(rounds)


def compared(rounds: dict[str, list[Result]]) -> Result:
    """Medians of each kind of process, and the differences from the bare one.

    On a quiet machine wall and CPU time agree. On a busy one believe the CPU time: the wall also holds
    what other processes took.
    """
    wall, cpu = of_each(rounds, "step_s"), of_each(rounds, "step_cpu_s")
    rss = {how: median([r["rss_mb"] for r in results]) for how, results in rounds.items()}
    result: Result = {"bare_us": median(wall["bare"]), "bare_cpu_us": median(cpu["bare"])}
    for how in rounds:
        if how != "bare":
            result[how] = {
                "added_us": median(wall[how]) - median(wall["bare"]),
                "added_us_best": min(wall[how]) - min(wall["bare"]),
                "added_cpu_us": median(cpu[how]) - median(cpu["bare"]),
                "added_cpu_us_best": min(cpu[how]) - min(cpu["bare"]),
                "ratio": median(wall[how]) / median(wall["bare"]),
                "extra_rss_mb": rss[how] - rss["bare"],
            }
    attach = [r["attach_s"] for r in rounds.get("attach", [])]
    if attach:
        result["attach_s"] = {"first": attach[0], "median": median(attach), "max": max(attach)}
    return result


def of_each(rounds: dict[str, list[Result]], key: str) -> dict[str, list[float]]:
    """Microseconds a step of each process: the median over its chunks."""
    return {how: [median(r[key]) * 1e6 for r in results] for how, results in rounds.items()}


def helpers(bench: Bench, seconds: float, rate: int) -> Result:
    """Memory and CPU of agent and hub while a loop of `rate` steps a second is looked at by nobody."""
    words = [sys.executable, str(TRAINEE), "attach", "tensors", str(seconds + 15), str(rate)]
    wait_for(lambda: "agent" not in bench.helpers().values(), 30)  # the last run's
    trainee = subprocess.Popen(words, env=bench.env, stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: set(bench.helpers().values()) == {"agent", "serve"}, 60)
        time.sleep(10)  # past their start, which is not what lasts
        found = bench.helpers()
        before = {pid: cpu_s(pid) for pid in found}
        began = time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        result: Result = {"seconds": took, "pss_mb": 0.0, "cpu_percent": 0.0}
        for pid, command in found.items():
            pss, cpu = pss_mb(pid), 100 * (cpu_s(pid) - before[pid]) / took
            result[command] = {"pss_mb": pss, "cpu_percent": cpu}
            result["pss_mb"] += pss
            result["cpu_percent"] += cpu
        return result
    finally:
        trainee.wait()


def wait_for(condition: Any, seconds: float) -> None:
    """Until the condition holds. Raises SystemExit after `seconds`."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise SystemExit("agent and hub did not start, or did not end")
        time.sleep(0.2)


def lost(bench: Bench, seconds: float) -> Result:
    """Records lost at 5,000 steps a second: what the script counted against what the report says."""
    report = bench.folder / "lost.json"
    words = [str(TRAINEE), "bare", "tensors", str(seconds), "5000"]
    truth = bench.start([sys.executable, "-m", "monitor", "run", "--json", str(report), *words])
    said = json.loads(report.read_text())
    return {
        "steps": truth["steps"],
        "steps_per_s": truth["steps"] / truth["wall_s"],
        "missing": truth["steps"] - said["steps"],
        "dropped_records": said["dropped_records"],
    }


def import_ms(repeats: int) -> float:
    """Milliseconds that `import monitor` takes, measured inside a new interpreter."""
    code = "import time; t = time.perf_counter(); import monitor; print((time.perf_counter() - t) * 1e3)"
    times = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True) for _ in range(repeats)
    ]
    return median([float(run.stdout) for run in times])


def rivals(bench: Bench, loop: str, repeats: int, steps: int) -> Result:
    """The same loop under other monitors, each against the bare loop in the same environment."""
    results: Result = {}
    for name, (packages, command) in RIVALS.items():
        home = bench.folder / name
        venv.create(home, with_pip=False, symlinks=True)
        borrow(home)
        pip = [sys.executable, "-m", "pip", "--quiet", "--python", str(home / "bin/python")]
        subprocess.run([*pip, "install", *packages], check=True)
        words = [word.format(bin=home / "bin", script=TRAINEE) for word in command]
        rounds: dict[str, list[Result]] = {"bare": [], name: []}
        for _ in range(repeats):
            rounds["bare"].append(
                bench.start([str(home / "bin/python"), str(TRAINEE), "bare", loop, str(steps)])
            )
            rounds[name].append(bench.start([*words, name, loop, str(steps)]))
        results[name] = compared(rounds)
    return results


def borrow(home: Path) -> None:
    """Let an environment see the packages of this one (torch is large), its own first."""
    site = next((home / "lib").glob("python*/site-packages"))
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib"))


def main() -> None:
    """Measure, print, and write as JSON where asked."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--quick", action="store_true", help="fewer steps and repeats; for a first look")
    ask.add_argument(
        "--rivals", action="store_true", help="install traceml-ai and gpuprof and measure them too"
    )
    ask.add_argument("--repeats", type=int, help="processes of each kind (default 9, quick 3)")
    ask.add_argument("--json", type=Path, help="write the figures there")
    args = ask.parse_args()
    repeats = args.repeats or (3 if args.quick else 9)
    steps = 3_000 if args.quick else 8_000
    bench = Bench()
    figures: Result = {"python": sys.version.split()[0], "cpus": os.cpu_count(), "repeats": repeats}
    try:
        for name, measure in {
            "import_ms": lambda: import_ms(max(repeats, 7)),
            "loader": lambda: per_step(bench, "loader", repeats, steps),
            "tensors": lambda: per_step(bench, "tensors", repeats, steps),
            "helpers_50": lambda: helpers(bench, 5 if args.quick else 30, 50),
            "helpers_5000": lambda: helpers(bench, 5 if args.quick else 30, 5000),
            "lost": lambda: lost(bench, 5 if args.quick else 60),
            **({"rivals": lambda: rivals(bench, "loader", repeats, steps)} if args.rivals else {}),
        }.items():
            figures[name] = measure()
            print(json.dumps({name: figures[name]}, indent=1), flush=True)
            if args.json:
                args.json.write_text(json.dumps(figures, indent=1))
    finally:
        bench.close()


if __name__ == "__main__":
    main()
