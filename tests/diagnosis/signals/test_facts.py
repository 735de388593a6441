"""Facts may be missing, or not what was expected, and nothing breaks."""

from __future__ import annotations

from typing import Any

import pytest
from windows import rank, window

from monitor.diagnosis.signals.facts import fact, facts_of, half_autocast, numbers, on_gpu, ranks_where


@pytest.mark.parametrize("value", [None, 3, "text", [1]])
def test_a_fact_that_is_no_mapping_is_empty(value: Any):
    """Something else under the name is as good as nothing."""
    assert fact(rank(facts={"ddp": value}), "ddp") == {}
    assert facts_of(rank(facts={"model/1": value}), "model") == []


@pytest.mark.parametrize(
    ("precision", "kind"),
    [
        ({"autocast": True, "autocast_dtype": "float16"}, "float16"),
        ({"autocast": True, "autocast_dtype": "bfloat16"}, "bfloat16"),
        ({"autocast": True, "autocast_dtype": "float32"}, None),
        ({"autocast": False, "autocast_dtype": "float16"}, None),
        ({}, None),
    ],
)
def test_half_precision_is_what_autocast_uses(precision: dict[str, Any], kind: str | None):
    """Only a 16-bit type, and only while autocast is used."""
    assert half_autocast(rank(facts={"precision": precision})) == kind


def test_ranks_come_in_order():
    """Whatever order they are kept in."""
    one = window(rank(number=2), rank(number=0), rank(number=1))
    assert numbers(ranks_where(one, lambda each: each.rank != 1)) == (0, 2)


@pytest.mark.parametrize(("device", "gpu"), [("cuda:1", True), ("cpu", False), (None, False)])
def test_devices_are_told_apart(device: str | None, gpu: bool):
    """By the name torch gives them."""
    assert on_gpu({"device": device}) == gpu
