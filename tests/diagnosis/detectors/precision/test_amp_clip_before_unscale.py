"""Clipping scaled gradients is found at the first such clip."""

from __future__ import annotations

from windows import event, rank, window

from monitor.diagnosis.detectors.precision.amp_clip_before_unscale import detect

CLIP = event("clip", step=3, location="train.py:30", scaled=True)


def test_it_is_found_at_once():
    """One clip of scaled gradients is enough; place, step and scale are told."""
    found = detect(window(rank(20, loss_scale=65536.0), events=[CLIP]))
    assert found is not None
    assert (found.location, found.first_step, found.evidence) == ("train.py:30", 3, {"loss_scale": 65536.0})


def test_clipping_after_unscale_is_fine():
    """Gradients that were unscaled first raise nothing."""
    assert detect(window(events=[{**CLIP, "scaled": False}])) is None


def test_all_ranks_that_do_it_are_named():
    """One finding for all ranks; an unknown scale is left out, not invented."""
    found = detect(window(rank(number=0), rank(number=1), events=[{**CLIP, "rank": 1}, CLIP]))
    assert found is not None
    assert (found.ranks, found.evidence) == ((0, 1), {})
