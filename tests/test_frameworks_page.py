"""docs/frameworks.md: its examples run as they stand, where the framework is installed."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sources import ROOT

from monitor.probe.adapters import adapters

PAGE = (ROOT / "docs/frameworks.md").read_text()
#: What every example may take for granted, and what those of one framework may.
PRELUDE = """
import torch, warnings
warnings.simplefilter("ignore")
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)
data = TensorDataset(torch.randn(24, 4), torch.randint(0, 2, (24,)))
model, loss_fn = nn.Linear(4, 2), nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(data, batch_size=4)
"""
OF_ITS_OWN = {
    "lightning": """
import lightning.pytorch
class Module(lightning.pytorch.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = model
    def training_step(self, batch, index):
        return loss_fn(self.model(batch[0]), batch[1])
    def configure_optimizers(self):
        return optimizer
module = Module()
""",
    "transformers": """
from transformers import TrainingArguments
class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)
    def forward(self, x, labels):
        return {"loss": loss_fn(self.net(x), labels)}
model = Classifier()
dataset = [{"x": x, "labels": y} for x, y in data]
arguments = TrainingArguments("out", per_device_train_batch_size=4, num_train_epochs=2, report_to=[],
                              save_strategy="no", use_cpu=True)
""",
    "fastai": """
from fastai.data.core import DataLoaders
from fastai.data.load import DataLoader as Load
dls = DataLoaders(Load(data, bs=4), Load(data, bs=4))
""",
}
#: Package of an example -> steps that it takes.
STEPS = {"lightning": 12, "transformers": 12, "accelerate": 3, "ignite": 12, "fastai": 12, "keras": 12, "": 6}
AFTER = """
from monitor import session as _session
_session._current.detach()
print("steps", _steps[-1])
"""
COUNTING = """
from monitor.probe import recorder as _recorder
_steps, _make = [], _recorder.Recorder._make_end_step
def _counted(self):
    end = _make(self)
    def counted(*args):
        end(*args)
        _steps.append(self.steps)
    return counted
_recorder.Recorder._make_end_step = _counted
"""


def examples() -> list[tuple[str, str]]:
    """(package, code) of each example; the package is "" where none is needed but torch."""
    known = "|".join(name for name in STEPS if name)
    found = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    packages = [re.search(rf"^(?:import|from) ({known})\b", code, re.MULTILINE) for code in found]
    return [(match[1] if match else "", code) for match, code in zip(packages, found, strict=True)]


@pytest.mark.parametrize(("package", "code"), examples())
def test_an_example_runs_and_counts_its_steps(package: str, code: str, tmp_path: Path) -> None:
    """It runs without a word from us, and as many steps are seen as it takes."""
    if package and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    program = PRELUDE + OF_ITS_OWN.get(package, "") + COUNTING + code + AFTER
    (tmp_path / "example.py").write_text(program)
    quiet = {"MONITOR_DASHBOARD": "off", "HF_HUB_OFFLINE": "1", "KERAS_BACKEND": "torch"}
    command = [sys.executable, "example.py"]
    env = {**os.environ, **quiet}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, done.stderr
    assert "torchvitals:" not in done.stderr
    assert done.stdout.splitlines()[-1] == f"steps {STEPS[package]}"


def test_every_framework_has_an_example_of_a_few_lines() -> None:
    """One for each adapter, of five lines without the loop that is the user's own."""
    packages = {package for package, _ in examples()}
    for adapter in adapters():
        assert packages & set(adapter.PACKAGES)
    assert max(len(code.split("for ")[0].split()) for _, code in examples()) < 60


def test_every_adapter_is_named_with_its_version() -> None:
    """The table holds what the adapters say."""
    for adapter in adapters():
        name = adapter.__name__.rpartition(".")[2]  # type: ignore[attr-defined]
        version = ".".join(map(str, adapter.MIN_VERSION))
        assert re.search(rf"\| `{name}` \| {re.escape(version)} \|", PAGE)
