"""`torchvitals bridge`."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from batches import RUN, Training
from waiting import until

from monitor.cli import main
from monitor.pipeline import Pipeline


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A folder with one finished run."""
    pipeline, training = Pipeline(tmp_path / "runs"), Training()
    pipeline.take(training.start())
    pipeline.take(training.batch(100, training.end(), loss=1.0))
    pipeline.close()
    return tmp_path / "runs"


def test_a_finished_run_is_sent_and_the_command_ends(kept: Path, tmp_path: Path):
    """In a process of its own; status 0, nothing printed."""
    pytest.importorskip("tensorboard")
    words = ["bridge", "tensorboard", "latest", str(tmp_path / "logs")]
    done = subprocess.run(
        [sys.executable, "-m", "monitor", *words], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    [file] = (tmp_path / "logs").iterdir()
    assert b"torchvitals/run_loss" in file.read_bytes()


def test_a_live_run_is_followed_until_a_signal_comes(tmp_path: Path):
    """What comes later arrives, and the end is clean."""
    pytest.importorskip("tensorboard")
    pipeline, training = Pipeline(tmp_path / "runs"), Training()
    pipeline.take(training.start())
    pipeline.take(training.batch(100, loss=1.0))
    words = ["bridge", "tensorboard", RUN, str(tmp_path / "logs"), "--run-dir", str(tmp_path / "runs")]
    following = subprocess.Popen([sys.executable, "-m", "monitor", *words])
    try:
        until(lambda: b"run_loss" in sent(tmp_path / "logs"))
        pipeline.take(training.sample("user/0", later=1.0))
        until(lambda: b"torchvitals/later" in sent(tmp_path / "logs"))
        following.send_signal(signal.SIGTERM)
        assert following.wait(20) == 0
    finally:
        following.kill()
        following.wait()
        pipeline.close()


def sent(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("*")) if folder.exists() else b""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["tensorboard", "latest"], "LOGDIR"),
        (["mlflow", "latest", "logs"], "LOGDIR"),
        (["tensorboard", "nobody", "logs"], "torchvitals ls"),
    ],
)
def test_mistakes(kept: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str):
    """One line, status 2."""
    before = signal.getsignal(signal.SIGINT)
    assert main(["bridge", *words, "--run-dir", str(kept)]) == 2
    error = capsys.readouterr().err
    assert (says in error, error.count("\n")) == (True, 1)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_folder_that_cannot_be_written(kept: Path, capsys: pytest.CaptureFixture[str]):
    """One line, status 2."""
    pytest.importorskip("tensorboard")
    assert main(["bridge", "tensorboard", "latest", "/proc/no/logs", "--run-dir", str(kept)]) == 2
    error = capsys.readouterr().err
    assert ("tensorboard does not take the run" in error, error.count("\n")) == (True, 1)


@pytest.mark.parametrize("name", ["tensorboard", "mlflow", "wandb"])
def test_a_missing_library_is_named_with_what_installs_it(
    kept: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
):
    """The extra has the tool's name."""
    for loaded in [module for module in sys.modules if module.startswith(f"{name}.")]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"monitor.bridges.to_{name}", raising=False)
    folder = [str(kept / "logs")] if name == "tensorboard" else []
    assert main(["bridge", name, "latest", *folder, "--run-dir", str(kept)]) == 2
    error = capsys.readouterr().err
    assert (f"pip install 'torchvitals[{name}]'" in error, error.count("\n")) == (True, 1)
