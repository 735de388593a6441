"""Others on the GPU are told of: a fault where they compute, a word where they only hold memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from devices import on_gpu

from monitor.diagnosis.core import needs
from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.gpu.gpu_shared import NEEDS, OTHERS_MEMORY, OTHERS_UTIL, detect

OTHERS = [{"gpu": "0", "uuid": "GPU-aa-00", "name": "Big GPU", "others": [{"pid": 97, "name": "python"}]}]


def found(util: Any = 30, memory: Any = 9_000) -> Finding | None:
    gpu = {"gpu_others_util": util, "gpu_others_memory_mb": memory}
    return detect(on_gpu(gpu=gpu, listed=OTHERS))


def test_it_names_them() -> None:
    """By pid and name, with what they take."""
    one = found()
    assert one is not None
    assert (one.severity, one.gain) == ("warning", None)
    assert one.evidence == {
        "gpu": "here/0", "device": "Big GPU", "others_mb": 9_000, "others_percent": 30.0,
        "processes": "97 python",
    }  # fmt: skip


@pytest.mark.parametrize(("factor", "severity"), [(0.9, "info"), (1.1, "warning")])
def test_from_a_twentieth_of_the_gpu_on_it_is_a_fault(factor: float, severity: str) -> None:
    """Less is a desktop, or a monitor."""
    one = found(util=OTHERS_UTIL * factor)
    assert one is not None
    assert one.severity == severity


@pytest.mark.parametrize(("factor", "speaks"), [(0.9, False), (1.1, True)])
def test_who_only_holds_memory_is_worth_a_word_from_a_twentieth_on(factor: float, speaks: bool) -> None:
    """Information: it takes no time."""
    one = found(util=0, memory=80_000 * OTHERS_MEMORY * factor)
    assert (one is not None) == speaks
    assert one is None or (one.severity, "left over" in one.advice) == ("info", True)


def test_where_use_is_not_told_memory_is_all_there_is() -> None:
    """Nothing is assumed."""
    one = found(util=float("nan"))
    assert one is not None
    assert (one.severity, "others_percent" in one.evidence) == ("info", False)


def test_a_short_visit_is_nothing() -> None:
    """Half of the samples must show it."""
    assert found(util=[90] * 3 + [0] * 18, memory=0) is None


def test_where_our_own_are_not_seen_it_is_not_checked() -> None:
    """In a container nobody can tell whose processes they are: said, not taken for fine."""
    unknown = {key: float("nan") for key in ("gpu_own_memory_mb", "gpu_others_memory_mb", "gpu_others_util")}
    why = needs.absent(NEEDS, on_gpu(gpu=unknown))
    assert why == "whose processes are on the GPU cannot be told"
    assert needs.absent(NEEDS, replace(on_gpu(), gpus={})) == "the GPU's driver cannot be asked"
