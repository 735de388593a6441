"""Whether float32 is multiplied in full is known, whichever way the program said so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from loops import error, net
from watching import watching

from monitor.probe.precision import matmul_precision

newer = pytest.mark.skipif(
    not hasattr(torch.backends.cuda.matmul, "fp32_precision"), reason="torch before 2.9 has one setting only"
)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """The setting is the process's."""
    yield
    torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("word", ["highest", "high", "medium"])
def test_the_older_setting(word: str) -> None:
    """As torch says it."""
    torch.set_float32_matmul_precision(word)
    assert matmul_precision() == word


@newer
@pytest.mark.parametrize(("setting", "word"), [("tf32", "high"), ("ieee", "highest")])
def test_the_newer_setting(setting: str, word: str) -> None:
    """In the older one's words, although torch then refuses to tell by the older question."""
    torch.backends.cuda.matmul.fp32_precision = setting
    assert matmul_precision() == word


@newer
def test_a_program_with_the_newer_setting_is_watched(tmp_path: Path) -> None:
    """Torch's refusal to answer is no reason to switch monitoring off."""
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    model = net()
    with watching(tmp_path, model) as watch:
        error(model, (torch.randn(8, 6), torch.randn(8, 1))).backward()
    assert watch.facts()["precision"]["matmul_precision"] == "high"
