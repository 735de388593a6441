"""Work is the step without what has detectors of its own."""

from __future__ import annotations

import numpy as np
import pytest
from windows import rank

from monitor.diagnosis.signals.model_work import batch_sizes, slowest_phase, work_ms


def test_work_is_what_is_left():
    """Waiting, saving, evaluating and communicating are not work."""
    assert work_ms(rank(20, checkpoint=9, eval=9, comm=9, other=3, h2d=1)) == pytest.approx(18.0)


def test_sizes_are_told_where_they_vary():
    """The first measure that varies; a constant or unknown size tells nothing."""
    varying = np.where(np.arange(20) % 2, 10.0, 20.0)
    assert batch_sizes(rank(20, batch_elements=4.0, tokens=varying)) is not None
    assert batch_sizes(rank(20, batch_elements=4.0)) is None
    assert batch_sizes(rank(20)) is None


def test_the_phase_that_grew_most_is_named():
    """In milliseconds, not in multiples."""
    assert slowest_phase(rank(20), rank(20, optimizer=4, backward=13)) == "backward"
