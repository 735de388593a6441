"""`torchvitals run`: the script is the script's, whatever happens to it; and it is told of afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from monitor.cli.run import called

TRAIN = """
import os, sys, time
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(640, 8), torch.randn(640, 1))
model = nn.Linear(8, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for step, (x, y) in enumerate(DataLoader(data, batch_size=16)):
    opt.zero_grad()
    loss = (model(x) - y).pow(2).mean()
    loss.backward()
    opt.step()
    print(step, f"{loss.item():.9f}")
    if step == 20:
        END
print("weights", model.weight.detach().numpy().tobytes().hex(), sys.argv[1:], __name__, __file__)
"""


def script(tmp_path: Path, end: str = "pass") -> Path:
    """A small training script that does `end` at its 21st step."""
    path = tmp_path / "train.py"
    path.write_text(TRAIN.replace("END", end))
    return path


def run(command: list[str], **kwargs: Any) -> subprocess.CompletedProcess[str]:
    """Run to the end."""
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **kwargs)


def monitored(path: Path, *args: str) -> list[str]:
    """The command line with the monitor in front."""
    return [sys.executable, "-m", "monitor", "run", "--no-dashboard", *args, str(path)]


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("pass", 0),
        ("sys.exit(3)", 3),
        ("raise ValueError('planted')", 1),
        ("os.kill(os.getpid(), 15); time.sleep(9)", -15),
        ("os.kill(os.getpid(), 9)", -9),
        ("os._exit(7)", 7),
    ],
)
def test_streams_and_status_are_the_scripts_own(tmp_path: Path, end: str, status: int) -> None:
    """Same stdout, same exit status, same traceback, whatever ends the script."""
    path = script(tmp_path, end)
    bare = run([sys.executable, str(path)])
    ours = run(monitored(path))
    assert ours.stdout == bare.stdout
    assert (ours.returncode, bare.returncode) == (status, status)
    assert ours.stderr.startswith(bare.stderr)


def test_arguments_reach_the_script_untouched(tmp_path: Path) -> None:
    """What follows the script's name is the script's, even where it looks like an option of ours."""
    path = script(tmp_path)
    words = ["--json", "x", "--name=y", "-h"]
    ours = run([*monitored(path), *words])
    assert ours.stdout == run([sys.executable, str(path), *words]).stdout


@pytest.mark.parametrize(
    ("end", "status", "name"),
    [("pass", "finished", None), ("os.kill(os.getpid(), 9)", "killed", "SIGKILL"), ("1/0", "crashed", None)],
)
def test_the_report_tells_the_truth_about_the_end(
    tmp_path: Path, end: str, status: str, name: str | None
) -> None:
    """Finished, killed or crashed: the report is there at once, with the signal and the last step."""
    out = tmp_path / "report.json"
    run(monitored(script(tmp_path, end), "--json", str(out)))
    report = json.loads(out.read_text())
    assert report["status"] == status
    assert report["exit"]["signal"] == name
    assert abs(report["steps"] - (40 if status == "finished" else 21)) <= 1


def test_a_script_that_never_trains_is_reported_too(tmp_path: Path) -> None:
    """It fails before the first step: crashed, no steps, nothing invented."""
    path = tmp_path / "early.py"
    path.write_text("raise SystemExit('no data')\n")
    out = tmp_path / "report.json"
    done = run(monitored(path, "--json", str(out)))
    report = json.loads(out.read_text())
    assert (done.returncode, report["status"], report["steps"]) == (1, "crashed", 0)
    assert report["throughput"]["steps_per_s"] is None


def test_a_signal_to_the_command_reaches_the_script(tmp_path: Path) -> None:
    """SIGTERM and SIGINT sent to the command end the script as if sent to it."""
    for number in (signal.SIGTERM, signal.SIGINT):
        path = script(tmp_path, "print('here', flush=True); time.sleep(60)")
        # A shell that starts tests in the background lets them ignore SIGINT; a script's user does not.
        with subprocess.Popen(
            monitored(path),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line == "here\n":
                    break
            process.send_signal(number)
            try:
                process.communicate(timeout=60)
            finally:
                process.kill()
        assert process.returncode == -number


def test_nothing_of_ours_stays_behind(tmp_path: Path, own_state: Path) -> None:
    """Without a dashboard the agent ends with the run and takes its spool along."""
    run(monitored(script(tmp_path)))
    until(lambda: not list((own_state / "spool").iterdir()), "an empty spool")


@pytest.mark.parametrize(
    ("args", "said"),
    [(["nowhere.py"], "no such script"), (["--run-dir", "/proc/none", "train.py"], "monitoring is off")],
)
def test_a_mistake_gets_one_line(tmp_path: Path, args: list[str], said: str) -> None:
    """No traceback; what is wrong and what to do."""
    script(tmp_path)
    done = run([sys.executable, "-m", "monitor", "run", *args], cwd=tmp_path)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_off_means_off(tmp_path: Path, own_state: Path) -> None:
    """MONITOR=off runs the script and nothing else."""
    done = run(monitored(script(tmp_path)), env={**os.environ, "MONITOR": "off"})
    assert (done.returncode, done.stderr) == (0, "")
    assert not own_state.exists()


def test_ranks_are_read_as_their_launcher_tells_them(tmp_path: Path, own_state: Path) -> None:
    """Open MPI's as well: the second rank leaves its own exit status, and the summary to the first."""
    told = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
    done = run(monitored(script(tmp_path)), env={**os.environ, **told})
    assert done.returncode == 0
    assert "finished" not in done.stderr
    (spool,) = (own_state / "spool").iterdir()
    assert json.loads((spool / "exit-1.json").read_text()) == {"code": 0, "signal": None}


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["jobs/train.py", "--from", "old.py"], "train"),
        (["/venv/bin/torchrun", "--nproc-per-node", "2", "jobs/train.py", "--lr", "1"], "train"),
        (["/venv/bin/torchrun", "-m", "jobs.train"], "torchrun"),
        (["tool"], "tool"),
    ],
)
def test_a_run_is_called_after_the_script_that_trains(words: list[str], name: str) -> None:
    """Also where a launcher starts it."""
    assert called(words[0], words[1:]) == name


def test_training_whose_steps_nothing_counts_is_told_how_to_count_them(tmp_path: Path) -> None:
    """Weights written through `.data` leave no trace: no step is invented, and the remedy is said."""
    path = script(tmp_path)
    path.write_text(
        "import torch\n"
        "weight = torch.nn.Linear(8, 1)\n"
        "for _ in range(60):\n"
        "    weight.zero_grad()\n"
        "    weight(torch.ones(4, 8)).sum().backward()\n"
        "    for each in weight.parameters():\n"
        "        each.data -= 0.1 * each.grad\n"
    )
    found = tmp_path / "report.json"
    done = run(monitored(path, "--json", str(found)))
    assert done.returncode == 0, done.stderr
    report = json.loads(found.read_text())
    assert report["steps"] == 0
    assert report["verdict"]["key"] == "finished_uncounted"
