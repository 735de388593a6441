"""attach(): returns at once, changes nothing, and can be taken back."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from monitor.process_end import watch_exceptions
from monitor.session import Session

LOOP = """
import hashlib, sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
ATTACH = {attach}
torch.manual_seed(0)
torch.set_num_threads(1)
data = TensorDataset(torch.randn(320, 8), torch.randn(320, 1))
model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.1), nn.Linear(16, 1))
opt = torch.optim.Adam(model.parameters(), lr=0.01)
if ATTACH:
    import monitor
    session = monitor.attach(model, dashboard=False, name="here")
    again = monitor.attach(model)
    assert again is session
losses = []
for epoch in range(3):
    for x, y in DataLoader(data, batch_size=16, shuffle=True, num_workers={workers}):
        opt.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        opt.step()
        losses.append(loss.item())
if ATTACH:
    session.detach()
state = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
print(hashlib.md5(state + repr(losses).encode()).hexdigest())
"""


def train(attach: bool, workers: int) -> subprocess.CompletedProcess[str]:
    """The loop in a process of its own, warnings being errors."""
    code = LOOP.format(attach=attach, workers=workers)
    command = [sys.executable, "-W", "error::UserWarning", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("workers", [0, 2])
def test_losses_and_weights_are_bit_identical(workers: int) -> None:
    """With and without, to the last bit; and not a word on stderr."""
    ours, bare = train(True, workers), train(False, workers)
    assert ours.stdout == bare.stdout
    assert len(ours.stdout.strip()) == len(hashlib.md5(b"").hexdigest())
    assert ours.stderr == ""


def test_a_folder_that_cannot_be_written_turns_monitoring_off(tmp_path: Path) -> None:
    """One line, no exception, the same result."""
    code = LOOP.format(attach=True, workers=0).replace('"here"', '"here", run_dir="/proc/none"')
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={"MONITOR_STATE_DIR": str(blocked / "below"), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
    assert "monitoring is off" in done.stderr


def test_an_unknown_target_says_what_is_supported() -> None:
    """A TypeError that names what attach takes, before anything was started."""
    import monitor

    with pytest.raises(TypeError, match=r"nn\.Module"):
        monitor.attach(object())


def test_an_unknown_option_says_which_there_are() -> None:
    """A TypeError that lists the options."""
    import monitor

    with pytest.raises(TypeError, match="stall_after_s"):
        monitor.attach(stall_after=3)


def test_a_failure_is_noted_though_a_signal_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch raises from a signal's handler when a worker dies, wherever the main thread is: here as well."""
    said: list[object] = []

    class Probe:
        def failed(self, kind: type[BaseException], error: BaseException) -> None:
            said.append(error)
            if len(said) == 1:
                raise RuntimeError("DataLoader worker is killed")

        def finish(self, **end: object) -> None:
            said.append(end["reason"])

    session = Session()
    session._probe = Probe()  # type: ignore[assignment]
    monkeypatch.setattr(sys, "excepthook", lambda *_: said.append("previous"))
    watch_exceptions(session)
    error = ConnectionResetError("gone")
    sys.excepthook(ConnectionResetError, error, None)
    assert said == [error, error, "ConnectionResetError: gone", "previous"]
