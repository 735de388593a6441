"""Ranks with different numbers of batches: said before the hang, and of no healthy run."""

from __future__ import annotations

from typing import Any

import pytest
from finished_runs import LOADER

from monitor.diagnosis.signals.uneven_loaders import uneven_batches


def rank(
    length: Any = 50, *, ddp: Any = None, more: dict[str, Any] | None = None, **loader: Any
) -> dict[str, Any]:
    """A rank's facts: DDP and one training loader."""
    facts = {"ddp": {"backend": "gloo", "join": False, **(ddp or {})}}
    return {**facts, "loader/1": {**LOADER, "length": length, **loader}, **(more or {})}


def test_ranks_with_more_batches_than_others():
    """The least and the most."""
    assert uneven_batches([rank(50), rank(51), rank(50), rank(47)]) == (47, 51)


def test_equally_many_are_fine():
    """As DistributedSampler gives them, which pads, and drop_last on equal shards."""
    sampled = {"sampler": "DistributedSampler", "drop_last": True}
    assert uneven_batches([rank(50, **sampled), rank(50, **sampled)]) is None


@pytest.mark.parametrize(
    "other",
    [
        rank(None),  # an IterableDataset without a length
        rank(True),
        rank(0),
        rank("51"),
        rank(51, location="other.py:3"),
        rank(51, role=None),
        rank(51, role="eval"),
        rank(51, ddp={"join": True}),
        rank(51, more={"ddp": None}),
        rank(51, more={"loader/2": {**LOADER, "length": 9}}),
        {},
    ],
)
def test_what_cannot_be_told_is_not_said(other: dict[str, Any]):
    """Of any one rank."""
    assert uneven_batches([rank(50), other]) is None


def test_evaluation_on_one_rank_is_no_matter():
    """A validation loader of rank 0's own, and none of the others."""
    assert (
        uneven_batches([rank(50, more={"loader/2": {**LOADER, "role": "eval", "length": 9}}), rank(50)])
        is None
    )


def test_a_framework_that_stops_all_at_one_step():
    """A plan that is the same on all ranks ends before the hang; one that follows the lengths does not."""
    same = {"plan": {"steps": 100}}
    assert uneven_batches([rank(50, more=same), rank(51, more=same)]) is None
    assert uneven_batches([rank(50, more=same), rank(51, more={"plan": {"steps": 102}})]) == (50, 51)


def test_one_rank_alone():
    """Has nobody to wait for."""
    assert uneven_batches([rank(50)]) is None
    assert uneven_batches([]) is None
