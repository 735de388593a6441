"""Which adapter takes which target, and what is said where none does. No framework is needed here."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

from monitor.probe import adapters


def made(name: str, module: str) -> Any:
    """An object whose class is called so, and one that descends from it in the user's own module."""
    base = type(name, (), {"__module__": module})
    return type("Mine", (base,), {"__module__": "train"})()


@pytest.mark.parametrize(
    ("target", "adapter"),
    [
        (made("Trainer", "lightning.pytorch.trainer.trainer"), "lightning"),
        (made("Trainer", "pytorch_lightning.trainer.trainer"), "lightning"),
        (made("Trainer", "transformers.trainer"), "huggingface"),
        (made("Accelerator", "accelerate.accelerator"), "accelerate"),
        (made("Engine", "ignite.engine.engine"), "ignite"),
        (made("Learner", "fastai.learner"), "fastai"),
    ],
)
def test_a_target_is_known_by_its_class_and_by_what_it_descends_from(target: Any, adapter: str) -> None:
    """By names alone: the framework itself is not looked at."""
    assert adapters.find(target).__name__.rpartition(".")[2] == adapter


@pytest.mark.parametrize(
    "target", [object(), made("Trainer", "transformersx.trainer"), made("Trainer", "mine"), "model"]
)
def test_an_unknown_target_is_told_what_is_known(target: Any) -> None:
    """Every framework, and the plain form."""
    with pytest.raises(TypeError) as caught:
        adapters.find(target)
    text = str(caught.value)
    assert type(target).__name__ in text
    for name in (
        "Lightning",
        "Hugging Face",
        "Accelerate",
        "Ignite",
        "fastai",
        "nn.Module",
        "monitor.attach()",
    ):
        assert name in text


def test_a_framework_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the version that is needed, and what to do."""
    old = ModuleType("transformers")
    old.__version__ = "4.12.0.dev0"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers", old)
    with pytest.raises(TypeError, match=r"transformers 4\.12\.0.*4\.46.*pip install -U transformers"):
        adapters.find(made("Trainer", "transformers.trainer"))


def test_the_version_that_counts_is_that_of_the_targets_own_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lightning has two packages; the one that is not used may be as old as it likes."""
    for package, version in (("lightning", "1.9.0"), ("pytorch_lightning", "2.4.0")):
        module = ModuleType(package)
        module.__version__ = version  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, package, module)
    assert adapters.find(made("Trainer", "pytorch_lightning.trainer"))
    with pytest.raises(TypeError, match=r"lightning 1\.9\.0"):
        adapters.find(made("Trainer", "lightning.pytorch.trainer"))


def test_looking_for_an_adapter_imports_nothing() -> None:
    """No framework, and not even torch."""
    code = (
        "import sys; from monitor.probe import adapters; adapters.adapters();"
        "print([m for m in ('torch', 'lightning', 'transformers', 'accelerate', 'ignite', 'fastai')"
        " if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_every_adapter_has_the_same_shape() -> None:
    """A name for messages, the packages' import names, the least version, and three functions."""
    for adapter in adapters.adapters():
        assert adapter.NAME
        assert all(package.isidentifier() for package in adapter.PACKAGES)
        assert all(isinstance(part, int) for part in adapter.MIN_VERSION)
        assert callable(adapter.matches)
        assert callable(adapter.modules)
        assert callable(adapter.install)
