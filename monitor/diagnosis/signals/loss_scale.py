"""Which optimizer steps of a run with a gradient scaler may be judged."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from monitor.diagnosis.core.window import Rank

#: A scale that starts too high halves in every step until it fits (measurements.md#gradient-scaling: twelve
#: times), and may overflow now and then while weights are still wild. So many clean or later steps belong
#: to that.
SETTLING_STEPS = 20

Rows = NDArray[np.int64]


def optimizer_rows(rank: Rank) -> Rows:
    """Rows in which an optimizer stepped or was kept from it by the scaler."""
    stepped, skipped = rank.column("optimizer_steps"), rank.column("amp_skipped")
    return np.flatnonzero((np.nan_to_num(stepped) > 0) | (np.nan_to_num(skipped) > 0))


def after_settling(rank: Rank, rows: Rows) -> Rows:
    """Those of `rows` after the scale has settled: after the run's first streak of skips and a while."""
    if not len(rows) or rank.steps["step"][rows[0]] > SETTLING_STEPS:
        return rows
    clean = np.flatnonzero(np.nan_to_num(rank.column("amp_skipped")[rows]) == 0)
    first = int(clean[0]) if len(clean) else len(rows)
    return rows[first + SETTLING_STEPS :]
